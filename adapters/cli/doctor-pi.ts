import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { HerdError } from "../../runtime/visitor.ts";
import { isNewEnough, onPath } from "../host/node.ts";
import { findPi, PI_PACKAGE } from "../host/pi-command.ts";
import type { HostStatus } from "../host/shapes.ts";
import { findHost } from "../host/start.ts";
import { isNewer } from "../host/versions.ts";
import { examineDefinitions } from "./doctor-definitions.ts";
import { examineSettings } from "./doctor-settings.ts";
import type { Examined } from "./doctor.ts";
import { hostCommandFor } from "./invocation.ts";
import { countOf } from "./words.ts";

/** The same as `peerDependencies` in package.json says. */
const OLDEST_PI = "1.6.0";
const ANSWERS_MS = 10_000;

/** Looks at what the workers of Pi sessions need beside the herd itself. */
export async function examinePi(directory: string, version: string): Promise<Examined[]> {
  const looks = [nodeOnPath, pi, tmux, herdr, () => host(directory, version), examineSettings, examineDefinitions];
  return (await Promise.all(looks.map((look) => look()))).flat();
}

/** The command `pi` is run by whatever Node comes first. */
async function nodeOnPath(): Promise<Examined[]> {
  const path = onPath("node");
  if (path === undefined) return [];
  const said = await firstLineOf(path, "--version");
  const isGood = said !== undefined && isNewEnough(said.replace(/^v/, ""));
  if (isGood) return [];
  const says = `${path}, which runs the command pi, is ${said === undefined ? "broken" : `Node.js ${said}`}`;
  return [{ name: "path", ok: false, says, next: "put Node.js 22.19 or newer first in the PATH" }];
}

async function pi(): Promise<Examined> {
  const name = "pi";
  const install = `npm install -g ${PI_PACKAGE}@latest`;
  try {
    const { cli } = await findPi();
    const found = await versionOf(cli);
    if (found === undefined) return { name, ok: false, says: `${cli} is no Pi`, next: install };
    const says = `Pi ${found} at ${cli}`;
    if (!isNewer(OLDEST_PI, found)) return { name, ok: true, says };
    return { name, ok: false, says: `${says}, and pi-herd needs ${OLDEST_PI} or newer`, next: install };
  } catch (error) {
    return wrong(name, error);
  }
}

/** The version of the package of Pi that a program belongs to. */
async function versionOf(program: string): Promise<string | undefined> {
  for (let folder = dirname(program); ; folder = dirname(folder)) {
    const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
    const manifest = JSON.parse(text) as { name?: string; version?: string };
    if (manifest.name === PI_PACKAGE) return manifest.version;
    if (folder === dirname(folder)) return undefined;
  }
}

async function tmux(): Promise<Examined> {
  const path = onPath("tmux");
  const says =
    path === undefined
      ? "not installed; it is needed only for workers in panes"
      : `${(await firstLineOf(path, "-V")) ?? "does not start"} at ${path}`;
  return { name: "tmux", ok: true, says };
}

async function herdr(): Promise<Examined> {
  const path = onPath("herdr");
  const isInside = (process.env["HERDR_WORKSPACE_ID"] ?? "") !== "";
  const where = isInside ? "this shell runs in it" : "this shell does not run in it";
  return { name: "herdr", ok: true, says: path === undefined && !isInside ? "not installed; nothing needs it" : where };
}

async function host(directory: string, version: string): Promise<Examined> {
  const name = "host";
  try {
    const connection = await findHost({ directory, bearer: { role: "observer" }, version });
    if (connection === undefined)
      return { name, ok: true, says: "none runs; a Pi session starts one when it needs it" };
    const status = await connection.request<HostStatus>("host/status", {});
    await connection.close(1_000);
    const { pid, version: theirs, workers, roots, since } = status;
    const says = `process ${pid} since ${since}, pi-herd ${theirs}: ${countOf(roots, "Pi session")}, ${countOf(workers, "worker")}`;
    if (!isNewer(version, theirs)) return { name, ok: true, says };
    const next = `it makes room for ${version} by itself at the next call of a Pi session; ${hostCommandFor(directory, "stop")} ends it now`;
    return { name, ok: true, says, next };
  } catch (error) {
    return wrong(name, error);
  }
}

function wrong(name: string, error: unknown): Examined {
  if (!(error instanceof HerdError)) return { name, ok: false, says: String(error) };
  const { message, nextAction } = error;
  return { name, ok: false, says: message.replace(/ Next: .*$/s, ""), next: nextAction };
}

/** What a program says of itself; undefined when it fails. */
async function firstLineOf(program: string, option: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(program, [option], { timeout: ANSWERS_MS });
    return stdout.split("\n")[0]?.trim();
  } catch {
    return undefined;
  }
}
