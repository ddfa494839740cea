import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** A temporary folder with these files, by path; gone when the test is over. */
export function folderWith(files: Record<string, string | Uint8Array>): string {
  const { folder, remove } = keptFolderWith(files);
  onTestFinished(remove);
  return folder;
}

/** The same for several tests: whoever makes it removes it. */
export function keptFolderWith(files: Record<string, string | Uint8Array>): { folder: string; remove(): void } {
  // macOS has its temporary folder behind a link.
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "herd-demo-"));
  const paths = Object.entries(files).map(([path, content]) => [join(folder, path), content] as const);
  for (const parent of new Set(paths.map(([path]) => dirname(path)))) mkdirSync(parent, { recursive: true });
  for (const [path, content] of paths) writeFileSync(path, content);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
