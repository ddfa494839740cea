import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { levelStore, type Row } from "../../runtime/index.ts";
import { readRows, type Report } from "./audit.ts";
import { runCampaign } from "./campaign.ts";
import { checkRows } from "./checks.ts";
import { runChild } from "./child.ts";
import { Client } from "./client.ts";
import type { Fact } from "./facts.ts";
import type { History } from "./history.ts";
import { Ledger, readHistory } from "./ledger.ts";
import { ledgerOf, openCrashHerd, storeOf } from "./open.ts";
import { Random } from "./random.ts";
import { Rows } from "./rows.ts";
import { Shop } from "./shop.ts";
import type { Visited } from "./visit-history.ts";

const OWNER = "owner-0";

test("no kill loses or doubles what was acknowledged", { timeout: 60_000 }, async () => {
  const lines: string[] = [];
  const passed = await runCampaign({
    kills: 3,
    failpoints: ["step.after-commit", "ack.before-flush"],
    seed: 2,
    print: (line) => lines.push(line),
  });
  expect(passed ? [] : lines).toEqual([]);
  expect(lines.at(-1)).toBe("5 passed, 0 failed");
});

describe("the auditor", () => {
  let directory: string;
  let stored: Row[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "pi-herd-audit-"));
    await leaveWork(directory);
    stored = await readRows(directory);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** What it finds when the ledger says more, or the rows are others. */
  function found(facts: Fact[], rows: readonly Row[] = stored, options = {}): string {
    const history = readHistory(ledgerOf(directory));
    for (const fact of facts) history.add({ ...fact, s: 2 });
    return checkRows(history, new Rows(rows), options).join("\n");
  }
  const known = (): History => readHistory(ledgerOf(directory));
  const requestOf = (name: string) => known().works.get(name)?.requestId ?? "";
  const visitOf = (part: "start" | "resume") =>
    [...known().visits.visits.values()].find((visit) => visit[part]) as Visited;
  const without = (prefix: string) => stored.filter(([key]) => !key.startsWith(prefix));

  test("finds nothing in a store that kept everything", () => {
    expect(found([])).toBe("");
  });

  test("misses an assignment that was accepted", () => {
    const task = JSON.stringify({ name: "gone", acts: [] });
    const lost = found([
      { fact: "assigning", c: 1, owner: OWNER, name: "gone", agent: "plain", task },
      { fact: "assigned", c: 1, name: "gone", requestId: "R", label: "plain" },
    ]);
    expect(lost).toBe("assignment gone (R) was accepted and is not in the store");
  });

  test("misses a reply that was accepted", () => {
    const askId = `${requestOf("open")}.0001`;
    const lost = found([
      { fact: "replying", c: 1, owner: OWNER, askId, message: "yes" },
      { fact: "replied", c: 1, askId, message: "yes", receipt: "R" },
    ]);
    expect(lost).toBe(`the reply yes to ${askId} was accepted and is not in the store`);
  });

  test("notices a second accepted reply", () => {
    const askId = `${requestOf("answered")}.0001`;
    expect(found([{ fact: "replied", c: 1, askId, message: "other", receipt: "R" }])).toContain(
      `two replies to ${askId} were accepted: answer and then, in process 2, other`,
    );
  });

  test("misses a result whose delivery is gone although nobody got it", () => {
    const lost = found([], without("d!"));
    expect(lost).toContain(`the result of answered (${requestOf("answered")}) is lost`);
    expect(lost).toContain(`the question ${requestOf("open")}.0001 is lost`);
  });

  test("notices an answer that is in a result twice", () => {
    const rows = stored.map(([key, text]): Row => [key, text.replace('?0=answer)"', '?0=answer ?0=answer)"')]);
    expect(found([], rows)).toContain("is answered(?0=answer ?0=answer), it must be answered(?0=answer)");
  });

  test("notices what is given again after it was acknowledged", () => {
    const given: Fact = { fact: "result", via: "receiver", deliveryId: "D", attempt: 2, ...ending("answered") };
    const closing: Fact = { fact: "closing", c: 1, owner: OWNER, name: "open", label: "open" };
    const closed: Fact = { fact: "refused", c: 1, reason: "closing" };
    const again = "the acknowledged result of";
    expect(found([given, given])).not.toContain(again);
    expect(found([given, { fact: "resolved", deliveryId: "D" }, closing, closed, given])).toContain(again);
  });

  test("notices a step that runs again after it was journalled", () => {
    const again = found([{ fact: "effect", name: "stepped", at: "0", value: "2.1" }]);
    expect(again).toMatch(/^step 0 of stepped ran again in process 2 after it was journalled as 1\.1$/m);
  });

  test("misses what an accepted visit did, and notices a second answer", () => {
    const { id, resume = [] } = visitOf("resume");
    const { id: ask = "", payload = "" } = resume[0] ?? {};
    const changed = stored.map(([key, text]): Row => [key, key === `k!${ask}` ? text.replace(payload, "other") : text]);
    const lost = found([], changed);
    expect(lost).toContain(`visit ${id} answered ${ask} with ${payload}, the store has other`);
    expect(lost).toContain(`the answer other to ${ask} is none that any visit gave`);
    const rival = { ...visitOf("resume"), id: "rival", resume: [{ id: ask, payload: "no" }] };
    const told = { action: "resumed", cancelled: [], requestId: "R" };
    const twice = found([
      { fact: "visiting", c: 1, visit: rival },
      { fact: "visited", c: 1, told },
    ]);
    expect(twice).toContain(`two answers to ${ask} were accepted: of visit ${id}, then of rival`);
  });

  test("misses an outcome that nobody took, and notices one that two took", () => {
    const requestId = visitOf("start").told?.requestId ?? "";
    const taking = (id: string): Fact[] => [
      { fact: "visiting", c: 1, visit: { id, order: "0", take: requestId, receives: true, waits: true } },
      { fact: "visited", c: 1, told: { action: "taken", cancelled: [], ended: { status: "completed", text: "x" } } },
    ];
    const gone = without("d!");
    expect(found([], gone)).toContain(`the result of parked (${requestId}) is lost`);
    expect(found(taking("one"), gone)).not.toContain(`the result of parked (${requestId}) is lost`);
    expect(found([...taking("one"), ...taking("two")], gone)).toContain("was given to visits one, two");
  });

  test("notices an ask that is open and in no list, does not count, or never expires", () => {
    expect(found([], without("p!"))).toMatch(/^the ask \S+ is open and in no list$/m);
    expect(found([], without("c!"))).toMatch(/^the ask \S+ is open and does not count$/m);
    expect(found([], without("t!"))).toMatch(/^the ask \S+ would never expire$/m);
    expect(found([], without("k!"))).toMatch(/^a deadline stands for the ask \S+, which is not open$/m);
  });

  test("notices a chain of which a part is left", () => {
    const requestId = known().visits.visits.get("unanswered")?.told?.requestId ?? "";
    const above = JSON.parse(stored.find(([key]) => key === `q!${requestId}`)?.[1] ?? "{}");
    const task = JSON.stringify({ name: "below", acts: [] });
    const below = { ...above, requestId: "B", runId: "below", parentRunId: above.runId, task };
    const error = { code: "cancelled", message: "A question was cancelled." };
    const ended = { requestId: "B", outcome: { status: "closed", error }, endedAt: 1 };
    const half = found([], [...stored, ["q!B", JSON.stringify(below)], ["u!B", JSON.stringify(ended)]]);
    expect(half).toContain("below was cancelled, and unanswered above it goes on");
    expect(half).toMatch(/^the result of below \(B\) has no reason: .*cancelled/m);
  });

  test("notices a worker that nothing moves on", () => {
    expect(found([], without("a!"))).toContain(`worker open (${requestOf("open")}) has no way on: it has no row`);
  });

  test("notices what is left when all is done", () => {
    const left = found([], stored, { ended: true });
    expect(left).toContain(`open (${requestOf("open")}) has not ended`);
    expect(left).toContain("labels are left when all is done");
    expect(left).toContain("deliveries are left when all is done");
  });

  test("is a process that fails when a delivery was deleted, and says which", { timeout: 30_000 }, async () => {
    const store = levelStore(storeOf(directory));
    await store.open();
    const deliveries = await store.range({ gte: "d!", lt: "d!\u{10ffff}" });
    await store.batch(
      deliveries.map(([key]) => ({ type: "del" as const, key })),
      { sync: true },
    );
    await store.close();
    const { code, lines } = await runChild("audit.ts", [directory, "2", "1", "drain"], { patienceMs: 30_000 });
    const report = JSON.parse(lines.at(-1) ?? "{}") as Report;
    expect(report.violations.join("\n")).toContain(`the result of answered (${requestOf("answered")}) is lost`);
    expect(code).toBe(1);
  });

  function ending(name: string) {
    return { requestId: requestOf(name), status: "completed" as const, text: `${name}(?0=answer)` };
  }
});

/**
 * A store with an answered question, a journalled step, results that nobody has got, and open questions: of owners, and
 * parked on a subject.
 */
async function leaveWork(directory: string): Promise<void> {
  const ledger = new Ledger(ledgerOf(directory), 1, "test");
  const client = new Client(await openCrashHerd(directory, ledger, new Random(1)), ledger);
  const ended = new Set<string>();
  const bothEnded = new Promise<void>((resolve) => {
    client.herd.on("result", ({ requestId }) => {
      if (ended.add(requestId).size === 2) resolve();
    });
  });
  const asks = { agent: "asker" as const, acts: [{ act: "ask" as const, named: false }] };
  for (const name of ["answered", "open"]) {
    const handle = await client.assign(OWNER, { agent: asks.agent, work: { name, acts: asks.acts }, id: name });
    const asked = await handle?.next();
    if (name === "open" || asked?.type !== "question") continue;
    await client.reply(OWNER, { askId: asked.question.askId }, { message: "answer", id: "reply" });
  }
  await client.assign(OWNER, { agent: "stepper", work: { name: "stepped", acts: [{ act: "step" }] } });
  await bothEnded;
  const shop = new Shop(client.herd, ledger);
  const park = { act: "park" as const, asks: 1, named: false };
  for (const name of ["parked", "unanswered"]) {
    const start = { name, agent: "parker", task: JSON.stringify({ name, acts: [park] }) };
    await shop.visit({ id: name, order: "0", start, receives: true, waits: true });
    if (name === "unanswered") continue;
    const resume = (await shop.parked("0")).map(({ id }) => ({ id, payload: "yes" }));
    await shop.visit({ id: "resume", order: "0", resume, receives: false, waits: true });
  }
  await client.herd.close();
  ledger.write({ fact: "session.closed" });
  ledger.close();
}
