import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createHerd } from "pi-herd";

/** A job that a schedule runs at night, and a program of the morning that mails what came of it. */
const subject = { scope: "stock", keys: { job: "count" } };
const count = { description: "Counts the stock", run: async () => "12 crates" };

async function shop(directory: string) {
  const herd = await createHerd({ directory, agents: { count }, tickMs: 0 });
  onTestFinished(() => herd.close());
  await herd.door({
    name: "nightly-count",
    kind: "schedule",
    cron: "30 3 * * *",
    timezone: "America/Lima",
    subject,
    target: { agent: "count", task: "Count the stock" },
  });
  return herd;
}

test("a nightly job runs once a night, also a missed one, and each outcome is mailed once in the morning", async () => {
  const directory = await mkdtemp(join(tmpdir(), "herd-nightly-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const mailed: string[] = [];
  const morning = async (herd: Awaited<ReturnType<typeof shop>>) => {
    for (let outcome; (outcome = await herd.take(subject));) mailed.push(`${outcome.label} ${outcome.text}`);
  };
  const counted = async (herd: Awaited<ReturnType<typeof shop>>, outcomes: number) => {
    while ((await herd.parked(subject)).length < outcomes) await new Promise(setImmediate);
  };
  const after = (days: number) => new Date(Date.now() + days * 24 * 60 * 60 * 1000);

  const first = await shop(directory);
  await first.tick(after(1));
  await counted(first, 1);
  await first.close();

  // Three nights without a process are one fire.
  const second = await shop(directory);
  await second.tick(after(4));
  await second.tick(after(4));
  await counted(second, 2);
  await morning(second);
  await morning(second);
  expect(mailed).toEqual(["count 12 crates", "count 12 crates"]);
  expect(await second.doors()).toMatchObject([{ name: "nightly-count", kind: "schedule" }]);
});
