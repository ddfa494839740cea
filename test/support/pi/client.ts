import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { HostStatus } from "../../../adapters/host/shapes.ts";
import { connectHost } from "../../../adapters/host/start.ts";
import type { Bearer } from "../../../adapters/host/tokens.ts";
import { version } from "../../../adapters/pi/version.ts";
import { HerdError, type Connection } from "../../../runtime/client.ts";
import { ended, herdJs, piCli, until, type Ended, type PiPlace } from "./place.ts";

/** A host that a test has started, and what it said when it has ended. */
export interface Serving {
  child: ChildProcess;
  ended: Promise<Ended>;
}

/** Runs a program of a place with Node. */
export function runNode(place: PiPlace, args: readonly string[], env: NodeJS.ProcessEnv = {}): Serving {
  const child = spawn(process.execPath, args, {
    cwd: place.cwd,
    env: { ...place.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return { child, ended: ended(child) };
}

/** `herd serve`, as a child of the test. */
export function serve(place: PiPlace, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Serving {
  return runNode(place, [herdJs, "serve", ...args], env);
}

/** Connects to the host of a place once it is there. */
export async function client(place: PiPlace, bearer: Bearer, as = version): Promise<Connection> {
  const connection = await until(() => connectHost({ directory: place.herd, bearer, version: as }), "the host");
  onTestFinished(() => connection.close(0));
  return connection;
}

/** What the host says of itself. */
export async function statusOf(place: PiPlace): Promise<HostStatus> {
  const connection = await client(place, { role: "observer" });
  const status = await connection.request<HostStatus>("host/status", {});
  await connection.close(1_000);
  return status;
}

/** A root session without a Pi: it says what one says, and assigns. */
export class Root {
  readonly connection: Connection;
  readonly session: string;
  readonly place: PiPlace;

  constructor(place: PiPlace, session: string, connection: Connection) {
    this.place = place;
    this.session = session;
    this.connection = connection;
  }

  /** @param says what it says of itself beside what one says in this place. */
  static async of(place: PiPlace, session = "root-session", as = version, says: object = {}): Promise<Root> {
    const root = new Root(place, session, await client(place, { role: "root", session }, as));
    await root.here(says);
    return root;
  }

  here(says: object = {}): Promise<{ pid: number; isNews: boolean }> {
    const { cwd, env } = this.place;
    return this.connection.request("root/here", {
      cwd,
      trusted: false,
      model: "scripted/script",
      pi: { node: process.execPath, cli: piCli },
      env,
      dialogs: "ask",
      hasUI: true,
      ...says,
    });
  }

  /** What the tool answers: refusals too. */
  subagent(request: object): Promise<any> {
    const { cwd } = this.place;
    return this.connection.request("owner/subagent", { owner: { id: this.session }, cwd, request });
  }

  async assign(label: string, task: string, more: object = {}): Promise<void> {
    const answer = await this.subagent({ action: "assign", agent: "generalist", label, task, ...more });
    if (answer.ok !== true) throw new Error(`"${label}" was not assigned: ${JSON.stringify(answer)}`);
  }

  async worker(label: string): Promise<any> {
    const { workers } = await this.subagent({ action: "list" });
    return workers.find((worker: { label: string }) => worker.label === label);
  }
}

/** The refusal of a call. */
export async function refused(call: Promise<unknown>): Promise<HerdError> {
  const error = await call.then(
    (answer) => new Error(`it was not refused: ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof HerdError)) throw error;
  return error;
}

/** What must not stay when nothing runs: processes, prompts, records, and sockets. */
export function leftBehind(place: PiPlace): string[] {
  const filesIn = (name: string) => {
    const folder = join(place.herd, name);
    return existsSync(folder) ? readdirSync(folder).map((file) => join(name, file)) : [];
  };
  return [
    ...place.processes().map(({ command }) => command),
    ...filesIn("prompts"),
    ...filesIn("processes"),
    ...filesIn("run"),
    ...(existsSync(join(place.herd, "control")) ? ["control"] : []),
  ];
}
