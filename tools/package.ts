/**
 * The package as users get it: packed, installed by npm into an empty folder, looked through and measured.
 *
 * `node tools/package.ts` ends with exit code 1 when something is wrong, one line each. Without a registry and without
 * the dependencies in npm's cache it says so; under `CI=true` that is a failure.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { bytesIn, filesIn, surplus } from "./package/files.ts";
import { installPackage, type Installed } from "./package/install.ts";
import { importSize, measureImport } from "./package/measure.ts";
import { entriesOf, neededFiles, type Manifest } from "./package/needed.ts";
import { RegistryUnreachable } from "./package/npm.ts";
import { binary, runNode } from "./run.ts";

const MB = 1_000_000;

/**
 * All of `node_modules` after the installation. Measured when it was set: 24.7 MB, of which 12.3 MB are zod and the
 * database with its binaries for every platform, and 2.8 MB the log of the host. There is room for their releases, not for
 * another dependency of that size.
 */
const INSTALL_BYTES = 28 * MB;

/** The package itself, unpacked. Measured when it was set: 1.4 MB, with the extension for Pi and the host. */
const PACKAGE_BYTES = 2 * MB;

/**
 * Files that `import "pi-herd"` loads, and what is in them. Measured when it was set: 300 files of 1.9 MB, of which 95
 * are zod and 160 our own. How long that takes depends on the machine, and is only printed.
 */
const IMPORT_MODULES = 340;
const IMPORT_BYTES = 2.3 * MB;

/** Enough for a median that some slow starts do not move. */
const ROUNDS = 9;

/** What publint has to say, down to suggestions. */
async function lint({ tarball }: Installed): Promise<string[]> {
  const bytes = readFileSync(tarball);
  const packed = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ level: "suggestion", pack: { tarball: packed } });
  return messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false }) ?? message.code}`);
}

/**
 * What attw has to say about the types. The package has no CommonJS and no folders for the resolution of before Node
 * 12; the profile for packages of that kind leaves those two ways of importing out and nothing else.
 */
function lintTypes({ tarball }: Installed): string[] {
  const args = [tarball, "--profile", "esm-only", "--no-emoji", "--no-color", "--no-summary", "--format", "table"];
  const code = runNode(binary("@arethetypeswrong/cli", "attw"), args);
  return code === 0 ? [] : ["attw: the table above names what does not resolve"];
}

function checkFiles({ package: folder }: Installed): string[] {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  return surplus(filesIn(folder), neededFiles(join(folder, "dist"), entriesOf(manifest)));
}

function inShort(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

/** Says a figure with its budget; gives what to do when it is over. */
function budget(what: string, value: number, most: number, unit: string, mend: string): string[] {
  const figures = `${what}: ${inShort(value)} ${unit}, budget ${inShort(most)} ${unit}`;
  console.log(figures);
  return value <= most ? [] : [`${figures}. What to do: ${mend}`];
}

function checkBudgets({ folder, package: own }: Installed): string[] {
  const { empty, imported, ratio } = measureImport(folder, ROUNDS);
  const starts = `${empty.toFixed(0)} ms empty, ${imported.toFixed(0)} ms with import "pi-herd"`;
  console.log(`a start of Node: ${starts}, ${ratio.toFixed(1)} times as long`);
  const { modules, bytes } = importSize(folder);
  const dependency = "look which dependency grew, with du -s node_modules/* in an empty installation";
  const onDemand = "import on demand what is rarely used";
  return [
    ...budget("install size", bytesIn(join(folder, "node_modules")) / MB, INSTALL_BYTES / MB, "MB", dependency),
    ...budget("package size", bytesIn(own) / MB, PACKAGE_BYTES / MB, "MB", "look which compiled files grew"),
    ...budget("import", modules, IMPORT_MODULES, "modules", onDemand),
    ...budget("import", bytes / MB, IMPORT_BYTES / MB, "MB", onDemand),
  ];
}

async function check(): Promise<string[]> {
  const installed = installPackage();
  try {
    return [...checkFiles(installed), ...(await lint(installed)), ...lintTypes(installed), ...checkBudgets(installed)];
  } finally {
    installed.remove();
  }
}

try {
  const findings = await check();
  for (const finding of findings) console.error(finding);
  if (findings.length > 0) process.exitCode = 1;
} catch (error) {
  if (!(error instanceof RegistryUnreachable)) throw error;
  const skipped = process.env["CI"] === "true" ? "" : "skipped: ";
  console.error(`${skipped}${error.message}. What to do: connect to the network once, so that npm's cache is filled.`);
  if (skipped === "") process.exitCode = 1;
}
