import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runNode, type Serving } from "../support/pi/client.ts";
import { piCli, piPlace, runHerd, runPi, until, type PiPlace } from "../support/pi/place.ts";
import { subagent, task } from "../support/pi/session.ts";

const script = (...steps: string[]) => ["SCRIPT", ...steps].join("\n");
const AN_HOUR = { herd: { printWaitMs: 3_600_000 } };

/** Has a worker sleep, and comes back once its model has said its last word and waits for it. */
async function waiting(place: PiPlace): Promise<Serving> {
  const sleeps = task('call bash {"command":"sleep 60"}', "say done");
  const prompt = script(
    subagent({ action: "assign", agent: "generalist", label: "scout", task: sleeps }),
    "say assigned",
  );
  const pi = runNode(place, [piCli, "--mode", "json", "-p", prompt]);
  let said = "";
  pi.child.stdout?.on("data", (part: string) => (said += part));
  const isOver = () => said.split("\n").some((line) => line.includes("turn_end") && line.includes("assigned"));
  await until(isOver, "the last word of its model");
  return pi;
}

describe("pi -p", () => {
  test("waits for its workers, answers them, and prints what became of their work", async () => {
    const place = piPlace();
    const prompt = script(
      subagent({
        action: "assign",
        agent: "scout",
        task: task('call ask_owner {"question":"How many?"}', "say {last}"),
      }),
      "say assigned",
      subagent({ action: "reply", label: "scout", message: "forty-two" }),
      "say answered",
      "say finally {last}",
    );
    const { code, stdout, stderr } = await runPi(place, ["-p", prompt]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^finally label: scout \| agent: scout \| request: \S+ \| status: completed/);
    expect(stdout).toContain("forty-two");
    expect(stdout).not.toContain("assigned");
  });

  test("does not wait any more for a worker that was closed from a shell", async () => {
    const place = piPlace({ settings: AN_HOUR });
    const prompt = script(
      subagent({
        action: "assign",
        agent: "generalist",
        label: "scout",
        task: task('call bash {"command":"sleep 60"}', "say done"),
      }),
      "say assigned",
      "say heard {last}",
    );
    const pi = runNode(place, [piCli, "-p", "--session-id", "the-one", prompt]);
    await until(() => place.workers().length === 1, "the worker");
    await until(
      async () => (await runHerd(place, ["list", "--directory", place.herd])).stdout.includes("working"),
      "work",
    );
    const closed = await runHerd(place, ["close", "scout", "--directory", place.herd]);
    expect(closed).toMatchObject({ code: 0 });
    // Long before an hour is over.
    expect((await pi.ended).stdout).toContain('heard "scout" was closed from outside of this session.');
  });

  test("says what still runs when its time is over, and leaves it at work", async () => {
    const place = piPlace({ settings: { herd: { printWaitMs: 300 } } });
    const prompt = script(
      subagent({
        action: "assign",
        agent: "generalist",
        label: "scout",
        task: task('call bash {"command":"sleep 30"}', "say done"),
      }),
      "say assigned",
    );
    const { stdout, stderr } = await runPi(place, ["-p", prompt]);
    expect(stdout.trim()).toBe("assigned");
    expect(stderr.trim().split("\n").at(-1)).toMatch(
      /^herd: scout still at work\. Next: pi --session "\S+" goes on with them\.$/,
    );
    expect((await runHerd(place, ["status"])).stdout).toContain("1 worker");
  });

  test("does not wait for a worker whose question its model has left open, and brings what waited at the next start", async () => {
    const place = piPlace();
    const asks = task('call ask_owner {"question":"Which?"}', "say end: {end}");
    const prompt = script(
      subagent({ action: "assign", agent: "scout", task: asks }),
      "say assigned",
      "say I do not know",
    );
    const first = await runPi(place, ["-p", "--session-id", "the-one", prompt]);
    expect(first.stdout.trim()).toBe("I do not know");
    expect(first.stderr).toMatch(
      /^herd: scout still waiting for an answer\. Next: pi --session "\S+" goes on with them\.$/m,
    );
    const shell = await runHerd(place, ["reply", "scout", "this one", "--directory", place.herd]);
    expect(shell.code).toBe(0);
    const second = await runPi(place, ["-p", "--session-id", "the-one", script("say back again", "say {end}")]);
    expect(second).toMatchObject({ code: 0, stdout: "end: this one\n", stderr: "" });
  });

  test("does not wait for a worker that another worker has assigned, which says nothing here", async () => {
    const place = piPlace({ settings: AN_HOUR });
    const parent = task(
      subagent({
        action: "assign",
        agent: "scout",
        label: "child",
        task: task('call ask_owner {"question":"Which?"}'),
      }),
      "say waiting for the child",
      'call bash {"command":"until test -e waits; do sleep 0.05; done"}',
      'call ask_owner {"question":"Which one for the child?"}',
    );
    const prompt = script(
      subagent({ action: "assign", agent: "generalist", label: "parent", task: parent }),
      "say assigned",
      "say I do not know",
    );
    const pi = runNode(place, [piCli, "-p", prompt]);
    const isAsking = async () =>
      (await runHerd(place, ["list", "--directory", place.herd])).stdout.includes("asks: Which?");
    await until(isAsking, "the child's question");
    writeFileSync(join(place.cwd, "waits"), "");
    const { stdout, stderr } = await pi.ended;
    expect(stdout).toBe("I do not know\n");
    expect(stderr).toContain("herd: parent, child still waiting for an answer.");
  });

  test("ends when its time is over also when the background process does not answer, and says so", async () => {
    const place = piPlace({ settings: { herd: { printWaitMs: 3_000 } } });
    const pi = await waiting(place);
    const host = place.host() as number;
    process.kill(host, "SIGSTOP");
    onTestFinished(() => void process.kill(host, "SIGCONT"));
    const { stderr } = await pi.ended;
    expect(stderr.trim().split("\n").at(-1)).toMatch(
      new RegExp(
        `^herd: The background process \\(${host}\\) does not answer.* Next: kill -9 ${host} ends it, and pi --session `,
      ),
    );
  });

  test.each([
    ["SIGTERM", 143, "herd: scout still at work. Next: pi --session "],
    // Nobody catches it, which leaves no time for a last word.
    ["SIGINT", null, ""],
  ] as const)("leaves at the first %s while it waits", async (signal, code, word) => {
    const pi = await waiting(piPlace({ settings: AN_HOUR }));
    pi.child.kill(signal);
    const ended = await pi.ended;
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain(word);
  });

  test("that never delegates starts no background process", async () => {
    const place = piPlace();
    expect((await runPi(place, ["-p", script("say hello")])).stdout.trim()).toBe("hello");
    expect((await runHerd(place, ["status"])).stdout).toContain("No background process runs");
  });
});
