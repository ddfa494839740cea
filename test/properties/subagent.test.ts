import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { asks, does, rowsOf } from "../conformance/support.ts";

const CATEGORIES = [
  "not_running_inside_herdr",
  "worker_label_exists",
  "pane_not_ready",
  "target_not_found",
  "target_ambiguous",
  "rollback_failure",
  "worker_busy",
  "invalid_request",
  "internal_failure",
];

const isLabel = (text: string) => /^[a-z]$/.test(text.charAt(0)) && /^[a-z0-9_-]{1,32}$/.test(text);

/** A field's value: often one that fits, at times one of any form. */
const mostly = (...fitting: fc.Arbitrary<unknown>[]) =>
  fc.oneof(
    { arbitrary: fc.oneof(...fitting), weight: 6 },
    { arbitrary: fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<unknown>, weight: 1 },
  );
const text = fc.constantFrom("A", "do it", "  ", "日本\n\u001b[31m");
const label = fc.constantFrom("one", "two", "asks", "nobody", "Not a label", "x".repeat(33));

/** Requests near the valid ones: known fields that do or do not belong together, and now and then unknown ones. */
const nearlyValid = fc.record(
  {
    action: mostly(fc.constantFrom("list", "assign", "steer", "reply", "close")),
    agent: mostly(fc.constantFrom("asks", "does", "unknown", "__proto__", "constructor")),
    label: mostly(label),
    cwd: mostly(fc.constantFrom("/", "/tmp", "not there", "")),
    task: mostly(text),
    files: mostly(fc.array(fc.constantFrom("package.json", "missing.md", "\0", " "), { maxLength: 2 })),
    reusable: mostly(fc.boolean()),
    fork: mostly(text),
    session: mostly(text),
    timeoutMs: mostly(fc.constantFrom(5_000, 5_001, 300_000, 300_001, 6_000.5)),
    message: mostly(text),
    more: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
/** The fields of one form, complete but for chance. */
const formed = fc.oneof(
  fc.record({ action: fc.constant("assign"), agent: fc.constantFrom("asks", "does"), task: text, label }),
  fc.record({ action: fc.constant("assign"), label, task: text }),
  fc.record({ action: fc.constantFrom("steer", "reply"), label, message: text }),
  fc.record({ action: fc.constant("close"), label }),
  fc.constant({ action: "list" }),
);
const request = fc.oneof(
  { arbitrary: nearlyValid, weight: 4 },
  { arbitrary: formed, weight: 4 },
  { arbitrary: fc.tuple(formed, nearlyValid).map(([form, more]) => ({ ...more, ...form })), weight: 2 },
  { arbitrary: fc.jsonValue(), weight: 1 },
);

async function herdWithWork(): Promise<TestHerd> {
  const t = await createTestHerd({ agents: { asks, does } });
  await t.owner.assign({ agent: "asks", task: "A", label: "one" });
  await t.idle();
  return t;
}

describe("the subagent tool", () => {
  test("answers whatever it is given with success or a public error, and an invalid request changes no row", async () => {
    const t = await herdWithWork();
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(request, async (given) => {
        const before = await rowsOf(t);
        const answer = await t.owner.subagent(given);
        if (answer.ok === true) {
          seen.add("ok");
          return;
        }
        expect(answer).toMatchObject({ ok: false, error: { message: expect.stringMatching(/\S/) } });
        expect(CATEGORIES).toContain(answer.error.category);
        expect(answer.error.nextAction).toMatch(/\S/);
        // It is JSON, so that nothing is lost on its way to a model.
        expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
        seen.add(answer.error.category);
        const changed = answer.error.category === "invalid_request" && (await rowsOf(t)) !== before;
        expect(changed).toBe(false);
      }),
      { numRuns: 400 },
    );
    for (const outcome of ["ok", "invalid_request", "target_not_found"]) expect(seen).toContain(outcome);
    expect(seen).not.toContain("internal_failure");
  });

  test("takes exactly the labels of the pattern", async () => {
    const t = await herdWithWork();
    const nearly = fc.stringMatching(/^[a-z][a-zA-Z0-9_\- .\n]{0,34}$/);
    const exact = fc.stringMatching(LABEL_PATTERN);
    await fc.assert(
      fc.asyncProperty(fc.oneof(exact, nearly, fc.string({ unit: "binary", maxLength: 40 })), async (name) => {
        const answer = await t.owner.subagent({ action: "close", label: `${name}` });
        if (name === "one") return;
        const expected = isLabel(name) ? "target_not_found" : "invalid_request";
        expect([name, answer.error?.category]).toEqual([name, expected]);
      }),
      { numRuns: 500 },
    );
  });
});
