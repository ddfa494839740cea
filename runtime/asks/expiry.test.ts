import { beforeAll, describe, expect, test } from "vitest";
import { modes, playIn } from "../../test/support/modes.ts";
import { failureOf, open, owner, parked, start } from "../../test/support/asks.ts";

describe.each(modes)("$name", ({ options: mode }) => {
  beforeAll(() => playIn(mode));

  describe("a deadline", () => {
    const soon = { question: "Go on?", expiresAt: "2026-03-01T09:10:00Z" };

    test("that passes tears the run down, leaves one failed outcome and says so once", async () => {
      const t = await open();
      const told: unknown[] = [];
      t.herd.on("expired", (event) => told.push(event));
      const run = await start(t, [soon], "parent");
      const [entry] = await parked(t);
      await t.crash();
      t.herd.on("expired", (event) => told.push(event));
      await t.clock.advance("10m");
      expect(await parked(t)).toEqual([
        {
          id: run.requestId,
          status: "failed",
          requestId: run.requestId,
          label: "parent",
          error: { code: "expired", message: expect.stringContaining('"asks"') },
        },
      ]);
      await t.clock.advance("1h");
      expect(told).toEqual([
        {
          askId: entry?.id,
          requestId: entry?.requestId,
          groupId: entry?.id,
          label: "asks",
          expiredAt: "2026-03-01T09:10:00.000Z",
        },
      ]);
      expect(await failureOf(owner(t).reply({ askId: entry?.id ?? "", message: "late" }))).toBe("expired");
    });

    test("with onExpiry resume goes on with EXPIRED, once", async () => {
      const t = await open();
      const run = await start(t, [{ ...soon, onExpiry: "resume" }]);
      await t.clock.advance("10m");
      await t.crash();
      expect((await (await t.herd.assignment(run.requestId)).result()).text).toBe('["expired"]');
    });

    test("loses against an answer that came before the pass, however late that is", async () => {
      const t = await open({ tickMs: 0 });
      const told: unknown[] = [];
      t.herd.on("expired", (event) => told.push(event));
      const run = await start(t, [soon]);
      const [entry] = await parked(t);
      await owner(t).reply({ askId: entry?.id ?? "", message: "just in time" });
      await t.herd.tick(new Date("2026-03-01T09:30:00Z"));
      expect((await run.result()).text).toBe('["just in time"]');
      expect(told).toEqual([]);
    });

    test("of one ask of a group does not shorten the others", async () => {
      const t = await open();
      const run = await start(t, [
        [
          { ...soon, groupId: "g", onExpiry: "resume" },
          { question: "Later?", groupId: "g", expiresAt: "2027-03-01T09:00:00Z" },
        ],
      ]);
      await t.clock.advance("1h");
      expect((await parked(t)).map(({ status }) => status)).toEqual(["running", "asking"]);
      await owner(t).reply({ askId: (await parked(t))[1]?.id ?? "", message: "yes" });
      expect((await run.result()).text).toBe('[["expired","yes"]]');
    });

    test("that cannot be acted upon stops no other", async () => {
      const t = await open();
      const [bad, good] = [await start(t, [soon]), await start(t, [soon])];
      t.herd.on("expired", () => {
        throw new Error("a listener that throws");
      });
      await t.clock.advance("10m");
      expect((await parked(t)).map(({ id }) => id).toSorted()).toEqual([bad.requestId, good.requestId].toSorted());
    });

    test("of a question to the owner there is none", async () => {
      const t = await open();
      await owner(t).assign({ agent: "both", task: "A" });
      await t.idle();
      await t.clock.advance("365d");
      expect(await parked(t)).toMatchObject([{ question: "owner?", status: "asking" }]);
    });
  });
});
