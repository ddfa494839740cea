import { describe, expect, test } from "vitest";
import { piPlace, runHerd, until } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

describe("a task that a model delegates", () => {
  test("is carried out by a worker that asks once, is answered, and ends with one result", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({
        action: "assign",
        agent: "scout",
        task: task('call ask_owner {"question":"Which colour?"}', "say I took: {last}"),
      }),
      "say assigned",
      subagent({ action: "reply", label: "scout", message: "blue" }),
      "say answered",
      "say got {last}",
    );
    const result = textOf(await until(() => pi.herd("result")[0], "a result"));
    expect(result).toContain("I took:");
    expect(result).toContain("blue");
    await until(() => pi.texts.at(-1)?.startsWith("got"));
    expect(pi.herd("question").map(textOf)).toEqual([expect.stringContaining("Which colour?")]);
    expect(pi.herd("result")).toHaveLength(1);
    await pi.quit();
    expect((await runHerd(place, ["stop"])).stdout).toContain("has ended");
    expect(place.processes()).toEqual([]);
  });
});
