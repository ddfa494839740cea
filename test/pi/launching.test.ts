import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectHost } from "../../adapters/host/start.ts";
import { piPlace, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** Extensions that keep a worker's process from saying who it is: for a while, and for ever. */
const LATE = "export default () => new Promise((done) => setTimeout(done, 1500));";
const NEVER = "export default () => new Promise(() => void setInterval(() => undefined, 1000));";

/** What is left of workers, beside their sessions. */
function leftOf(place: PiPlace): string[] {
  return ["prompts", "processes"].flatMap((name) => {
    const folder = join(place.herd, name);
    return existsSync(folder) ? readdirSync(folder) : [];
  });
}

function define(place: PiPlace, agent: string, extension: string): void {
  const path = join(place.base, `${agent}.ts`);
  writeFileSync(path, extension);
  const text = `---\nname: ${agent}\ndescription: Starts ${agent}\nextensions: [${path}]\n---\n`;
  writeFileSync(join(place.agentDir, "agents", `${agent}.md`), text);
}

/** Every row of a label that the host lists, from now on, as often as it can be asked. */
async function watch(place: PiPlace, owner: string, label: string) {
  const open = () => connectHost({ directory: place.herd, bearer: { role: "observer" }, version: "0.0.0" });
  const connection = await until(open, "the host");
  const looks: string[][] = [];
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const list = (await connection.call("owner/list", {
        owner: { id: owner },
        workspace: owner,
        cwd: place.cwd,
      })) as any;
      looks.push(list.workers.filter((row: any) => row.label === label).map(({ state }: any) => state));
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    await connection.close(0);
    return looks;
  };
}

test("a worker that says late who it is is accepted, and has one row from its start to its end", async () => {
  const place = piPlace();
  define(place, "late", LATE);
  const pi = new PiSession(place);
  const { sessionId } = await pi.state();
  await pi.prompt(
    subagent({ action: "assign", agent: "late", task: task('call bash {"command":"sleep 0.3"}', "say here") }),
    "say assigned",
    "say end",
  );
  const stop = await watch(place, sessionId, "late");
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/\n\nhere$/);
  await until(() => pi.texts.includes("end"));
  await until(
    () => leftOf(place).length === 0,
    () => leftOf(place).join(", "),
  );
  const looks = await stop();
  expect(looks.filter((rows) => rows.length > 1)).toEqual([]);
  const states = looks.flat().filter((state, index, all) => state !== all[index - 1]);
  expect(states.join(" ")).toMatch(/^(settling )?working( settling)?$/);
});

test("one that never says it is ended within its time, once, with nothing left, and its label is free", async () => {
  const place = piPlace();
  define(place, "never", NEVER);
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "never", label: "worker", task: "Begin", timeoutMs: 5_001 }),
    subagent({ action: "list" }),
    subagent({ action: "assign", agent: "scout", label: "worker", task: task("say here") }),
    "say assigned",
    "say end",
  );
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/\n\nhere$/);
  const [refused, list] = pi.toolResults("subagent");
  expect(refused).toMatchObject({
    isError: true,
    details: { error: { category: "pane_not_ready", rollbackOccurred: true, details: { stage: expect.any(String) } } },
  });
  expect(textOf(list!)).toContain("No workers");
  await until(
    () => leftOf(place).length === 0 && place.workers().length === 0,
    () => leftOf(place).join(", "),
  );
  // The root and the host.
  expect(place.processes()).toHaveLength(2);
});
