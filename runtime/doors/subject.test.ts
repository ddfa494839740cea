import { afterAll, describe, expect, test } from "vitest";
import type { Json } from "../../machines/vocabulary.ts";
import { Jq } from "./jq.ts";
import { compileSubject, evaluateSubject, parseSubject } from "./subject.ts";

const jq = new Jq();
afterAll(() => jq.close());

describe("the subject of an input", () => {
  test("is what the program yields over it", async () => {
    const program = '{scope: "shop", keys: {order: .order | tostring, customer: .customer}}';
    await compileSubject(jq, program, "schedule");
    expect(await evaluateSubject(jq, program, { order: 7, customer: "ada" })).toEqual({
      scope: "shop",
      keys: { order: "7", customer: "ada" },
    });
  });

  test("has no keys for what the input lacks", async () => {
    const program = '{scope: "shop", keys: {order: .order, customer: .customer, place: ""}}';
    expect(await evaluateSubject(jq, program, { order: "7" })).toEqual({ scope: "shop", keys: { order: "7" } });
  });

  test.each<[Json]>([
    ...([[null], ["shop"], [[]], [{}], [{ scope: "shop" }], [{ keys: { order: "7" } }]] as [Json][]),
    ...([[{ scope: "", keys: { order: "7" } }], [{ scope: " ", keys: { order: "7" } }]] as [Json][]),
    ...([[{ scope: 1, keys: { order: "7" } }], [{ scope: "shop", keys: {} }]] as [Json][]),
    ...([[{ scope: "shop", keys: ["7"] }], [{ scope: "shop", keys: { order: null } }]] as [Json][]),
    ...([[{ scope: "shop", keys: { order: " " } }], [{ scope: "shop", keys: { order: 7 } }]] as [Json][]),
    ...([[{ scope: "shop", keys: { order: "7", customer: 8 } }]] as [Json][]),
    ...([[{ scope: "shop", keys: { order: "7", customer: ["ada"] } }]] as [Json][]),
    ...([[{ scope: "shop", keys: { order: "7" }, kind: "order" }]] as [Json][]),
  ])("is not %j", (value) => {
    expect(() => parseSubject(value, "hook")).toThrow(
      expect.objectContaining({ reason: "door_contract", rule: "shape", field: "subject", operation: "hook" }),
    );
  });

  test("does not depend on what is parked", async () => {
    await expect(compileSubject(jq, "$parked[0]", "schedule")).rejects.toMatchObject({
      ...{ reason: "door_contract", rule: "undeclared_variable", field: "subject", operation: "schedule" },
    });
  });

  test("is refused where the program fails or yields several", async () => {
    await expect(evaluateSubject(jq, ".a.b", [])).rejects.toMatchObject({ rule: "runtime_error", field: "subject" });
    await expect(evaluateSubject(jq, "1, 2", {})).rejects.toMatchObject({ rule: "several_values" });
  });
});
