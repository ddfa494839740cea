import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { folder } from "../../test/support/control.ts";
import {
  connectHerd,
  createHerd,
  HerdError,
  levelStore,
  verifyStore,
  type AgentDefinition,
  type Herd,
} from "../index.ts";
import { createTestHerd } from "../testing/index.ts";

const agents = {
  echo: { description: "Says its task", run: async (task) => task },
  asks: { description: "Asks", run: (_task, worker) => worker.askOwner({ question: "Go on?" }) },
} satisfies Record<string, AgentDefinition>;

async function open(directory: string): Promise<Herd> {
  const herd = await createHerd({ directory, agents, tickMs: 0 });
  onTestFinished(() => herd.close({ graceMs: 0 }));
  return herd;
}

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => "done",
    (error: unknown) => (error instanceof HerdError ? error.reason : error),
  );

test("a backup is a store of its own: its work goes on there, and what came later is not in it", async () => {
  const root = folder();
  const herd = await open(join(root, "herd"));
  const owner = herd.owner("me");
  const done = await owner.assign({ agent: "echo", task: "A" });
  const { resultPath = "" } = await done.result();
  const asking = await owner.assign({ agent: "asks", task: "B" });
  await asking.next();
  const receipt = await herd.backup(join(root, "copy"));
  expect(receipt).toMatchObject({ directory: join(root, "copy"), rows: expect.any(Number) });
  expect(receipt.rows).toBeGreaterThan(5);
  for (const name of [".", "store", "results"]) {
    expect(statSync(join(receipt.directory, name)).mode & 0o777).toBe(0o700);
  }
  expect(existsSync(resultPath.replace(join(root, "herd"), receipt.directory))).toBe(true);
  const later = await owner.assign({ agent: "echo", task: "C" });

  // The copy says nothing of where the herd listens or who has it.
  expect(existsSync(join(receipt.directory, "control"))).toBe(false);
  expect(existsSync(join(receipt.directory, "holder.json"))).toBe(false);
  const copy = await open(receipt.directory);
  expect((await (await copy.assignment(done.requestId)).result()).text).toBe("A");
  await copy.owner("me").reply({ label: asking.label, message: "yes" });
  expect((await (await copy.assignment(asking.requestId)).result()).text).toBe("yes");
  expect(await reasonOf(copy.assignment(later.requestId))).toBe("target_not_found");
  expect((await asking.status()).state).toBe("blocked");
});

test("a backup taken while assignments are accepted holds each of them whole or not at all", async () => {
  const root = folder();
  const herd = await open(join(root, "herd"));
  const runs = Array.from({ length: 200 }, (_, n) => herd.owner(`o${n % 7}`).assign({ agent: "asks", task: `${n}` }));
  const copies = await Promise.all([herd.backup(join(root, "a")), herd.backup(join(root, "b"))]);
  await Promise.all(runs);
  for (const { directory } of copies) {
    const copy = await open(directory);
    for (const { id, workers } of await copy.owners()) {
      const listed = (await copy.owner(id).list()).workers;
      expect(listed).toHaveLength(workers);
      expect(listed.filter(({ state }) => state === "unknown")).toEqual([]);
    }
  }
});

test("of two backups to one folder at once, one is whole and the other is refused", async () => {
  const root = folder();
  const herd = await open(join(root, "herd"));
  for (let n = 0; n < 20; n++) await herd.owner("me").assign({ agent: "asks", task: `${n}` });
  const both = await Promise.allSettled([herd.backup(join(root, "copy")), herd.backup(join(root, "copy"))]);
  expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect((await verifyStore(join(root, "copy"))).problems).toEqual([]);
  expect(readdirSync(root).toSorted()).toEqual(["copy", "herd"]);
});

test("owners are listed though a row of theirs cannot be read", async () => {
  const directory = join(folder(), "herd");
  const herd = await open(directory);
  await herd.owner("me").assign({ agent: "asks", task: "A" });
  await (await herd.owner("me").assign({ agent: "asks", task: "B" })).next();
  await herd.close();
  const store = levelStore(directory);
  await store.open();
  const rows = await store.range({ gte: "a!", lt: "e" });
  const broken = rows.filter(([key]) => key.startsWith("d!") || /^a![^!]*!$/.test(key));
  expect(broken.length).toBeGreaterThan(1);
  await store.batch(
    broken.map(([key]) => ({ type: "put", key, value: "{" })),
    { sync: true },
  );
  await store.close();
  const again = await open(directory);
  expect(await again.owners()).toMatchObject([{ id: "me", workers: 2, asking: 2, results: 0 }]);
});

test("a connected herd backs up where the client means", async () => {
  const root = folder();
  await open(join(root, "herd"));
  const client = await connectHerd({ directory: join(root, "herd") });
  onTestFinished(() => client.close());
  expect((await client.backup(join(root, "copy"))).directory).toBe(join(root, "copy"));
  expect(existsSync(join(root, "copy", "store", "CURRENT"))).toBe(true);
});

test.each<[string, (root: string) => string]>([
  ["its own folder", (root) => join(root, "herd")],
  ["a folder inside of it", (root) => join(root, "herd", "copy")],
  ["a folder around it", (root) => root],
  [
    "its own folder under another name",
    (root) => {
      symlinkSync(join(root, "herd"), join(root, "link"));
      return join(root, "link");
    },
  ],
  [
    "a folder with something in it",
    (root) => {
      mkdirSync(join(root, "full"));
      writeFileSync(join(root, "full", "letter"), "dear");
      return join(root, "full");
    },
  ],
  [
    "a file",
    (root) => {
      writeFileSync(join(root, "file"), "");
      return join(root, "file");
    },
  ],
])("a backup to %s is refused, and nothing is written", async (_, target) => {
  const root = folder();
  const herd = await open(join(root, "herd"));
  const directory = target(root);
  const before = readdirSync(root);
  expect(await reasonOf(herd.backup(directory))).toBe("bad_backup");
  expect(readdirSync(root)).toEqual(before);
  expect(herd.status).toBe("open");
});

test("a herd without a folder has nothing to back up", async () => {
  const t = await createTestHerd({ agents });
  onTestFinished(() => t.close());
  expect(await reasonOf(t.herd.backup(join(folder(), "copy")))).toBe("no_disk");
});

test("a backup that fails on its way leaves nothing behind", async () => {
  const root = folder();
  const herd = await open(join(root, "herd"));
  // A session file that cannot be copied: a folder stands where a file should.
  mkdirSync(join(root, "herd", "sessions", "odd"), { recursive: true });
  const before = readdirSync(root);
  expect(await reasonOf(herd.backup(join(root, "copy")))).toBe("backup_failed");
  expect(readdirSync(root)).toEqual(before);
});

test("owners with something open are listed with what it is, those without are not", async () => {
  const t = await createTestHerd({ agents });
  onTestFinished(() => t.close());
  await t.herd.owner("asks", { workspace: "w" }).assign({ agent: "asks", task: "A" });
  await t.herd.owner({ scope: "order", keys: { no: "1" } }).assign({ agent: "echo", task: "B" });
  await (await t.herd.owner("done").assign({ agent: "echo", task: "C" })).result();
  await t.idle();
  expect(await t.herd.owners()).toEqual([
    { id: "asks", workspaces: ["w"], workers: 1, asking: 1, results: 0 },
    {
      id: "order?no=1",
      scope: "order",
      keys: { no: "1" },
      workspaces: ["order?no=1"],
      workers: 1,
      asking: 0,
      results: 1,
    },
  ]);
});
