import { describe, expect, test } from "vitest";
import { type DoorRequest, type Door } from "../index.ts";
import { NOW, subject, secret, gate, open, parked, failureOf, resumeFirst } from "../../test/support/doors.ts";

describe("a program's door", () => {
  test("starts with its input, then resumes by jq what is parked", async () => {
    const t = await open();
    const door = await t.herd.door({
      subject: '{ scope: "shop", keys: { order: .order } }',
      target: "clerk",
      contract: {
        resumeExpr: resumeFirst,
        extrasExpr: "if ($parked | length) == 0 then { locale: .locale } else null end",
      },
    });
    const first = await door.visit({ order: "7", locale: "es" });
    expect(first).toMatchObject({ action: "started", kind: "asks", asks: [{ question: "Refund?" }] });
    const end = await door.visit({ order: "7" });
    expect(end).toMatchObject({
      action: "resumed",
      kind: "result",
      result: { task: '{"order":"7","locale":"es"}', answer: true, locale: "es" },
    });
  });

  test.each<[Partial<DoorRequest>, unknown, unknown]>([
    [{ target: "echo" }, { sku: 1 }, { task: '{"sku":1}', input: { sku: 1 } }],
    [{ target: { agent: "echo", task: "T" } }, { sku: 1 }, { task: "T", input: { sku: 1 } }],
    [{ target: "echo", defaults: { sku: 2 } }, { sku: 1 }, { task: '{"sku":2}', input: { sku: 2 } }],
    [
      { target: "echo", contract: { startExpr: "{ task: .name }" } },
      { name: "N" },
      { task: "N", input: { task: "N" } },
    ],
    [
      { target: "echo", contract: { startExpr: (input) => ({ n: (input as { n: number }).n + 1 }) } },
      { n: 1 },
      { task: '{"n":2}', input: { n: 2 } },
    ],
  ])("%j with input %j starts with %j", async (request, input, result) => {
    const t = await open();
    const door = await t.herd.door({ subject, ...request } as DoorRequest);
    expect(await door.visit(input)).toMatchObject({ kind: "result", result });
  });

  test("whose start is null starts nothing and still cancels", async () => {
    const t = await open();
    await (await t.herd.door({ subject, target: "clerk" })).visit({ task: "A" });
    const door = await t.herd.door({
      subject,
      target: "clerk",
      contract: { cancelExpr: "[$parked[].id]", startExpr: "null" },
    });
    expect(await door.visit({})).toMatchObject({ action: "none", kind: "none", cancelled: [expect.any(String)] });
    await t.idle();
    expect(await parked(t)).toEqual([]);
  });

  test("shows its programs compact entries with the names of the public contract", async () => {
    const t = await open();
    await (await t.herd.door({ subject, target: "clerk" })).visit({ task: "A" });
    const door = await t.herd.door({ subject, target: "echo", contract: { startExpr: "{ entry: $parked[0] }" } });
    const { result } = await door.visit({});
    expect(result.input.entry).toEqual({
      id: expect.any(String),
      status: "asking",
      to: "caller",
      asked_by: ["clerk"],
      question: "Refund?",
      answer_format: "confirm",
      group_id: "g",
      created_at: NOW,
      expiry_at: expect.any(String),
      on_expiry: "kill",
      request_id: expect.any(String),
      label: "clerk",
    });
  });

  test.each<[object, string]>([
    [{ target: "nobody" }, "unknown_agent agent"],
    [{ target: { agent: "echo", label: "x" } }, "invalid_field target"],
    [{ subject: { scope: "shop", keys: {} } }, "bad_owner keys"],
    [{ subject: "{ scope: " }, "door_contract subject syntax"],
    [{ subject: "$parked" }, "door_contract subject undeclared_variable"],
    [{ contract: { resumeExpr: "$parket[0]" } }, "door_contract resumeExpr undeclared_variable"],
    [{ contract: { cancelExpr: "[" } }, "door_contract cancelExpr syntax"],
    [{ contract: { replyExpr: "." } }, "unknown_field"],
    [{ kind: "gate" }, "invalid_field kind"],
    [{ kind: "route", name: undefined }, "invalid_field name"],
    [{ kind: "submit", name: "No Name" }, "invalid_field name"],
    [{ kind: "schedule", name: "s", cron: "often" }, "invalid_field cron"],
    [{ kind: "schedule", name: "s", cron: "0 2 * * *", timezone: "Mars/Base" }, "invalid_field timezone"],
    [{ kind: "schedule", name: "s", cron: "0 2 * * *", subject: "{}" }, "invalid_field defaults"],
    [{ kind: "webhook", name: "w", secret: "short" }, "invalid_field secret"],
    [{ kind: "program", secret }, "unknown_field secret"],
  ])("that is %j is refused as %s, and nothing is saved", async (request, failure) => {
    const t = await open();
    const call = t.herd.door({ name: "d", subject, target: "echo", ...request } as DoorRequest);
    expect(await failureOf(call)).toMatch(new RegExp(`^${failure}`));
    expect(await t.herd.doors()).toEqual([]);
  });

  test("fails loudly when its program does, and nothing is done", async () => {
    const t = await open();
    const clerk = await t.herd.door({ subject, target: "clerk" });
    await clerk.visit({ task: "A" });
    const before = await parked(t);
    const door = await t.herd.door({
      subject,
      target: "clerk",
      contract: { cancelExpr: "[$parked[].id]", startExpr: "(1, 2)" },
    });
    expect(await failureOf(door.visit({}))).toMatch(/^door_contract .*startExpr several_values/);
    expect(await parked(t)).toEqual(before);
  });
});

/** What a visit through a door that was found comes to. */
const outcome = (door: Door | undefined) => door?.visit({}) ?? Promise.reject(new Error("there is no such door"));

describe("a saved door", () => {
  test("is there again after a restart, is updated under its name, and can be removed", async () => {
    const t = await open();
    await t.herd.door({ name: "desk", subject, target: "echo", contract: { startExpr: "{ n: 1 }" } });
    await t.crash();
    const [door] = await t.herd.doors();
    expect(door).toMatchObject({ name: "desk", kind: "program" });
    expect((await outcome(door)).result.input).toEqual({ n: 1 });
    await t.herd.door({ name: "desk", subject, target: "echo", contract: { startExpr: "{ n: 2 }" } });
    expect(await t.herd.doors()).toHaveLength(1);
    expect((await outcome(door)).result.input).toEqual({ n: 2 });
    await door?.remove();
    expect(await t.herd.doors()).toEqual([]);
    expect(await failureOf(door?.visit({}) ?? Promise.resolve())).toBe("target_not_found");
  });

  test("whose expressions are functions waits until they are registered again", async () => {
    const t = await open();
    const request = { name: "desk", subject, target: "echo", contract: { startExpr: () => ({ n: 1 }) } } as const;
    await t.herd.door(request);
    await t.crash();
    const [door] = await t.herd.doors();
    expect(await failureOf(door?.visit({}) ?? Promise.resolve())).toBe("door_unregistered");
    await t.herd.door(request);
    expect((await outcome(door)).result.input).toEqual({ n: 1 });
  });
});

describe("a route", () => {
  const route: DoorRequest = {
    name: "chat",
    kind: "route",
    subject: '{ scope: "shop", keys: { order: .order } }',
    target: "clerk",
    contract: {
      resumeExpr: `if .yes then ${resumeFirst} else null end`,
      startExpr: "if .silent then null else { task: .text } end",
    },
  };

  test("is a conversation: it replies, or asks", async () => {
    const t = await open();
    const door = await t.herd.door(route);
    const asked = await door.visit({ order: "7", text: "Hello" });
    expect(asked).toMatchObject({ reply: null, asks: [{ question: "Refund?" }] });
    const end = await door.visit({ order: "7", yes: true });
    expect(end).toEqual({ reply: { task: "Hello", answer: true, locale: null }, asks: [] });
    expect(await door.visit({ order: "7", silent: true })).toEqual({ reply: null, asks: [] });
  });

  test("starts nothing fresh while its subject has an open ask", async () => {
    const t = await open();
    const door = await t.herd.door(route);
    await door.visit({ order: "7", text: "Hello" });
    expect(await failureOf(door.visit({ order: "7", text: "Again" }))).toBe("visit_request start asks_first");
    expect(await door.visit({ order: "8", text: "Other" })).toMatchObject({ asks: [{}] });
    expect(await parked(t)).toHaveLength(1);
  });

  test("hands declared extras to its run; undeclared ones are the turn's error, and nothing runs", async () => {
    const t = await open();
    const door = await t.herd.door({ ...route, contract: { ...route.contract, extrasExpr: ".extras" } });
    const call = door.visit({ order: "7", text: "Hello", extras: { tone: 1 } });
    expect(await failureOf(call)).toBe("undeclared_extras extras");
    expect(await parked(t)).toEqual([]);
    const { asks } = await door.visit({ order: "7", text: "Hello", extras: { locale: "es" } });
    const end = await t.herd.visit({ subject, resume: [{ id: asks[0].id, payload: true }] });
    expect(end.result).toMatchObject({ locale: "es" });
  });

  test("lets go of whoever waits for a turn and gives up, and does nothing for them", async () => {
    const t = await open();
    const door = await t.herd.door({ name: "r", kind: "route", subject, target: { agent: "waits", task: "A" } });
    const first = door.visit(null);
    await gate.begun.promise;
    const stop = new AbortController();
    const second = door.visit(null, { signal: stop.signal });
    stop.abort(new Error("enough"));
    await expect(second).rejects.toThrow("enough");
    gate.held.resolve();
    expect(await first).toEqual({ reply: "waited", asks: [] });
    await t.idle();
    expect(await parked(t)).toEqual([]);
  });

  test("lets in one visit at a time on each subject", async () => {
    const t = await open();
    const door = await t.herd.door({ ...route, name: "slow", target: "waits", contract: {} });
    const order: string[] = [];
    const both = ["a", "b"].map((name) => door.visit({ order: "7", name }).then(() => order.push(name)));
    await gate.begun.promise;
    const { workers } = await t.herd.owner(subject).list();
    expect(workers).toHaveLength(1);
    gate.held.resolve();
    await Promise.all(both);
    expect(order).toEqual(["a", "b"]);
  });
});
