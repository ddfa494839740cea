import { copyFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { folder } from "../../test/support/control.ts";
import { createHerd, levelStore, verifyStore, type AgentDefinition, type Herd, type Operation } from "../index.ts";

const agents = {
  echo: { description: "Says its task", run: async (task) => task },
  asks: { description: "Asks", run: (_task, worker) => worker.askOwner({ question: "Go on?" }) },
  parent: {
    description: "Has a child that asks",
    subagents: ["asks"],
    run: async (_task, worker) => (await (await worker.assign({ agent: "asks", task: "A" })).result()).text,
  },
} satisfies Record<string, AgentDefinition>;

async function open(directory: string): Promise<Herd> {
  const herd = await createHerd({ directory, agents, tickMs: 0 });
  onTestFinished(() => herd.close({ graceMs: 0 }));
  return herd;
}

/** A store with a bit of everything, closed. */
async function stored(): Promise<string> {
  const directory = folder();
  const herd = await open(directory);
  const owner = herd.owner("me");
  await (await owner.assign({ agent: "echo", task: "A" })).result();
  await owner.assign({ agent: "echo", task: "B", deadlineMs: 60_000, id: "b" });
  const asking = await owner.assign({ agent: "asks", task: "C", deadlineMs: 60_000 });
  await asking.next();
  // That of the parent's child; the other one may still be told.
  const asked = new Promise<void>((resolve) => {
    herd.on("question", ({ requestId }) => requestId !== asking.requestId && resolve());
  });
  await owner.assign({ agent: "parent", task: "D" });
  await asked;
  await herd.close();
  return directory;
}

/** Changes rows behind the engine's back. */
async function tamper(directory: string, change: (rows: Map<string, string>) => Operation[]): Promise<void> {
  const store = levelStore(directory);
  await store.open();
  const rows = new Map(await store.range({ gte: "", lt: "\u{10ffff}" }));
  await store.batch(change(rows), { sync: true });
  await store.close();
}

const keysOf = (rows: Map<string, string>, kind: string) =>
  [...rows.keys()].filter((key) => key.startsWith(`${kind}!`));
/** The actors of assignments that have not ended. */
const actorsAtWork = (rows: Map<string, string>) =>
  keysOf(rows, "q").flatMap((key) => {
    const { requestId, tree, path } = JSON.parse(rows.get(key) as string) as Record<string, string>;
    return rows.has(`u!${requestId}`) ? [] : [`a!${tree}!${path}`];
  });
const del = (key: string | undefined): Operation[] => [{ type: "del", key: key as string }];

test("a store that is whole has no problems, and is not touched", async () => {
  const directory = await stored();
  const before = readdirSync(join(directory, "store")).map((name) => [
    name,
    statSync(join(directory, "store", name)).mtimeMs,
  ]);
  const found = await verifyStore(directory);
  expect(found).toEqual({ directory, rows: expect.any(Number), owners: 1, workers: 4, problems: [] });
  expect(found.rows).toBeGreaterThan(20);
  expect(
    readdirSync(join(directory, "store")).map((name) => [name, statSync(join(directory, "store", name)).mtimeMs]),
  ).toEqual(before);
});

test("a store in use is verified while it is written", async () => {
  const directory = folder();
  const herd = await open(directory);
  let working = true;
  const work = (async () => {
    for (let n = 0; working; n++) {
      const run = await herd.owner(`o${n % 5}`).assign({ agent: "asks", task: "x".repeat(10_000) });
      for await (const event of run) if (event.type === "question") await event.question.reply("yes");
    }
  })();
  for (let round = 0; round < 3; round++) expect((await verifyStore(directory)).problems).toEqual([]);
  working = false;
  await work;
});

test.each<[string, (rows: Map<string, string>) => Operation[], RegExp]>([
  ["a missing batch", (rows) => del(keysOf(rows, "s").at(-2)), /^Batch \d+ of \d+ is missing/],
  ["a row of an unknown kind", () => [{ type: "put", key: "Q!1", value: "{}" }], /no rows of this kind/],
  [
    "a row that is no JSON",
    (rows) => [{ type: "put", key: keysOf(rows, "k")[0] as string, value: "{" }],
    /cannot be read/,
  ],
  [
    "a worker that is no worker",
    (rows) => [{ type: "put", key: keysOf(rows, "a").at(-1) as string, value: "{}" }],
    /cannot be read/,
  ],
  ["an assignment without its worker", (rows) => del(actorsAtWork(rows)[0]), /neither a worker nor a result/],
  ["a worker without its assignment", (rows) => del(keysOf(rows, "q")[0]), /not stored/],
  ["a question without its worker", (rows) => del(keysOf(rows, "k")[0]), /not open/],
  ["a label that belongs to nobody", (rows) => del(keysOf(rows, "l")[0]), /belongs to nobody/],
  [
    "a result on its way that there is not",
    (rows) => keysOf(rows, "u").map((key) => ({ type: "del", key })),
    /which has none|neither a worker nor a result/,
  ],
])("%s is a problem that is named", async (_, change, message) => {
  const directory = await stored();
  await tamper(directory, change);
  const { problems } = await verifyStore(directory);
  expect(problems.map((problem) => problem.message).join("\n")).toMatch(message);
});

test("a database that cannot be opened is a problem", async () => {
  const directory = await stored();
  const manifest = readdirSync(join(directory, "store")).find((name) => name.startsWith("MANIFEST-")) as string;
  const file = join(directory, "store", manifest);
  copyFileSync(file, `${file}.kept`);
  writeFileSync(file, readFileSync(file).subarray(0, 3));
  const { problems } = await verifyStore(directory);
  expect(problems).toHaveLength(1);
});

test("a store of another format is refused by name, as everywhere", async () => {
  const directory = await stored();
  await tamper(directory, () => [{ type: "put", key: "m!format", value: "99" }]);
  await expect(verifyStore(directory)).rejects.toMatchObject({ reason: "store_format" });
});

test("a store without the file that LevelDB begins with is damaged, and nothing of it is touched", async () => {
  const directory = await stored();
  rmSync(join(directory, "store", "CURRENT"));
  const before = readdirSync(join(directory, "store"));
  expect((await verifyStore(directory)).problems).toHaveLength(1);
  for (const passive of [true, false]) {
    await expect(createHerd({ directory, passive })).rejects.toMatchObject({
      reason: "store_damaged",
      message: expect.stringContaining("CURRENT"),
    });
  }
  expect(readdirSync(join(directory, "store"))).toEqual(before);
});

test("a verification that is stopped removes its copy", async () => {
  const directory = await stored();
  const temporary = folder();
  vi.stubEnv("TMPDIR", temporary);
  onTestFinished(() => void vi.unstubAllEnvs());
  const reason = new Error("enough");
  await expect(verifyStore(directory, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const stop = new AbortController();
  const stopped = verifyStore(directory, { signal: stop.signal });
  stop.abort(reason);
  await expect(stopped).rejects.toBe(reason);
  expect(readdirSync(temporary)).toEqual([]);
});

test("a folder without a store says so", async () => {
  const directory = folder();
  await expect(verifyStore(directory)).rejects.toMatchObject({ reason: "no_store" });
  await expect(verifyStore(join(directory, "nowhere"))).rejects.toMatchObject({ reason: "no_store" });
  await expect(createHerd({ directory, passive: true })).rejects.toMatchObject({ reason: "no_store" });
});
