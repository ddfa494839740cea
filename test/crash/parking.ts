/**
 * `node parking.ts PLAY begin DIRECTORY`: leaves something parked, as the play needs it.
 * `node parking.ts PLAY act DIRECTORY`: does one thing with it, which a failpoint may end.
 * `node parking.ts PLAY again DIRECTORY...`: looks at what was left there, does the same again, then what comes too late
 * by now, and looks once more.
 *
 * Prints a line of JSON for each directory. What workers and events did stands in its `log`.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  createHerd,
  HerdError,
  verifyStore,
  type AgentDefinition,
  type Herd,
  type VisitRequest,
  type Worker,
} from "../../runtime/index.ts";
import { watchFailpoints, type Failpoint } from "../../runtime/testing/index.ts";

const SUBJECT = { scope: "shop", keys: { order: "7" } };
/** Asks with this deadline have passed it; nobody notices before the next tick. */
const PAST = "2020-01-01T00:00:00Z";

/** Something done with what is parked. */
interface Play {
  /** What has to stand before. */
  begin: Pick<VisitRequest, "start" | "receivesOutcome">;
  /** @returns what whoever does it is told, the same each time. */
  act(herd: Herd): Promise<unknown>;
  /** What comes after it, one after the other: mostly too late. */
  rivals: ((herd: Herd) => Promise<unknown>)[];
}

/** What `again` found. */
export interface Looked {
  before: Seen;
  /** What whoever did it again was told, and what those who were too late. */
  told: unknown;
  rivals: unknown[];
  after: Seen;
}

/** What stands in a store that nobody has open: `problems` as `herd verify` names them. */
export interface Seen {
  problems: string[];
  /** Label and status of what is parked. */
  entries: string[];
  workers: number;
}

/** What `act` came to. */
export interface Acted {
  told: unknown;
  /** How often it passed each point. */
  passes: Partial<Record<Failpoint, number>>;
}

const [name = "", how = "", ...directories] = process.argv.slice(2);
/** The one whose turn it is. */
let directory = "";
const log = (line: string) => appendFileSync(join(directory, "log"), `${line}\n`);

/** A step with an effect outside the store, before and after it is journalled. */
async function effect(worker: Worker, name: string): Promise<void> {
  await worker.step(name, async () => log(`effect ${name}`));
  log(`journalled ${name}`);
}

async function ask(task: string, worker: Worker): Promise<string> {
  await effect(worker, `before-${task}`);
  const asks = (worker.input ?? [{ question: `${task}?`, ...(task === "late" && { expiresAt: PAST }) }]) as object[];
  const answers = await Promise.all(asks.map((each) => worker.ask(each)));
  await effect(worker, `after-${task}`);
  return answers.map((answer) => (typeof answer === "string" ? answer : JSON.stringify(answer))).join(" ");
}

const agents = {
  asks: { description: "Asks, between two effects", run: ask },
  parent: {
    description: "Has a child that asks",
    subagents: ["asks"],
    run: async (task, worker) => {
      await effect(worker, "delegated");
      return `parent: ${(await (await worker.assign({ agent: "asks", task })).result()).text}`;
    },
  },
  plain: { description: "Ends at once", run: async (task) => `done ${task}` },
} satisfies Record<string, AgentDefinition>;

/** The ids of what was parked in the beginning, and of the run. */
interface Ids {
  asks: string[];
  run: string;
}
const noted = () => join(directory, "ids.json");
const ids = (): Ids => JSON.parse(readFileSync(noted(), "utf8"));
const first = () => ids().asks[0] ?? "";

const visit = (herd: Herd, request: Omit<VisitRequest, "subject">) => herd.visit({ subject: SUBJECT, ...request });
const resume = (payload: string) => ({ resume: [{ id: first(), payload }] });
const rival = (herd: Herd) => told(visit(herd, resume("no")));
const take = (herd: Herd) => told(visit(herd, { take: ids().run }));
const statuses = async (herd: Herd) => (await herd.parked(SUBJECT)).map(({ status }) => status);

/** What came of a call, or what it was refused as. */
async function told(call: Promise<{ kind: string; result?: unknown; cancelled: string[] }>): Promise<unknown> {
  try {
    const { kind, result = "", cancelled } = await call;
    return [kind, result, cancelled.length > 0 ? `${cancelled.length} cancelled` : ""].filter(Boolean).join(" ");
  } catch (error) {
    if (!(error instanceof HerdError)) throw error;
    const failure = error.details?.["error"] as { code?: string } | undefined;
    return [error.reason, failure?.code].filter(Boolean).join(" ");
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 10_000; !(await isSo()); await pause(2)) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`);
  }
}

const plays: Record<string, Play> = {
  start: {
    begin: { start: { agent: "plain", task: "before" } },
    act: (herd) => told(visit(herd, { id: "act", start: { agent: "asks", task: "a" } })),
    rivals: [],
  },
  resume: {
    begin: { start: { agent: "asks", task: "a" } },
    act: (herd) => told(visit(herd, { id: "act", ...resume("yes") })),
    rivals: [rival, take],
  },
  nested: {
    begin: { start: { agent: "parent", task: "a" } },
    act: (herd) => told(visit(herd, { id: "act", ...resume("yes") })),
    rivals: [rival, take],
  },
  group: {
    begin: {
      start: {
        agent: "asks",
        task: "a",
        input: [
          { question: "1?", groupId: "g" },
          { question: "2?", groupId: "g" },
          { question: "person?", groupId: "g", to: "user" },
        ],
      },
    },
    async act(herd) {
      const [one = "", two = "", person = ""] = ids().asks;
      const items = [
        { id: one, payload: "one" },
        { id: two, payload: "two" },
      ];
      await visit(herd, { id: "act", resume: items, waits: false });
      await herd.inbox.answer({ askId: person, answer: "Ada", id: "act" });
      await until("it has ended", async () => (await statuses(herd))[0] === "finished");
      return (await herd.parked(SUBJECT))[0]?.result;
    },
    rivals: [rival, take, take],
  },
  unreceived: {
    begin: { start: { agent: "asks", task: "a" } },
    act: (herd) => told(visit(herd, { id: "act", ...resume("yes"), receivesOutcome: false })),
    rivals: [rival, take, take],
  },
  take: {
    begin: { start: { agent: "plain", task: "before" }, receivesOutcome: false },
    act: (herd) => told(visit(herd, { id: "act", take: ids().run })),
    rivals: [take],
  },
  cancel: {
    begin: { start: { agent: "parent", task: "a" } },
    act: (herd) => told(visit(herd, { id: "act", cancel: [first()] })),
    rivals: [rival, take],
  },
  "cancel-received": {
    begin: { start: { agent: "parent", task: "a" } },
    async act(herd) {
      herd.receive(
        { scope: SUBJECT.scope },
        {
          onResult: ({ label, error, attempt }) => log(`told ${label} ${error?.code} ${attempt}`),
        },
      );
      const cancelled = await told(visit(herd, { id: "act", cancel: [first()] }));
      await until("its receiver has it", async () => (await herd.owners()).length === 0);
      return cancelled;
    },
    rivals: [rival, take],
  },
  "expiry-kill": {
    begin: { start: { agent: "parent", task: "late" } },
    async act(herd) {
      await herd.tick();
      await until("it has failed", async () => (await statuses(herd))[0] === "failed");
      return (await herd.parked(SUBJECT)).map(({ label, error }) => `${label} ${(error as { code: string }).code}`);
    },
    rivals: [rival, take, take],
  },
  "expiry-resume": {
    begin: { start: { agent: "asks", task: "a", input: [{ question: "a?", expiresAt: PAST, onExpiry: "resume" }] } },
    async act(herd) {
      await herd.tick();
      await until("it has ended", async () => (await statuses(herd))[0] === "finished");
      return (await herd.parked(SUBJECT))[0]?.result;
    },
    rivals: [rival, take, take],
  },
  drop: {
    begin: { start: { agent: "plain", task: "before" }, receivesOutcome: false },
    async act(herd) {
      await pause(5);
      await herd.tick();
      return statuses(herd);
    },
    rivals: [take],
  },
};

async function open({ passive = false } = {}): Promise<Herd> {
  const herd = await createHerd({
    directory: join(directory, "herd"),
    agents,
    passive,
    tickMs: 0,
    waitForLockMs: 10_000,
    retention: { outcomesMs: name === "drop" ? 1 : 60_000 },
  });
  herd.on("expired", ({ label }) => log(`expired ${label}`));
  herd.on("dropped", ({ label, why }) => log(`dropped ${label} ${why}`));
  return herd;
}

/** As it is on disk, without anything that goes on. */
async function see(): Promise<Seen> {
  const { problems } = await verifyStore(join(directory, "herd"));
  const herd = await open({ passive: true });
  const entries = (await herd.parked(SUBJECT)).map(({ label, status }) => `${label} ${status}`).toSorted();
  const workers = (await herd.owners()).reduce((sum, each) => sum + each.workers, 0);
  await herd.close();
  return { problems: problems.map(({ message }) => message), entries, workers };
}

async function begin({ begin }: Play): Promise<void> {
  const herd = await open();
  const { requestId: run = "" } = await visit(herd, begin);
  const asking = (await herd.parked(SUBJECT)).filter(({ status }) => status === "asking");
  // Of those of one moment any may be the first in the list.
  asking.sort((a, b) => ((a.question ?? "") < (b.question ?? "") ? -1 : 1));
  writeFileSync(noted(), JSON.stringify({ asks: asking.map(({ id }) => id), run } satisfies Ids));
  await herd.close();
}

async function act({ act }: Play): Promise<Acted> {
  const passes: Acted["passes"] = {};
  // An armed point has the only place there is.
  if (!process.env["HERD_FAILPOINT"]) watchFailpoints((point) => (passes[point] = (passes[point] ?? 0) + 1));
  const herd = await open();
  const told = await act(herd);
  await herd.close();
  return { told, passes };
}

async function again({ act, rivals }: Play): Promise<Looked> {
  const before = await see();
  const herd = await open();
  const told = await act(herd);
  const late: unknown[] = [];
  for (const rival of rivals) late.push(await rival(herd));
  await herd.close();
  return { before, told, rivals: late, after: await see() };
}

const play = plays[name] as Play;
for (directory of directories) {
  const came = how === "begin" ? await begin(play) : how === "act" ? await act(play) : await again(play);
  if (came) console.log(JSON.stringify(came));
}
