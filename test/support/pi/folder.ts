import { spawn, type ChildProcess } from "node:child_process";
import {
  existsSync,
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
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
export const piCli = join(root, "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js");
export const herdJs = join(root, "adapters/cli/herd.js");
export const extension = join(root, "adapters/pi/extension.js");
/** The model that does what a script says. */
export const model = join(root, "examples/pi/scripted-model.ts");

/** An agent directory and a project of their own, with the scripted model and the extension. */
export interface PiPlace {
  base: string;
  agentDir: string;
  herd: string;
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Processes that live and belong to this place. */
  processes(): { pid: number; command: string }[];
  /** The process that has the store. */
  host(): number | undefined;
  /** The processes of workers, by what the host keeps of them. */
  workers(): number[];
  /** Ends a process as a power cut does, and waits until it is gone. */
  cut(pid: number | undefined): Promise<void>;
  /** Ends everything that belongs to it. */
  end(): Promise<void>;
  /** Ends everything that belongs to it, and removes it. */
  remove(): Promise<void>;
}

export interface PlaceOptions {
  /** Pi's settings beside what every place has. */
  settings?: object;
  /** Instead of ours and the model. */
  extensions?: string[];
  agents?: Record<string, string>;
  env?: NodeJS.ProcessEnv;
  /** The folder that it is made in. */
  parent?: string;
}

/** Makes one. */
export function makePlace(options: PlaceOptions = {}): PiPlace {
  const { settings = {}, extensions, agents = {}, env = {}, parent = tmpdir() } = options;
  const base = realpathSync(mkdtempSync(join(parent, "herd-pi-")));
  const agentDir = join(base, "agent");
  const cwd = join(base, "project");
  mkdirSync(join(agentDir, "agents"), { recursive: true });
  mkdirSync(cwd);
  const all = {
    retry: { enabled: false },
    quietStartup: true,
    defaultProvider: "scripted",
    defaultModel: "script",
    extensions: extensions ?? [model, extension],
    ...settings,
  };
  writeFileSync(join(agentDir, "settings.json"), JSON.stringify(all));
  // Pi may look whether the model can be called before it has asked the extension that brings it.
  writeFileSync(join(agentDir, "auth.json"), JSON.stringify({ scripted: { type: "api_key", key: "none" } }));
  for (const [name, text] of Object.entries(agents)) writeFileSync(join(agentDir, "agents", `${name}.md`), text);
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(PI_|HERDR_|TMUX|INTERACTIONS_|VITEST|NODE_OPTIONS)/.test(name)),
  );
  const place: PiPlace = {
    base,
    agentDir,
    herd: join(agentDir, "herd"),
    cwd,
    env: {
      ...inherited,
      HOME: base,
      PI_CODING_AGENT_DIR: agentDir,
      PI_OFFLINE: "1",
      PI_TELEMETRY: "0",
      PI_SKIP_VERSION_CHECK: "1",
      ...env,
    },
    processes: () => processesOf(base),
    host: () => place.processes().find(({ command }) => command.includes("herd.js serve "))?.pid,
    workers: () => {
      const folder = join(place.herd, "processes");
      const kept = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
      const pids = kept.flatMap((name) => pidIn(join(folder, name)) ?? []);
      return pids.filter((pid) => place.processes().some((each) => each.pid === pid));
    },
    cut: async (pid) => {
      if (pid === undefined) throw new Error("there is no such process");
      process.kill(pid, "SIGKILL");
      await until(() => place.processes().every((each) => each.pid !== pid), `the end of ${pid}`);
    },
    end: async () => {
      await until(() => {
        const alive = place.processes();
        // Again each time: what is ended here may have started something since the last look.
        for (const { pid } of alive) tryKill(pid);
        return alive.length === 0;
      }, "the end of everything that belongs to the place");
    },
    remove: async () => {
      await place.end();
      rmSync(base, { recursive: true, force: true });
    },
  };
  return place;
}

/** The process that a record names; undefined when it was removed meanwhile. */
function pidIn(file: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as { pid: number }).pid;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone meanwhile.
  }
}

/** By their environment: everything that was started from this place has it. */
function processesOf(base: string): { pid: number; command: string }[] {
  if (!existsSync("/proc")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const environ = readFileSync(`/proc/${name}/environ`, "latin1");
        if (!environ.includes(base)) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ").trim();
        return command === "" ? [] : [{ pid: Number(name), command }];
      } catch {
        return [];
      }
    });
}

/** What a program that has ended said. */
export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs Pi to its end. */
export function runPi(place: PiPlace, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return run(place, [piCli, ...args], env);
}

/** Runs the herd command to its end. */
export function runHerd(place: PiPlace, args: readonly string[], command = herdJs): Promise<Ended> {
  return run(place, [command, ...args], {});
}

function run(place: PiPlace, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = spawn(process.execPath, args, {
    cwd: place.cwd,
    env: { ...place.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return ended(child);
}

export async function ended(child: ChildProcess): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (part: string) => (stdout += part));
  child.stderr?.setEncoding("utf8").on("data", (part: string) => (stderr += part));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  return { code, stdout, stderr };
}

/** Looks again and again until something is there. */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string | (() => string) = "it",
  ms = 25_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<T>;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${typeof what === "string" ? what : what()}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
