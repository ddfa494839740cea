import { CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import { pasted } from "../../test/support/pasted.ts";
import { HerdError, type HerdErrorOptions } from "../../runtime/index.ts";
import { EXIT, failureInJson, failureOf, Refusal, UsageError } from "./errors.ts";

const herdError = (reason: string, more: Partial<HerdErrorOptions> = {}) =>
  new HerdError({ category: "internal_failure", reason, message: "It is so", nextAction: "do this", ...more });

describe("what a command that failed says", () => {
  test.each([
    ["store_locked", EXIT.store],
    ["no_store", EXIT.store],
    ["not_running", EXIT.store],
    ["store_damaged", EXIT.unhealthy],
    ["store_format", EXIT.unhealthy],
    ["fenced", EXIT.fenced],
    ["already_answered", EXIT.refused],
    ["anything_else", EXIT.refused],
  ])("for %s ends with exit code %i", (reason, exitCode) => {
    expect(failureOf(herdError(reason))).toMatchObject({
      exitCode,
      message: expect.stringMatching(/It is so\. Next: /),
    });
  });

  test("is what the error says, and the whole stack only for a fault of the program", () => {
    expect(failureOf(new Refusal("No. Next: yes."))).toMatchObject({
      message: "No. Next: yes.",
      exitCode: EXIT.refused,
    });
    expect(failureOf(new UsageError("How"))).toMatchObject({ exitCode: EXIT.usage });
    expect(failureOf(new CommanderError(1, "commander.unknownOption", "said"))).toEqual({ exitCode: EXIT.usage });
    expect(failureOf(new CommanderError(0, "commander.help", "said"))).toEqual({ exitCode: EXIT.done });
    expect(failureOf(Object.assign(new Error("gone"), { code: "ENOENT" }))).toEqual({ message: "gone", exitCode: 3 });
    expect(failureOf(new TypeError("oops")).message).toContain("errors.test.ts");
  });

  test.each([
    ["asks_a_person", ["answer", "v3.0001", "…", "--directory", "a folder"]],
    ["user_ask_in_resume", ["answer", "v3.0001", "…", "--directory", "a folder"]],
    ["asks_its_caller", ["resume", "v3.0001", "…", "--directory", "a folder"]],
    ["entry_gone", ["parked", "--directory", "a folder"]],
    ["connection_lost", ["list", "--directory", "a folder"]],
    ["no_store", ["demo"]],
  ])("names for %s a command that runs as it is pasted", (reason, words) => {
    const { message = "" } = failureOf(herdError(reason, { ids: { askId: "v3.0001" } }), "a folder");
    // Nothing of the sentence sticks to it.
    const [, command = ""] = /(herd .*"a folder"|herd \w+)(?= )/.exec(message) ?? [];
    expect(pasted(command)).toEqual(["herd", ...words]);
  });

  test.each(["unknown_agent", "disabled_agent", "no_backend", "not_running", "fenced", "herd_closed"])(
    "speaks for %s of what somebody at a shell can do",
    (reason) => {
      const { message } = failureOf(herdError(reason, { nextAction: "define it in createHerd({ agents })" }));
      expect(message).toMatch(/^It is so\. Next: [a-z].*[a-z]\.$/);
      expect(message).not.toContain("createHerd");
    },
  );

  test("is for programs an object with the error's own fields", () => {
    expect(failureInJson(herdError("fenced"))).toMatchObject({
      ok: false,
      error: { category: "internal_failure", reason: "fenced", nextAction: "do this" },
    });
    expect(failureInJson(new Refusal("No"))).toEqual({ ok: false, error: { category: "refused", message: "No" } });
    expect(failureInJson(new UsageError("How"))).toMatchObject({ error: { category: "invalid_request" } });
  });
});
