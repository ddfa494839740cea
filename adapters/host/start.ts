import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Connection, HerdError, messageOf } from "../../runtime/client.ts";
import { hanging } from "./hanging.ts";
import { herdProgram, hostCommand } from "./herd-command.ts";
import { findNode } from "./node.ts";
import { knownKey, readKey, tokenFor, type Bearer } from "./tokens.ts";

/** How long a host may take until it answers, in milliseconds: also one whose place another one is just leaving. */
const START_MS = 20_000;
/** How long one of another version may take to make room, which it does as soon as no worker's turn runs. */
const ROOM_MS = 5_000;
/** Between two looks for it. */
const LOOK_MS = 20;

/** As much of what a start says is read. */
const SAID_BYTES = 64 * 1024;

/** Who connects to the host of a folder. */
export interface Visitor {
  /** The host's folder. */
  directory: string;
  bearer: Bearer;
  /** The version of the client's package: an older host makes room for a newer one. */
  version: string;
  env?: NodeJS.ProcessEnv;
}

/** Connects to the host of a folder if it runs and answers. @throws HerdError what else keeps it from that. */
export async function connectHost(visitor: Visitor): Promise<Connection | undefined> {
  try {
    return await open(visitor);
  } catch (error) {
    if (error instanceof HerdError && error.reason === "not_running") return undefined;
    throw error;
  }
}

/** The same for a person, to whom one that hangs is not away. @throws HerdError `not_answering` as well. */
export async function findHost(visitor: Visitor): Promise<Connection | undefined> {
  try {
    return await open(visitor);
  } catch (error) {
    const hangs = hanging(error, visitor.directory);
    if (hangs) throw hangs;
    if (error instanceof HerdError && error.reason === "not_running") return undefined;
    throw error;
  }
}

/** @returns undefined where no host ever was: who only looks makes nothing. */
async function open({ directory, bearer, version }: Visitor): Promise<Connection | undefined> {
  const key = await usable(directory, knownKey);
  if (key === undefined) return undefined;
  return Connection.open(directory, { token: tokenFor(key, bearer), version });
}

/**
 * Connects to the host of a folder, and starts it when it does not run: a process of its own that outlives this one.
 * @throws HerdError `host_not_started` with what it said, `node_too_old`, or why it does not let this client in.
 */
export async function reachHost(visitor: Visitor): Promise<{ connection: Connection; started: boolean }> {
  const running = await connectOnceThereIsRoom(visitor);
  if (running) return { connection: running, started: false };
  const host = await start(visitor);
  try {
    return await answering(host, visitor);
  } finally {
    if (host.said !== undefined) closeSync(host.said);
  }
}

async function answering(host: Starting, visitor: Visitor): Promise<{ connection: Connection; started: boolean }> {
  const until = Date.now() + START_MS;
  for (;;) {
    const connection = await connectHost(visitor);
    if (connection) return { connection, started: connection.welcome.pid === host.child.pid };
    const { exitCode, signalCode } = host.child;
    // One that found another one in its place leaves with 0: that is the one to wait for.
    const isOver = host.failed !== undefined || signalCode !== null || (exitCode !== null && exitCode !== 0);
    if (isOver || Date.now() >= until) throw notStarted(visitor.directory, host);
    await pause(LOOK_MS);
  }
}

/** An older host that speaks another version of the protocol leaves by itself, unless its workers are at work. */
async function connectOnceThereIsRoom(visitor: Visitor): Promise<Connection | undefined> {
  for (const until = Date.now() + ROOM_MS; ;) {
    try {
      return await connectHost(visitor);
    } catch (error) {
      if (!(error instanceof HerdError) || error.reason !== "control_version") throw error;
      if (Date.now() >= until) throw otherHost(visitor.directory, error);
    }
    await pause(LOOK_MS);
  }
}

function otherHost(directory: string, cause: HerdError): HerdError {
  return new HerdError({
    category: cause.category,
    reason: cause.reason,
    message: `The background process that serves ${directory} is of another version of pi-herd than this program`,
    nextAction:
      "wait until its workers have finished their turns, when an older one makes room by itself, or end it with " +
      `${hostCommand(directory, ["stop"])} and try again; where it is the newer one, update pi-herd here`,
    operation: "hello",
    cause,
  });
}

interface Starting {
  child: ChildProcess;
  /** What it says before it has a log is there to be read. */
  said: number | undefined;
  failed?: unknown;
}

async function start({ directory, env = process.env }: Visitor): Promise<Starting> {
  const node = await findNode(env);
  await usable(directory, readKey);
  const said = nameless();
  const child = spawn(node, [herdProgram(), "serve", "--directory", directory], {
    cwd: directory,
    detached: true,
    stdio: ["ignore", "ignore", said ?? "ignore"],
    env,
  });
  const starting: Starting = { child, said };
  child.once("error", (error) => (starting.failed = error));
  child.unref();
  return starting;
}

/** A file without a name: not in the host's folder, whose disk may be what is full, and gone with those who have it open. */
function nameless(): number | undefined {
  try {
    const path = join(tmpdir(), `herd-start-${randomUUID()}`);
    const file = openSync(path, "wx+", 0o600);
    rmSync(path, { force: true });
    return file;
  } catch {
    return undefined;
  }
}

function readAll(file: number): string {
  const buffer = Buffer.alloc(SAID_BYTES);
  return buffer.toString("utf8", 0, readSync(file, buffer, 0, SAID_BYTES, 0));
}

/** The key of the folder, with what is wrong with that folder in words. */
async function usable<Key>(directory: string, keyOf: (directory: string) => Promise<Key>): Promise<Key> {
  try {
    return await keyOf(directory);
  } catch (error) {
    throw unusable(directory, error);
  }
}

/** The folder of a host cannot be read or written. */
export function unusable(directory: string, cause: unknown): HerdError {
  if (cause instanceof HerdError) return cause;
  return new HerdError({
    category: "internal_failure",
    reason: "host_not_started",
    message: `The folder of the background process, ${directory}, cannot be used: ${messageOf(cause)}`,
    nextAction: "make room on its disk and let this user write there, or set PI_CODING_AGENT_DIR to another folder",
    operation: "serve",
    cause,
  });
}

function notStarted(directory: string, { child, said, failed }: Starting): HerdError {
  const lines = (said === undefined ? "" : readAll(said)).split("\n").filter((line) => line.trim() !== "");
  const end =
    child.exitCode === null ? `no answer within ${START_MS / 1_000} s` : `it ended with code ${child.exitCode}`;
  const why = failed === undefined ? (lines.at(-1) ?? end) : messageOf(failed);
  return new HerdError({
    category: "internal_failure",
    reason: "host_not_started",
    message: `The background process of the herd did not start: ${why.replace(/ Next: .*$/, "").slice(0, 500)}`,
    nextAction: `look with ${hostCommand(directory, ["doctor", "--pi"])} what is wrong, mend it, and try again`,
    operation: "serve",
    details: { directory, output: lines.slice(-20) },
  });
}
