/**
 * The process under load: opens the herd and drives its owners until somebody ends it. What it acknowledges and what
 * it is told goes into the ledger.
 *
 *     node test/crash/load.ts DIRECTORY SESSION SEED
 *
 * `HERD_FAILPOINT=name:n` ends it at the n-th pass of a named point.
 */
import { writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import "../../runtime/testing/index.ts";
import type { Assignment } from "../../runtime/index.ts";
import { Client, isOver, OWNERS, replyVariously, type Behaviour } from "./client.ts";
import type { Assigned } from "./history.ts";
import { Ledger } from "./ledger.ts";
import { ledgerOf, openCrashHerd } from "./open.ts";
import { Random } from "./random.ts";
import { Shop } from "./shop.ts";
import { driveShops } from "./shop-load.ts";
import { AGENT_NAMES, makeWork, type Order } from "./work.ts";

/** Assignments of one owner that are open at once. */
const MOST_OPEN = 8;

const [directory = "", session = "0", seed = "0"] = process.argv.slice(2);
const ledger = new Ledger(ledgerOf(directory), Number(session), "load");
const random = new Random(Number(seed), Number(session));

// Whoever started it is gone: nobody would ever end it.
process.stdin.on("close", () => process.exit(1)).resume();

writeSync(1, "opening\n");
const client = new Client(await openCrashHerd(directory, ledger, random, { tight: true }), ledger);
writeSync(1, "ready\n");
const { history } = ledger;
for (const [index, owner] of OWNERS.entries()) void drive(owner, index);
driveShops(new Shop(client.herd, ledger), ledger, random);

/** How an owner hears of its work in this process. */
type Hearing = "receiver" | "questions" | "results" | "handles" | "nobody";

async function drive(owner: string, index: number): Promise<void> {
  let hearing: Hearing = random.weighted({ receiver: 5, questions: 1, results: 1, handles: 2, nobody: 1 });
  const attach = () => {
    const questions = hearing === "receiver" || hearing === "questions";
    const results = hearing === "receiver" || hearing === "results";
    if (questions || results) client.receive(owner, behaviour(), { questions, results });
  };
  attach();
  for (let number = 1; ; number++) {
    await pause(random.between(0, 12));
    const own = history.of(owner).works;
    const open = own.filter((work) => !isOver(work));
    switch (random.weighted({ assign: 8, repeat: 2, answer: 5, doubt: 2, close: 1, read: 3, attach: 0.2 })) {
      case "assign": {
        if (open.length >= MOST_OPEN) break;
        const handle = await assign(owner, `${index}-${session}-${number}`);
        if (handle && (hearing === "handles" || random.chance(0.1))) void follow(owner, handle);
        break;
      }
      case "repeat":
        await repeat(owner, own);
        break;
      case "answer":
        await answerWhatIsListed(owner);
        break;
      case "doubt":
        await doubt(owner);
        break;
      case "close":
        await closeOne(owner, open);
        break;
      case "read":
        await read(hearing, random.chance(0.8) ? open : own);
        break;
      case "attach":
        if (hearing === "handles") hearing = "receiver";
        attach();
        break;
    }
  }
}

/** Resolves, throws, dawdles, answers later or never. */
function behaviour(): Behaviour {
  return {
    async question({ reply }) {
      switch (random.weighted({ answer: 10, dawdle: 2, throw: 2, answerAndThrow: 1, later: 2, leave: 1 })) {
        case "answer":
          return replyVariously(random, client, reply);
        case "dawdle":
          await pause(random.between(5, 80));
          return replyVariously(random, client, reply);
        case "throw":
          throw new Error("cannot say yet");
        case "answerAndThrow":
          await reply({ message: client.newMessage() });
          throw new Error("said it, and fell");
        case "later":
          void pause(random.between(5, 150)).then(() => replyVariously(random, client, reply));
          return;
        case "leave":
          return;
      }
    },
    async result() {
      const how = random.weighted({ take: 8, dawdle: 2, throw: 2 });
      if (how === "dawdle") await pause(random.between(5, 80));
      if (how === "throw") throw new Error("mailbox full");
    },
  };
}

async function assign(owner: string, tag: string): Promise<Assignment | undefined> {
  const agent = random.pick(AGENT_NAMES);
  const work = makeWork(random, agent, `w${tag}`);
  const order: Order = { agent, work };
  if (random.chance(0.5)) order.id = `id-${tag}`;
  const label = random.weighted({ none: 4, closable: agent === "parent" ? 8 : 2, contested: 1 });
  if (label === "closable") order.label = `c${tag}`;
  if (label === "contested") order.label = `slot-${random.between(1, 3)}`;
  if (agent === "sleeper" || random.chance(0.05)) order.deadlineMs = random.between(20, 400);
  if (order.id === undefined || random.chance(0.8)) return client.assign(owner, order);
  return (await Promise.all([client.assign(owner, order), client.assign(owner, order)]))[0];
}

/** Sends an assignment again under its id: one of this process, or one that an earlier process may not have heard of. */
async function repeat(owner: string, own: readonly Assigned[]): Promise<void> {
  const unheard = own.filter(({ id, requestId }) => id !== undefined && requestId === undefined);
  const named = own.filter(({ id }) => id !== undefined);
  const order = unheard.length > 0 && random.chance(0.7) ? random.pick(unheard) : random.pick(named);
  if (order === undefined) return;
  if (order.requestId !== undefined && random.chance(0.1)) {
    await client.assign(owner, order, JSON.stringify({ name: `not ${order.work.name}`, acts: [] }));
  } else {
    await client.assign(owner, order);
  }
}

/** Answers from the list, as a person does: its own workers' questions, by question or by label. */
async function answerWhatIsListed(owner: string): Promise<void> {
  for (const { question, parentLabel, label } of await client.list(owner)) {
    if (question === undefined || parentLabel !== undefined || random.chance(0.6)) continue;
    const target = random.chance(0.8) ? { askId: question.askId } : { label };
    await replyVariously(random, client, (how) => client.reply(owner, target, how));
  }
}

/** Replies again to what was answered, and sends again what an earlier process may not have heard of. */
async function doubt(owner: string): Promise<void> {
  const { attempts, answered } = history.of(owner);
  const earlier = attempts.filter((attempt) => attempt.session < ledger.session && attempt.askId !== undefined);
  const again = random.chance(0.3) ? earlier.at(-random.between(1, 5)) : undefined;
  if (again?.askId !== undefined && again.id !== undefined) {
    return client.reply(owner, { askId: again.askId }, { message: again.message, id: again.id });
  }
  const ask = random.pick(answered.slice(-30));
  if (ask?.accepted === undefined) return;
  const { askId } = ask;
  const { id, message } = ask.accepted;
  const how = random.weighted({ same: 1, other: 1, reused: 1 });
  if (how === "same" && id !== undefined) return client.reply(owner, { askId }, { message, id });
  const other = { message: client.newMessage() };
  return client.reply(owner, { askId }, how === "reused" && id !== undefined ? { ...other, id } : other);
}

async function closeOne(owner: string, open: readonly Assigned[]): Promise<void> {
  const closable = open.filter(({ label, requestId }) => label?.startsWith("c") && requestId !== undefined);
  const work = random.pick(closable);
  if (work?.label !== undefined) await client.close(owner, work.work.name, work.label);
}

async function read(hearing: Hearing, works: readonly Assigned[]): Promise<void> {
  const work = random.pick(works);
  if (work?.requestId === undefined) return;
  const handle = await client.herd.assignment(work.requestId);
  if (hearing === "handles" || random.chance(0.2)) void client.result(handle);
  else await client.look(handle);
}

async function follow(owner: string, handle: Assignment): Promise<void> {
  await client.follow(owner, handle, random.pick(["next", "iterate"]), async (askId) => {
    if (random.chance(0.2)) return;
    await pause(random.between(0, 30));
    await replyVariously(random, client, (how) => client.reply(owner, { askId }, how));
  });
}
