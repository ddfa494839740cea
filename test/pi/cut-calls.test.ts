import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { client, serve } from "../support/pi/client.ts";
import { piPlace, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** A place whose clients reach the host through something that breaks a connection once: in place of the answer to a call. */
async function placeThatCuts(mark: string) {
  const place = piPlace();
  serve(place);
  await client(place, { role: "observer" });
  const control = join(place.herd, "control");
  const [path = "", ...rest] = readFileSync(control, "utf8").split("\n");
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((near) => {
    const far = connect(path);
    let answerTo: string | undefined;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    near.on("data", (data) => {
      const line = data.toString();
      if (!isCut && answerTo === undefined && line.includes(mark)) answerTo = /"id":(\d+)/.exec(line)?.[1];
      far.write(data);
    });
    far.on("data", (data) => {
      if (answerTo === undefined || !data.includes(`"id":${answerTo},"result"`)) return near.write(data);
      answerTo = undefined;
      isCut = true;
      near.destroy();
      return far.destroy();
    });
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  const socket = join(place.base, "between");
  await new Promise<void>((done) => server.listen(socket, done));
  onTestFinished(() => {
    for (const each of sockets) each.destroy();
    server.close();
  });
  writeFileSync(control, [socket, ...rest].join("\n"));
  return { place, cut: () => until(() => isCut, "the cut") };
}

function linesOf(place: PiPlace): string[] {
  const folder = join(place.herd, "pi-sessions");
  return readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
}

describe("a call whose answer is lost on the way is made again, and carried out once:", () => {
  test("an assign", async () => {
    const { place, cut } = await placeThatCuts('"action":"assign"');
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({ action: "assign", agent: "scout", label: "worker", task: task("say found it") }),
      "say {last}",
      "say end",
    );
    await cut();
    expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/found it$/);
    expect(pi.toolResults("subagent").map(({ isError }) => isError)).toEqual([false]);
    expect(linesOf(place).filter((line) => line.includes('"kind":"task"'))).toHaveLength(1);
  });

  test("a steer", async () => {
    const { place, cut } = await placeThatCuts('"action":"steer"');
    const pi = new PiSession(place);
    const waits = 'call bash {"command":"touch begun; until test -e go; do sleep 0.05; done"}';
    await pi.prompt(
      subagent({ action: "assign", agent: "generalist", label: "worker", task: task(waits, "say one", "say two") }),
      'call bash {"command":"until test -e begun; do sleep 0.05; done"}',
      subagent({ action: "steer", label: "worker", message: "mind the gap" }),
      "say steered",
      "say end",
    );
    await cut();
    await until(() => pi.texts.includes("steered"));
    writeFileSync(join(place.cwd, "go"), "");
    await until(() => pi.herd("result")[0], "the result");
    expect(linesOf(place).filter((line) => line.includes('"kind":"steer"'))).toHaveLength(1);
  });

  test("a question", async () => {
    const { place, cut } = await placeThatCuts('"method":"worker/ask"');
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({
        action: "assign",
        agent: "scout",
        label: "worker",
        task: task('call ask_owner {"question":"Which?"}', "say got {end}"),
      }),
      "say assigned",
      subagent({ action: "reply", label: "worker", message: "this" }),
      "say replied",
      "say end",
    );
    await cut();
    expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/got this$/);
    expect(pi.herd("question")).toHaveLength(1);
    expect(linesOf(place).filter((line) => line.includes('"isError":true'))).toEqual([]);
  });

  test("a parent's assign", async () => {
    const { place, cut } = await placeThatCuts('"method":"worker/subagent"');
    const pi = new PiSession(place);
    // Its result may come before the parent says its next word, or after.
    const child = subagent({ action: "assign", agent: "implementer", label: "child", task: task("say found it") });
    await pi.prompt(
      subagent({
        action: "assign",
        agent: "generalist",
        label: "parent",
        task: task(child, "say the child {end}", "say the child {end}"),
      }),
      "say assigned",
      "say end",
    );
    await cut();
    expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/the child found it$/);

    expect(linesOf(place).filter((line) => line.includes('"isError":true'))).toEqual([]);
  });
});
