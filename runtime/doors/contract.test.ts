import { afterAll, describe, expect, test } from "vitest";
import type { Json } from "../../machines/vocabulary.ts";
import { HerdError } from "../errors.ts";
import * as doors from "./contract.ts";
import type { ContractInput, DoorContract } from "./contract.ts";
import { Jq } from "./jq.ts";

const jq = new Jq();
afterAll(() => jq.close());

const { parseCancel, parseExtras, parseResume, parseStart } = doors;
const parked = [
  { id: "i-1", status: "asking", question: "Go on?" },
  { id: "r-2", status: "finished", result: null },
] satisfies Json;

const evaluate = (contract: DoorContract, input: ContractInput["input"] = { msg: "hi" }) =>
  doors.evaluateContract(jq, contract, { input, parked });
const compile = (contract: object) => doors.compileContract(jq, contract, "schedule");

async function refusal(call: () => unknown): Promise<HerdError> {
  try {
    await call();
  } catch (error) {
    if (error instanceof HerdError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("what cancelExpr yields", () => {
  test.each<[Json, string[]]>([
    [null, []],
    ["i-1", ["i-1"]],
    [
      ["i-1", "i-2", "i-1"],
      ["i-1", "i-2", "i-1"],
    ],
    [[], []],
  ])("%j cancels %j", (value, ids) => {
    expect(parseCancel(value)).toEqual(ids);
  });

  test.each<[Json]>([
    ...([[5], [1.5], [true], [false], [{}], [{ id: "i-1" }], [""], ["  "]] as [Json][]),
    ...([[["i-1", 5]], [["i-1", null]], [["i-1", ""]], [["i-1", " "]], [[["i-1"]]], [[{ id: "i-1" }]]] as [Json][]),
  ])("%j is refused", async (value) => {
    const error = await refusal(() => parseCancel(value, "hook"));
    expect(error).toMatchObject({
      ...{ category: "invalid_request", reason: "door_contract", rule: "shape" },
      ...{ field: "cancelExpr", operation: "hook" },
    });
    expect(error.message).toContain(`cancelExpr yields ${JSON.stringify(value)} and takes null, an id`);
  });
});

describe("what resumeExpr yields", () => {
  test.each<[Json, object[], string[]]>([
    [null, [], []],
    ["r-2", [], ["r-2"]],
    [{ id: "i-1", payload: { answer: "yes" } }, [{ id: "i-1", payload: { answer: "yes" } }], []],
    [{ id: "i-1", payload: null }, [{ id: "i-1", payload: null }], []],
    [{ id: "i-1", payload: false }, [{ id: "i-1", payload: false }], []],
    [
      [{ id: "i-1", payload: 1 }, "r-2", { id: "i-3", payload: [] }],
      [
        { id: "i-1", payload: 1 },
        { id: "i-3", payload: [] },
      ],
      ["r-2"],
    ],
    [[], [], []],
  ])("%j resumes %j and takes %j", (value, resume, take) => {
    expect(parseResume(value)).toEqual({ resume, take });
  });

  test.each<[Json]>([
    ...([[5], [1.5], [true], [""], [" "], [{}], [{ id: "i-1" }], [{ payload: 1 }]] as [Json][]),
    ...([[{ id: "i-1", payload: 1, more: 2 }], [{ id: " ", payload: 1 }], [{ id: 7, payload: 1 }]] as [Json][]),
    ...([[{ id: null, payload: 1 }], [["r-2", 5]], [["r-2", null]], [[""]], [[["r-2"]]], [[{ id: "i-1" }]]] as [
      Json,
    ][]),
  ])("%j is refused", async (value) => {
    expect(await refusal(() => parseResume(value))).toMatchObject({
      ...{ reason: "door_contract", rule: "shape", field: "resumeExpr", operation: "door" },
    });
  });
});

describe("what startExpr and extrasExpr yield", () => {
  test("an object is the input, null starts nothing and adds nothing", () => {
    expect(parseStart({ task: "x" })).toEqual({ type: "input", input: { task: "x" } });
    expect(parseStart({})).toEqual({ type: "input", input: {} });
    expect(parseStart(null)).toEqual({ type: "nothing" });
    expect(parseExtras({ key: [1] })).toEqual({ key: [1] });
    expect(parseExtras(null)).toEqual({});
  });

  test.each<[Json]>([[5], [true], ["x"], [""], [[]], [[{ task: "x" }]]])("%j is refused", async (value) => {
    expect(await refusal(() => parseStart(value))).toMatchObject({ rule: "shape", field: "startExpr" });
    expect(await refusal(() => parseExtras(value))).toMatchObject({ rule: "shape", field: "extrasExpr" });
  });

  test("a long value is cut in the message", async () => {
    const { message } = await refusal(() => parseStart("x".repeat(10_000)));
    expect(message.length).toBeLessThan(400);
  });
});

describe("a contract", () => {
  test("without expressions starts the default and nothing else", async () => {
    const none = { cancel: [], resume: [], take: [], start: { type: "default" }, extras: {} };
    expect(await evaluate({})).toEqual(none);
    await compile({});
  });

  test("reads the input and what is parked", async () => {
    const contract: DoorContract = {
      cancelExpr: "[$parked[].id]",
      resumeExpr: '[{id: $parked[0].id, payload: {answer: "yes"}}, $parked[1].id]',
      startExpr: "{payload: .msg, waiting: ($parked | length)}",
      extrasExpr: "{first: $parked[0].question}",
    };
    await compile(contract);
    expect(await evaluate(contract)).toEqual({
      cancel: ["i-1", "r-2"],
      resume: [{ id: "i-1", payload: { answer: "yes" } }],
      take: ["r-2"],
      start: { type: "input", input: { payload: "hi", waiting: 2 } },
      extras: { first: "Go on?" },
    });
  });

  test("that starts nothing is told from one that starts the default", async () => {
    expect((await evaluate({ startExpr: "null" })).start).toEqual({ type: "nothing" });
    expect((await evaluate({ startExpr: "empty" })).start).toEqual({ type: "nothing" });
    expect((await evaluate({ startExpr: () => undefined })).start).toEqual({ type: "nothing" });
  });

  test.each(doors.CONTRACT_FIELDS)(
    "that yields several values in %s is refused, as is one that fails",
    async (field) => {
      expect(await refusal(() => evaluate({ [field]: "null, null" }))).toMatchObject({ rule: "several_values", field });
      expect(await refusal(() => evaluate({ [field]: "error(1)" }))).toMatchObject({ rule: "runtime_error", field });
      expect(await refusal(() => evaluate({ [field]: "5" }))).toMatchObject({ rule: "shape", field });
    },
  );

  test("is evaluated in order, and not beyond the first that is wrong", async () => {
    const order: string[] = [];
    const note = (field: string, value: unknown) => async () => (order.push(field), value);
    const contract = {
      extrasExpr: note("extras", {}),
      startExpr: note("start", 5),
      resumeExpr: note("resume", null),
      cancelExpr: note("cancel", []),
    };
    expect(await refusal(() => evaluate(contract))).toMatchObject({ field: "startExpr" });
    expect(order).toEqual(["cancel", "resume", "start"]);
  });
});

describe("functions", () => {
  test("are called with what jq sees, and may take their time", async () => {
    const outcome = await evaluate({
      cancelExpr: (_input, { parked: entries }) => (entries as { id: string }[]).map(({ id }) => id),
      startExpr: async (input) => ({ task: (input as { msg: string }).msg, cwd: undefined }),
    });
    expect(outcome).toMatchObject({ cancel: ["i-1", "r-2"], start: { input: { task: "hi" } } });
    expect(outcome.start).toEqual({ type: "input", input: { task: "hi" } });
  });

  test("cannot change what the others see", async () => {
    const input = { list: [1] };
    const outcome = await evaluate(
      {
        cancelExpr: (seen, variables) => {
          (seen as typeof input).list.push(2);
          (variables.parked as Json[]).length = 0;
          return null;
        },
        startExpr: "{seen: ., parked: ($parked | length)}",
      },
      input,
    );
    expect(outcome.start).toEqual({ type: "input", input: { seen: { list: [1] }, parked: 2 } });
    expect([input.list, parked.length]).toEqual([[1], 2]);
  });

  test("that throw are refused with their field and their error", async () => {
    const cause = new Error("no such customer");
    const error = await refusal(() => evaluate({ resumeExpr: () => Promise.reject(cause) }));
    expect(error).toMatchObject({ reason: "door_contract", rule: "function", field: "resumeExpr", cause });
    expect(error.message).toContain("resumeExpr threw: no such customer");
  });

  test.each([() => new Date(0), () => ({ at: () => 1 }), () => Number.NaN, () => 1n])(
    "that give no JSON are refused: %o",
    async (extrasExpr) => {
      const error = await refusal(() => evaluate({ extrasExpr }));
      expect(error).toMatchObject({ reason: "door_contract", rule: "not_json", field: "extrasExpr" });
    },
  );

  test("go through the same parsers", async () => {
    expect(await refusal(() => evaluate({ resumeExpr: () => ({ id: "i-1", payload: undefined }) }))).toMatchObject({
      ...{ rule: "shape", field: "resumeExpr" },
    });
  });
});

describe("checking a contract", () => {
  test("declares exactly one variable, with a description and a sample", async () => {
    expect(Object.keys(doors.DOOR_VARIABLES)).toEqual(["parked"]);
    const { description, sample } = doors.DOOR_VARIABLES.parked;
    expect(description).not.toBe("");
    for (const field of doors.CONTRACT_FIELDS) {
      await compile({ [field]: "$parked | map(.id)" });
      const error = await refusal(() => compile({ [field]: "{input: $input}" }));
      expect(error).toMatchObject({ field, rule: "undeclared_variable", operation: "schedule" });
      expect(error.nextAction).toBe("use what is declared: $parked");
    }
    const seen = await doors.evaluateContract(
      jq,
      { cancelExpr: "$parked | map(.id)" },
      { input: null, parked: sample },
    );
    expect(seen.cancel).toEqual(["i-42", "r-7"]);
  });

  test("names the expression that does not compile, and where", async () => {
    const error = await refusal(() => compile({ startExpr: "{}", extrasExpr: "{a: 1,\n b: }" }));
    expect(error).toMatchObject({ reason: "door_contract", field: "extrasExpr", details: { line: 2 } });
  });

  test("takes functions as they are, and refuses what is neither", async () => {
    await compile({ startExpr: () => ({}) });
    expect(await refusal(() => compile({ startExpr: { task: "x" } }))).toMatchObject({
      ...{ reason: "invalid_field", field: "startExpr" },
    });
    expect(await refusal(() => compile({ start_expr: "{}" }))).toMatchObject({
      ...{ reason: "unknown_field", field: "start_expr" },
    });
  });
});
