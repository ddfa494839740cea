/** Walks through a page as a reader would: saves the files that it shows, runs its commands, compares what comes out. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Installed } from "../../tools/package/install.ts";
import { shellEnv } from "../../tools/package/npm.ts";
import { fences } from "./page.ts";

/** The folder that the pages speak of; they begin in its folder `shop`. */
const HOME = "/home/ada";

/** What stands for something that is another one each time. */
const CHANGING: [RegExp, string][] = [
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>"],
  [/(?<![\w-])[\w-]{21}(?![\w-])/g, "<id>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "<time>"],
  [/\b\d\d:\d\d:\d\d\b/g, "<time>"],
  [/\b([Pp])rocess \d+/g, "$1rocess <pid>"],
  [/(?<=--session )"[^"]+"/g, '"<session file>"'],
  [/\b\d+ rows\b/g, "<n> rows"],
  [/\d+(?:\.\d+)? [kMGT]B free/g, "<n> free"],
  [/Node\.js [\d.]+ at \S+/g, "Node.js <version>"],
];

/** A line that stands for any number of lines. */
const ANYTHING = "…";

/**
 * Walks through a page in a fresh folder where the package is installed. Its fences say what they are: `js NAME`,
 * `ts NAME` and `json NAME` are files, `sh` are commands that succeed and `sh exits N` commands that do not, and
 * `text output` is what the commands before it printed; `text` alone only shows something.
 * @returns how many outputs were compared.
 */
export function walkThrough(text: string, installed: Installed): number {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "herd-walk-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const shell = new Shell(folder, installed);
  let printed = "";
  let compared = 0;
  for (const { info, content, heading } of fences(text)) {
    const [language = "", ...rest] = info.split(" ");
    const where = `${info} under "${heading}"`;
    if (language === "sh") printed = shell.run(content, rest[0] === "exits" ? Number(rest[1]) : 0, where);
    else if (info === "text output") {
      compare(where, { shown: content, printed, folder });
      compared++;
    } else if (rest.length === 1) shell.save(rest[0] as string, content);
    else if (info !== "text") throw new Error(`nobody knows what to do with the example "${info}" under "${heading}"`);
  }
  return compared;
}

/** Holds what a page shows against what came, in a folder that the page calls its home. */
export function compare(where: string, { shown, printed, folder }: { shown: string; printed: string; folder: string }) {
  const real = masked(printed, folder);
  expect({ [where]: real }).toEqual({ [where]: expected(shown, real) });
}

/** Commands one after another, each where the one before it ended. */
class Shell {
  #cwd: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #place: string;

  constructor(folder: string, installed: Installed) {
    const bin = join(folder, ".bin");
    this.#place = join(bin, "place");
    this.#cwd = join(folder, "shop");
    mkdirSync(bin);
    mkdirSync(this.#cwd);
    symlinkSync(join(installed.folder, "node_modules"), join(this.#cwd, "node_modules"), "junction");
    // The package is not on the registry as it stands here: who installs it by its name gets this one.
    writeFileSync(join(bin, "npm"), NPM);
    writeFileSync(join(bin, "npx"), NPX);
    for (const name of ["npm", "npx"]) chmodSync(join(bin, name), 0o755);
    this.#env = {
      ...shellEnv,
      PATH: [bin, dirname(process.execPath), shellEnv["PATH"]].join(delimiter),
      REAL_PATH: [dirname(process.execPath), shellEnv["PATH"]].join(delimiter),
      TARBALL: installed.tarball,
      npm_config_update_notifier: "false",
    };
  }

  save(name: string, content: string): void {
    mkdirSync(dirname(join(this.#cwd, name)), { recursive: true });
    writeFileSync(join(this.#cwd, name), content);
  }

  run(commands: string, exitCode: number, where: string): string {
    const script = `trap 'pwd > ${JSON.stringify(this.#place)}' EXIT\nset -eo pipefail\nexec 2>&1\n${commands}`;
    const { stdout, status } = spawnSync("bash", ["-c", script], {
      cwd: this.#cwd,
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 120_000,
    });
    if (status !== exitCode) throw new Error(`${where} ended with exit code ${status}:\n${stdout}`);
    this.#cwd = readFileSync(this.#place, "utf8").trim();
    return stdout;
  }
}

const NPM = `#!/bin/sh
PATH="$REAL_PATH"
if [ "$*" = "install pi-herd" ]; then
  exec npm install --prefer-offline --no-audit --no-fund --silent "$TARBALL"
fi
exec npm "$@"
`;

/**
 * What npx does with a command of a package that is installed in the folder or above it, without the half second that npm
 * takes to find that out; everything else is the real one's.
 */
const NPX = `#!/bin/sh
folder="$PWD"
while [ "$folder" != / ]; do
  if [ -x "$folder/node_modules/.bin/$1" ]; then
    program="$folder/node_modules/.bin/$1"
    shift
    npm_command=exec PATH="$REAL_PATH" exec "$program" "$@"
  fi
  folder="$(dirname "$folder")"
done
PATH="$REAL_PATH" exec npx "$@"
`;

/** An output without what is another each time. */
function masked(text: string, folder = HOME): string {
  const home = text.replaceAll(folder, HOME);
  return CHANGING.reduce((so, [pattern, mask]) => so.replaceAll(pattern, mask), home).trimEnd();
}

/** What the page shows, its gaps filled with what really came. */
function expected(shown: string, real: string): string {
  const lines = masked(shown).split("\n");
  const came = real.split("\n");
  const filled: string[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.trim() !== ANYTHING) filled.push(line);
    else {
      const next = lines[index + 1];
      const until = next === undefined ? came.length : came.indexOf(next, filled.length);
      filled.push(...came.slice(filled.length, until === -1 ? came.length : until));
    }
  }
  return filled.join("\n");
}
