import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AskRecord, OutcomeRecord, RequestRecord } from "../../runtime/kernel/records.ts";
import { expectNothingLeft } from "../conformance/support.ts";
import { moves, World } from "./process-world.ts";

/** To look for more than the suite has time for. */
const RUNS = Number(process.env["HERD_RUNS"] ?? 100);
const SEED = process.env["HERD_SEED"];

async function rowsOf<Row>({ t }: World, letter: string): Promise<Map<string, Row>> {
  const rows = await t.store.range({ gte: `${letter}!`, lt: `${letter}~` });
  return new Map(rows.map(([key, text]) => [key.slice(2), JSON.parse(text) as Row]));
}

/** Work without an end is that of an orphan, and what stays alive is reusable, unknown, or waits for its orphans. */
async function expectNothingStuck(world: World): Promise<void> {
  const { workers } = await world.t.owner.list();
  const ended = await rowsOf<OutcomeRecord>(world, "u");
  const orphans = workers.filter(({ orphan }) => orphan === true);
  const isOrphan = (label: string) => orphans.some((orphan) => orphan.label === label);
  const requests = [...(await rowsOf<RequestRecord>(world, "q")).values()];
  const open = requests.filter(({ requestId, label }) => !ended.has(requestId) && !isOrphan(label));
  expect(open.map(({ label, task }) => `${label}: ${task}`)).toEqual([]);
  const parents = new Set(orphans.map(({ parentLabel }) => parentLabel));
  const alive = workers.filter(({ label }) => !isOrphan(label) && !parents.has(label));
  const stuck = alive.filter(({ state }) => state !== "ready" && state !== "unknown");
  expect(stuck.map(({ label, state, diagnostic }) => `${label} ${state} ${diagnostic}`)).toEqual([]);
}

/** Everything accepted has one end, and the owner was told that end and no other. */
async function expectEachTold(world: World): Promise<void> {
  const outcomes = await rowsOf<OutcomeRecord>(world, "u");
  const requests = await rowsOf<RequestRecord>(world, "q");
  expect([...requests.keys()]).toEqual([...outcomes.keys()]);
  expect([...world.told].filter((requestId) => !outcomes.has(requestId))).toEqual([]);
  for (const [requestId, { label, parentRunId }] of requests) {
    const { outcome } = outcomes.get(requestId) as OutcomeRecord;
    const given = world.t.owner.results.filter((result) => result.requestId === requestId);
    const kinds = new Set(given.map(({ status, text, error }) => JSON.stringify([status, text, error])));
    const text = outcome.status === "completed" ? outcome.text : "";
    const stored = JSON.stringify([outcome.status, text, "error" in outcome ? outcome.error : undefined]);
    const isToBeTold = parentRunId === undefined && outcome.status !== "closed";
    expect([label, ...kinds]).toEqual([label, ...(isToBeTold ? [stored] : [])]);
    const isClosed = parentRunId === undefined && outcome.status === "closed";
    expect([label, isClosed && !world.closed.has(label)]).toEqual([label, false]);
  }
}

/** Only what is kept of finished work. */
async function expectNoRest(world: World): Promise<void> {
  const asks = [...(await rowsOf<AskRecord>(world, "k")).values()];
  expect(asks.filter(({ answer, abandoned }) => answer === undefined && abandoned === undefined)).toEqual([]);
  await expectNothingLeft(world.t, "i");
  const kept = (await world.t.store.range({ gte: "a", lt: "~" })).map(([key]) => key);
  expect(kept.filter((key) => !/^(?:[msqukvni]!|a![^!]*!$|t![^!]*!retention!)/.test(key))).toEqual([]);
}

test(
  "work in processes is neither lost nor doubled nor stuck, whatever happens to them, to its owner and to the program",
  async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(moves, async (given) => {
        const world = await World.open();
        for (const move of given) await world.play(move);
        await world.drain();
        await expectNothingStuck(world);
        await world.closeAll();
        expect(world.faults).toEqual([]);
        await expectEachTold(world);
        await expectNoRest(world);
        for (const { outcome } of (await rowsOf<OutcomeRecord>(world, "u")).values()) seen.add(outcome.status);
        await world.t.close();
      }),
      { numRuns: RUNS, ...(SEED !== undefined && { seed: Number(SEED) }) },
    );
    // Moves that lead to nothing would show nothing.
    expect([...seen].toSorted()).toEqual(["closed", "completed", "failed"]);
  },
  Math.max(30_000, RUNS * 500),
);
