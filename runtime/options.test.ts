import { expect, test } from "vitest";
import { HerdError } from "./errors.ts";
import { resolveOptions } from "./options.ts";

const CALLER = "INTERACTIONS_MAX_CONCURRENT_CALLER";
const PEOPLE = "INTERACTIONS_MAX_CONCURRENT";

test.each<[Record<string, string>, object, number | null, number | null]>([
  [{}, {}, 10_000, 1_000],
  [{ [CALLER]: "5", [PEOPLE]: "null" }, {}, 5, null],
  [{ [CALLER]: " ", [PEOPLE]: "" }, {}, 10_000, 1_000],
  [{ [CALLER]: "5", [PEOPLE]: "6" }, { maxConcurrentCaller: null, maxConcurrent: 7 }, null, 7],
])("with the settings %j and the options %j the caps are %j and %j", (env, options, caller, people) => {
  const { maxConcurrentCaller, maxConcurrent } = resolveOptions(options, env);
  expect([maxConcurrentCaller, maxConcurrent]).toEqual([caller, people]);
});

test.each(["0", "-1", "many", "1.5", "1e3"])("a setting of %j is refused by its name", (value) => {
  const failure = (() => {
    try {
      return resolveOptions({}, { [CALLER]: value });
    } catch (error) {
      return error;
    }
  })();
  expect(failure).toBeInstanceOf(HerdError);
  expect(failure).toMatchObject({ reason: "bad_option", field: CALLER });
});
