/**
 * The package as users get it: built, packed and installed by npm, all in a temporary folder. The working tree's own
 * `dist/` is not touched, so that this may run beside everything else.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, runNode } from "../run.ts";
import type { Manifest } from "./needed.ts";
import { npm } from "./npm.ts";

/** What npm packs whether or not `files` in `package.json` names it. */
const ALWAYS = ["package.json", "README.md", "LICENSE"];

/** Nothing but packages: no questions, no advice, and a registry that does not answer is given up soon. */
const QUIETLY = ["--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-retry-mintimeout=500"];

export interface Installed {
  /** A folder with nothing in it but the installation. */
  folder: string;
  /** The installed package. */
  package: string;
  tarball: string;
  remove(): void;
}

/**
 * Packs what the working tree holds and installs it in an empty folder.
 * @throws RegistryUnreachable when the dependencies cannot be fetched; Error when the build or npm fails.
 */
export function installPackage(): Installed {
  // macOS has its temporary folder behind a link.
  const base = mkdtempSync(join(realpathSync(tmpdir()), "herd-package-"));
  const remove = () => rmSync(base, { recursive: true, force: true, maxRetries: 3 });
  try {
    const tarball = pack(base);
    const folder = join(base, "installed");
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), `{ "private": true, "type": "module" }\n`);
    // The database brings its binaries along; its script would only look whether one of them fits.
    npm(["install", ...QUIETLY, "--ignore-scripts", tarball], folder);
    return { folder, package: join(folder, "node_modules", "pi-herd"), tarball, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Builds beside copies of the other published files, and packs that. */
function pack(base: string): string {
  const staged = join(base, "staged");
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  for (const path of [...ALWAYS, ...files.filter((name) => name !== "dist")]) {
    cpSync(join(root, path), join(staged, path), { recursive: true });
  }
  const code = runNode(join(root, "tools", "build.ts"), [join(staged, "dist")]);
  if (code !== 0) throw new Error(`npm run build ended with exit code ${code}`);
  npm(["pack", "--ignore-scripts", "--pack-destination", base], staged);
  const name = readdirSync(base).find((file) => file.endsWith(".tgz"));
  if (name === undefined) throw new Error(`npm pack left no tarball in ${base}`);
  return join(base, name);
}
