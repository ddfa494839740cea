import { mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished } from "vitest";
import {
  connectHerd,
  createHerd,
  HerdError,
  type AgentDefinition,
  type Herd,
  type HerdOptions,
} from "../../runtime/index.ts";

export const agents = {
  greeter: {
    description: "Asks whom to greet",
    run: async (task, worker) => `${task}, ${await worker.askOwner({ question: "Whom?" })}!`,
  },
  echo: { description: "Says its task", run: async (task) => task },
  where: {
    description: "Says where it works",
    run: async (_task, worker) => worker.files.map(({ path }) => path).join(),
  },
  parent: {
    description: "Has a child that asks",
    subagents: ["greeter"],
    run: async (_task, worker) => {
      const child = await worker.assign({ agent: "greeter", task: "Hi", onQuestion: worker.escalate });
      return (await child.result()).text;
    },
  },
} satisfies Record<string, AgentDefinition>;

const herds: Herd[] = [];
afterEach(async () => {
  // Clients first: a herd that closes would only tell them so.
  for (const herd of herds.splice(0).toReversed()) await herd.close({ graceMs: 0 }).catch(() => undefined);
});

export function folder(name = "herd-control-"): string {
  const made = mkdtempSync(join(tmpdir(), name));
  onTestFinished(() => rm(made, { recursive: true, force: true, maxRetries: 5 }));
  return made;
}

export async function open(
  options: Partial<HerdOptions<Record<string, AgentDefinition>>> = {},
): Promise<{ herd: Herd; directory: string }> {
  const directory = options.directory ?? folder();
  const herd = await createHerd({ agents, tickMs: 0, ...options, directory });
  herds.push(herd);
  return { herd, directory };
}

export async function connected(directory: string): Promise<Herd> {
  const herd = await connectHerd({ directory });
  herds.push(herd);
  return herd;
}

export const refusal = async (call: Promise<unknown>): Promise<HerdError> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HerdError);
  return error as HerdError;
};

export const socketOf = (directory: string) => readFileSync(join(directory, "control"), "utf8").trim();

/** A client that says whatever a test wants it to say. */
export async function rude(directory: string): Promise<{ socket: Socket; said: Promise<string> }> {
  const socket = connect(socketOf(directory));
  onTestFinished(() => void socket.destroy());
  await new Promise((done, failed) => socket.once("connect", done).once("error", failed));
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => (text += part));
  socket.on("error", () => undefined);
  return { socket, said: new Promise((done) => socket.once("close", () => done(text))) };
}

export const hello = `${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "hello", params: { protocol: 1, pid: 1 } })}\n`;

/** Looks again and again until something is there. */
export async function until<T>(look: () => T | Promise<T>): Promise<T> {
  const deadline = Date.now() + 25_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error("waited in vain");
    await new Promise((done) => setImmediate(done));
  }
}
