import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import type { Finding } from "./finding.ts";
import { compare } from "./overlay.ts";

/** Prompts beyond this many bytes are an accident: nothing larger is read. */
export const TEXT_LIMIT = 1_048_576;

/** What stands in a folder of definitions; a file that cannot be read has the reason instead of its content. */
export interface FolderContent {
  files: { file: string; content: Buffer | { problem: string } }[];
  findings: Finding[];
}

/**
 * Reads every `*.md` file of a folder and of the folders in it, in the order of their paths. Left out are
 * `*.example.md`, names that start with a dot, `node_modules`, and symbolic links: what those point to was not put
 * there by whoever may write here. A folder that does not exist is empty.
 */
export async function readDefinitionFolder(folder: string): Promise<FolderContent> {
  const files: FolderContent["files"] = [];
  const findings: Finding[] = [];
  const visit = async (path: string) => {
    const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") {
        const rule = "a folder of definitions can be read";
        findings.push({ file: path, rule, effect: "ignored", message: `${path} is left out: ${messageOf(error)}` });
      }
      return [];
    });
    for (const entry of entries.toSorted((a, b) => compare(a.name, b.name))) {
      const inside = join(path, entry.name);
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
      if (entry.isSymbolicLink()) {
        const rule = "symbolic links are not followed";
        findings.push({ file: inside, rule, effect: "ignored", message: `${inside} is left out: ${rule}` });
      } else if (entry.isDirectory()) {
        await visit(inside);
      } else if (entry.isFile() && /\.md$/i.test(entry.name) && !/\.example\.md$/i.test(entry.name)) {
        const content = await readRegularFile(inside).catch((error: NodeJS.ErrnoException) =>
          // It went away since the folder was read.
          error.code === "ENOENT" ? undefined : { problem: messageOf(error) },
        );
        if (content !== undefined) files.push({ file: inside, content });
      }
    }
  };
  await visit(folder);
  return { files, findings };
}

/**
 * The content of a regular file of at most `TEXT_LIMIT` bytes. The path must be canonical or the file itself.
 * @throws the error of the file system, or one that says what the file is instead.
 */
export async function readRegularFile(path: string): Promise<Buffer> {
  // Non-blocking, so that a FIFO without a writer cannot hang the call. A link that took the place of the file since
  // the folder was read, or its path made canonical, is not followed either.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stats = await handle.stat();
    if (stats.isDirectory()) throw new Error("it is a folder");
    if (!stats.isFile()) throw new Error("it is not a regular file");
    if (stats.size > TEXT_LIMIT) throw new Error(`it has ${stats.size} bytes, the limit is ${TEXT_LIMIT}`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}
