import { spawnSync } from "node:child_process";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { Json } from "../../machines/vocabulary.ts";
import { HerdError } from "../errors.ts";
import { Jq, type JqOptions } from "./jq.ts";

const place = { operation: "door", field: "startExpr" };
const jq = new Jq();
afterAll(() => jq.close());

function open(options?: JqOptions): Jq {
  const opened = new Jq(options);
  onTestFinished(() => opened.close());
  return opened;
}

const run = (program: string, input: Json = null, variables: Record<string, Json> = {}, on = jq) =>
  on.evaluate(program, { ...place, input, variables });
const compile = (program: string, variables: string[] = ["parked"]) => jq.compile(program, { ...place, variables });

async function refusal(call: Promise<unknown>): Promise<HerdError> {
  const error = await call.then(
    (value) => new Error(`it was not refused and gave ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof HerdError) return error;
  throw error;
}

describe("evaluating", () => {
  test.each<[string, Json, Json]>([
    [".a.b", { a: { b: [1, "é", null] } }, [1, "é", null]],
    ["empty", null, null],
    [".missing", {}, null],
    ["[.[] | . + 1]", [1, 2], [2, 3]],
    ["-1", null, -1],
    ["-.a", { a: 3 }, -3],
    [". # a comment \\", 1, 1],
    [". # a comment \\\\", 1, 1],
    ["\n.\r\n| .\n", "x", "x"],
    ["label $out | 1, break $out", null, 1],
    ["[limit(3; repeat(1))]", null, [1, 1, 1]],
    ['"\\u0000 \\ud83d\\ude00"', null, "\u0000 😀"],
    ["def double: . * 2; double", 4, 8],
  ])("%j on %j yields %j", async (program, input, output) => {
    expect(await run(program, input)).toEqual(output);
  });

  test("binds the variables that are given, and nothing else", async () => {
    expect(await run("{input: ., one: $one, two: $two}", 0, { one: 1, two: [2] })).toEqual({
      input: 0,
      one: 1,
      two: [2],
    });
    expect(await refusal(run("$three", 0, { one: 1 }))).toMatchObject({ rule: "undeclared_variable" });
  });

  test("takes a megabyte of input and a thousand parked entries, both ways", async () => {
    const text = "é".repeat(500_000);
    const parked = Array.from({ length: 1_000 }, (_, n) => ({ id: `i-${n}`, question: "?".repeat(200) }));
    expect(await run(". + {n: ($parked | length)}", { text }, { parked })).toEqual({ text, n: 1_000 });
    expect(await run("[$parked[].id]", null, { parked })).toHaveLength(1_000);
    expect(await run("$parked", null, { parked })).toEqual(parked);
  });

  test("never mixes up what runs at the same time", async () => {
    const sums = Array.from({ length: 200 }, (_, n) => run(`$n + ${n}`, null, { n }));
    expect(await Promise.all(sums)).toEqual(sums.map((_, n) => 2 * n));
  });

  test.each([
    ["1, 2", "several_values", "more than one value"],
    ["repeat(1)", "several_values", "more than one value"],
    ["infinite", "not_finite", "infinite"],
    ["[{a: nan}]", "not_finite", "no number"],
    ["1E1000", "not_finite", "infinite"],
    ["1, infinite", "not_finite", "infinite"],
    ['error("too bad")', "runtime_error", "failed in jq: too bad."],
    ["error({code: 7})", "runtime_error", 'failed in jq: {"code":7}.'],
    ["1, error", "runtime_error", "failed in jq: null."],
    ['"x" | .a', "runtime_error", 'Cannot index string with string ("a")'],
  ])("%j is refused as %s", async (program, rule, words) => {
    const error = await refusal(run(program));
    expect(error).toMatchObject({ category: "invalid_request", reason: "door_contract", rule, ...place });
    expect(error.message).toContain(words);
  });

  test("cuts what a program says when it fails", async () => {
    const { message } = await refusal(run('error("x" * 100000)'));
    expect(message).toMatch(/^startExpr failed in jq: x{200}…\. Next: /);
  });

  test("refuses an input that is no JSON", async () => {
    const error = await refusal(run(".", { at: new Date(0) } as never));
    expect(error).toMatchObject({ reason: "door_contract", rule: "not_json", field: "startExpr" });
  });

  test.each(["ENV", "ARGS", "__loc__", "a-b", "", "1"])("refuses %j as the name of a variable", async (name) => {
    expect(await refusal(run(".", null, { [name]: 1 }))).toMatchObject({ rule: "variable_name" });
  });
});

describe("a program is sealed in", () => {
  test.each([
    ...["env", "env.PATH", "input", "[inputs]", "debug", 'debug("x")', "stderr", "halt", "halt_error", "halt_error(1)"],
    ...["input_filename", "get_search_list", '"a" | modulemeta'],
  ])("%s is not available", async (program) => {
    const error = await refusal(run(program));
    expect(error).toMatchObject({ rule: "runtime_error" });
    expect(error.message).toContain("is not available here");
  });

  test("it sees no environment and no arguments", async () => {
    expect(await run("[$ENV, $ARGS]", null, { parked: [] })).toEqual([{}, {}]);
    expect(await refusal(run("$__prog_args"))).toMatchObject({ rule: "undeclared_variable" });
  });

  test.each(['import "a" as a; 1', 'include "a"; 1', 'import "/etc/passwd" as $p; $p', "module {}; 1"])(
    "%s is no program",
    async (program) => {
      expect(await refusal(compile(program))).toMatchObject({ rule: "syntax" });
    },
  );

  test.each(["1) | (2", "1)] | [(2", "1\u0000) | (2", "1 | input) | (1", "--help", "-n", "-f"])(
    "%j does not get out",
    async (program) => {
      expect(await refusal(run(program))).toMatchObject({ reason: "door_contract", rule: "syntax" });
    },
  );
});

describe("compiling", () => {
  test.each(["[$parked[].id]", "repeat($parked)", "def f: f; f", 'error("never")'])(
    "takes what is declared and runs nothing of it: %s",
    async (program) => {
      await expect(compile(program)).resolves.toBeUndefined();
    },
  );

  test.each<[string, number, number]>([
    ["$nope", 1, 1],
    ["{a: 1,\n b: $nope,\n c: $other}", 2, 5],
    ['"äö€" | .x |\r\n  [ "😀", $nope ]', 2, 10],
    ["1 as [$x] | $nope", 1, 13],
  ])("%j names the variable, its line and its column", async (program, line, column) => {
    const error = await refusal(compile(program));
    expect(error).toMatchObject({ rule: "undeclared_variable", details: { line, column }, ...place });
    expect(error.message).toContain(`uses $nope (line ${line}, column ${column})`);
    expect(error.nextAction).toBe("use what is declared: $parked");
  });

  test("says when nothing is declared", async () => {
    expect((await refusal(compile("$parked", []))).nextAction).toBe("use what is declared: no variable");
  });

  test.each<[string, string, object]>([
    ["1 +", "unexpected end of file", { line: 1, column: 3 }],
    [".a\n| if 1 then", "unexpected end of file", { line: 2, column: 8 }],
    ["[1,\n 2", "unexpected end of file", { line: 2, column: 2 }],
    ["\n\n  nothing(1)", "nothing/1 is not defined", { line: 3, column: 3 }],
    ["break $out", "break $out is outside of its label", { line: 1, column: 1 }],
  ])("%j is refused at its place", async (program, words, details) => {
    const error = await refusal(compile(program));
    expect(error).toMatchObject({ rule: "syntax", details, ...place });
    expect(error.message).toContain(words);
  });

  test.each(["", "  \n", "# only a comment", "def f: 1;"])("%j is no program", async (program) => {
    expect(await refusal(compile(program))).toMatchObject({ rule: "syntax" });
  });

  test("refuses a program that is too long, and one that nests too deep", async () => {
    expect(await refusal(compile(`1 # ${"x".repeat(65_536)}`))).toMatchObject({ rule: "too_long" });
    expect(await refusal(compile(`${"(".repeat(20_000)}1${")".repeat(20_000)}`))).toMatchObject({ rule: "syntax" });
  });

  test("is done before the first evaluation, also where nobody asked for it", async () => {
    expect(await refusal(run("2) | (1"))).toMatchObject({ rule: "syntax", details: { line: 1, column: 2 } });
  });
});

describe("a program that takes too much", () => {
  test.each(["def f: f; f", "last(range(1e12))", "until(false; .)"])("of time is ended: %s", async (program) => {
    const own = open({ timeoutMs: 500, workers: 1 });
    const [error, next] = await Promise.all([refusal(run(program, null, {}, own)), run("1", null, {}, own)]);
    expect(error).toMatchObject({ reason: "door_contract", rule: "timeout", ...place });
    expect(error.message).toContain("not done after 500 ms");
    expect(next).toBe(1);
  });

  test.each(["[repeat(1)]", "[range(1e9)]", "def f: [f]; f", "def f: 1 + f; f", '"x" * 1e9'])(
    "of memory is refused: %s",
    async (program) => {
      const own = open({ timeoutMs: 30_000, workers: 1 });
      const error = await refusal(run(program, null, {}, own));
      expect(error).toMatchObject({ reason: "door_contract", rule: "out_of_memory", ...place });
      expect(await run("[range(3)]", null, {}, own)).toEqual([0, 1, 2]);
    },
  );

  test.each(["reduce range(850) as $i (null; [.])", "reduce range(5000) as $i (null; [.])"])(
    "of jq's stack is refused, and what it broke answers nobody: %s",
    async (program) => {
      const own = open({ timeoutMs: 30_000, workers: 1 });
      expect(await refusal(run(program, null, {}, own))).toMatchObject({ rule: "out_of_memory" });
      expect(await run("[range(3)]", null, {}, own)).toEqual([0, 1, 2]);
    },
  );

  test("does not hold up the others", async () => {
    const own = open({ timeoutMs: 30_000, workers: 2 });
    const endless = run("def f: f; f", null, {}, own).catch((error: HerdError) => error.reason);
    expect(await Promise.all([1, 2, 3].map((n) => run(`${n}`, null, {}, own)))).toEqual([1, 2, 3]);
    await own.close();
    expect(await endless).toBe("herd_closed");
  });
});

describe("closing", () => {
  test("refuses what runs, what waits and what comes later", async () => {
    const own = open({ timeoutMs: 30_000, workers: 1 });
    const calls = [run("def f: f; f", null, {}, own), run("1", null, {}, own)].map(refusal);
    await own.close();
    for (const call of [
      ...calls,
      refusal(run("1", null, {}, own)),
      refusal(own.compile("1", { ...place, variables: [] })),
    ])
      expect(await call).toMatchObject({ category: "internal_failure", reason: "herd_closed" });
    await own.close();
  });
});

describe("a process that uses it", () => {
  const inProcess = (program: string) =>
    spawnSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8", timeout: 20_000 });
  const load = `import { Jq } from ${JSON.stringify(new URL("./jq.ts", import.meta.url).href)};
    const jq = new Jq({ timeoutMs: 1_000 });
    const run = (program) => jq.evaluate(program, { field: "f", operation: "o", input: null, variables: {} });`;

  test("ends with idle threads", () => {
    const { status, stdout, stderr } = inProcess(`${load} console.log(await Promise.all([run("1"), run("2")]));`);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "[ 1, 2 ]\n", stderr: "" });
  });

  test("stays until what runs has settled, also where it is ended, and prints nothing of jq's", () => {
    const { status, stdout, stderr } = inProcess(
      `${load} for (const program of ["def f: f; f", '"x" * 1e9', "1"])
        run(program).then(console.log, (error) => console.log(error.rule));`,
    );
    expect({ status, lines: stdout.split("\n").toSorted(), stderr }).toEqual({
      status: 0,
      lines: ["", "1", "out_of_memory", "timeout"],
      stderr: "",
    });
  });

  test("starts no thread and loads no jq before the first use", () => {
    const { stdout } = inProcess(`${load} console.log(process.getActiveResourcesInfo().length, jq instanceof Jq);`);
    expect(stdout).toBe("0 true\n");
  });

  test("may use it in a thread of its own, whose messages stay its own", () => {
    const thread = `${load} const { parentPort } = await import("node:worker_threads");
      parentPort.postMessage(await run("1"));`;
    const { status, stdout, stderr } = inProcess(`import { Worker } from "node:worker_threads";
      const url = "data:text/javascript," + encodeURIComponent(${JSON.stringify(thread)});
      new Worker(new URL(url)).on("message", console.log);`);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "1\n", stderr: "" });
  });
});
