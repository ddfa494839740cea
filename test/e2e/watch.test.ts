import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { columnsOf } from "../../runtime/index.ts";
import { folderWith } from "./folder.ts";
import { herd, root, start, until, type Running } from "./herd-process.ts";
import { hasTmux, Terminal } from "./terminal.ts";

const required = process.env["HERD_E2E"] === "required";

const program = `
  import { createHerd } from ${JSON.stringify(new URL("runtime/index.ts", `file://${root}/`).href)};
  const asks = {
    description: "Asks",
    run: async (task, worker) => task + " " + (await worker.askOwner({ question: "日本語の質問 👩‍👩‍👧‍👦 ".repeat(20) })),
  };
  const lead = {
    description: "Has a child",
    subagents: ["asks"],
    run: async (_task, worker) => {
      worker.report("thinks\\u001b[2Jabout it");
      const child = await worker.assign({ agent: "asks", label: "child", task: "Part" });
      for await (const event of child) if (event.type === "result") return event.result.text;
    },
  };
  const herd = await createHerd({ directory: process.argv[2], agents: { asks, lead }, tickMs: 0 });
  await herd.owner("me").assign({ id: "a", agent: "asks", label: "first", task: "Take" });
  await herd.owner("me").assign({ id: "b", agent: "lead", label: "lead", task: "Whole" });
  console.log("ready");
  process.stdin.on("end", () => herd.close()).resume();
`;

const isLive = (screen: string) => screen.includes("me") && !screen.includes("No program");

// In CI tmux has to be there: without it the test fails instead of being skipped.
describe.skipIf(!hasTmux && !required)("herd watch in a terminal (needs tmux)", () => {
  test("shows the workers live and within its width, through the end of a program and the start of the next", async () => {
    const folder = folderWith({ "program.ts": program, "package.json": '{ "type": "module" }' });
    const directory = join(folder, "herd");
    const open = async (): Promise<Running> => {
      const running = start(process.execPath, [join(folder, "program.ts"), directory], folder, { stdin: "pipe" });
      let text = "";
      running.child.stdout?.on("data", (part: string) => (text += part));
      await until("the program", () => text.includes("ready"));
      return running;
    };
    const first = await open();
    const terminal = new Terminal(["watch", "--directory", directory], folder);
    const live = await terminal.shows("└─ child");
    expect(live).toMatch(/^ {2}first +blocked +asks: 日本語の質問/m);
    expect(live).toContain("me");
    for (const line of live.split("\n")) expect(columnsOf(line)).toBeLessThan(90);

    await herd(["reply", "first", "this", "--directory", directory], folder);
    await terminal.shows("1 result waits");
    first.child.stdin?.end();
    await first.ended;
    const resting = await terminal.shows("No program has this herd open");
    expect(resting).toContain("child");
    const second = await open();
    await until("the next program", () => isLive(terminal.screen()));
    expect(terminal.screen()).toContain("child");
    await herd(["close", "lead", "--directory", directory], folder);
    await until("the end of the child", () => isLive(terminal.screen()) && !terminal.screen().includes("child"));
    terminal.type("", "C-c");
    await terminal.shows("exit code 130");
    second.child.stdin?.end();
    expect(await second.ended).toMatchObject({ code: 0, stderr: "" });
  });
});
