import { describe, expect, test } from "vitest";
import type { Json, VisitRequest } from "../index.ts";
import { asking, open, other, parked, ruleOf, subject, visit } from "../../test/support/visits.ts";

type Ids = { ask: string; user: string; done: string; failed: string };

const deep = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`) as Json;
const circle: { again?: Json } = {};
circle.again = circle;
const named = (field: string) => `${field}: must be JSON, which has no circles`;

/** What is refused by which rule. */
const REFUSALS: [string, (ids: Ids) => Omit<VisitRequest, "subject">][] = [
  ["resume_extras", ({ ask }) => ({ resume: [{ id: ask, payload: "x" }], extras: { locale: "es" } })],
  ["resume_extras", ({ done }) => ({ take: done, extras: { locale: "es" } })],
  ["cancel_resume_overlap", ({ ask }) => ({ cancel: [ask], resume: [{ id: ask, payload: "x" }] })],
  ["cancel_resume_overlap", ({ done }) => ({ cancel: [done], take: done })],
  ["multi_run", ({ ask, done }) => ({ resume: [{ id: ask, payload: "x" }], take: done })],
  ["multi_run", ({ done, failed }) => ({ resume: [{ id: done }, { id: failed }] })],
  [
    "duplicate_id",
    ({ ask }) => ({
      resume: [
        { id: ask, payload: "x" },
        { id: ask, payload: "y" },
      ],
    }),
  ],
  ["entry_gone", ({ ask }) => ({ cancel: [ask, "nothing"] })],
  ["entry_gone", () => ({ resume: [{ id: "nothing", payload: "x" }] })],
  ["entry_gone", () => ({ take: "nothing" })],
  ["user_ask_in_resume", ({ user }) => ({ resume: [{ id: user, payload: "x" }] })],
  ["finished_payload", ({ done }) => ({ resume: [{ id: done, payload: "x" }] })],
  ["finished_payload", ({ failed }) => ({ resume: [{ id: failed, payload: "x" }] })],
  ["finished_payload", ({ ask }) => ({ take: ask })],
  ["must be a string", ({ ask }) => ({ cancel: [], resume: [{ id: ask, payload: 5 }] })],
  ["undeclared_extras", () => ({ start: { agent: "asks", task: "A" }, extras: { locale: "es" } })],
  ["undeclared_extras", ({ ask }) => ({ cancel: [ask], start: { agent: "extras", task: "A" }, extras: { tone: 1 } })],
  ["unknown_agent", ({ ask }) => ({ cancel: [ask], start: { agent: "nobody", task: "A" } })],
  ["start.input.sku: is required", ({ ask }) => ({ cancel: [ask], start: { agent: "extras", input: {} } })],
  ["invalid_field", ({ ask }) => ({ cancel: [ask], start: { agent: "asks" } })],
  ["payload must be JSON", ({ ask }) => ({ resume: [{ id: ask, payload: undefined as never }] })],
  ["unknown_field", () => ({ begin: 1 }) as never],
  ["is nested too deeply, or without an end", ({ ask }) => ({ cancel: [ask], start: { agent: "asks", input: deep } })],
  [named("start.input"), ({ ask }) => ({ cancel: [ask], start: { agent: "asks", input: circle } })],
  [named("start.metadata"), () => ({ start: { agent: "asks", task: "A", metadata: circle } })],
  [named("start.metadata"), () => ({ start: { agent: "asks", task: "A", metadata: 1n as never } })],
  [named("extras.locale"), () => ({ start: { agent: "extras", task: "A" }, extras: { locale: circle } })],
  [named("resume.0.payload"), ({ ask }) => ({ resume: [{ id: ask, payload: circle }], id: "circle" })],
];

describe("a visit is refused, and nothing of it is done,", () => {
  test.each(REFUSALS)("as %s", async (rule, request) => {
    const t = await open();
    const [ask = ""] = await asking(t, { question: "1?" });
    const user = (await visit(t, { start: { agent: "asks", input: [{ question: "u?", to: "user" }] } })).suspended;
    const done = await visit(t, { start: { agent: "asks", input: [] }, receivesOutcome: false });
    const { asks } = await visit(t, { start: { agent: "fails", task: "A" } });
    const failed = await visit(t, { resume: [{ id: asks?.[0]?.id ?? "", payload: "x" }], receivesOutcome: false });
    const before = await parked(t);
    expect(before).toHaveLength(4);
    const ids = {
      ask,
      user: user?.interactionId ?? "",
      done: done.requestId ?? "",
      failed: failed.requestId ?? "",
    };
    expect(await ruleOf(visit(t, request(ids)))).toBe(rule);
    await t.idle();
    expect(await parked(t)).toEqual(before);
  });

  test("when it resumes entries of two groups or of two runs", async () => {
    const t = await open();
    const two = [await asking(t, { question: "1?", groupId: "g" }), await asking(t, { question: "2?", groupId: "g" })];
    const resume = two.flatMap(([id = ""]) => ({ id, payload: "x" }));
    expect(await ruleOf(visit(t, { resume }))).toBe("multi_run");
    expect(await parked(t)).toMatchObject([{ status: "asking" }, { status: "asking" }]);
  });

  test("on another subject, in another scope, and for an entry that is running", async () => {
    const t = await open();
    const [id = ""] = await asking(t, { question: "1?" });
    const item = { id, payload: "x" };
    expect(await ruleOf(t.herd.visit({ subject: other, resume: [item] }))).toBe("entry_gone");
    expect(await ruleOf(t.herd.visit({ subject: { ...subject, scope: "stock" }, cancel: [id] }))).toBe("entry_gone");
    const results = await Promise.all([ruleOf(visit(t, { resume: [item] })), ruleOf(visit(t, { resume: [item] }))]);
    // Of two at once one wins.
    expect(results.filter((result) => result === "entry_gone")).toHaveLength(1);
    expect(results).toContainEqual({ done: expect.objectContaining({ result: '["x"]' }) });
  });
});
