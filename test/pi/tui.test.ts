import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { piPlace, until } from "../support/pi/place.ts";
import { subagent, task } from "../support/pi/session.ts";
import { hasTmux, PiTerminal } from "../support/pi/tui.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const isRequired = process.env["HERD_E2E"] === "required";

describe.skipIf(!hasTmux && !isRequired)("on the screen of Pi (needs tmux)", () => {
  test("npm run pi tells a newcomer one whole story, and leaves nothing behind", async () => {
    const place = piPlace();
    const before = readdirSync(tmpdir());
    const terminal = new PiTerminal(place, [], { command: [process.execPath, `${root}examples/pi/try.ts`], cwd: root });
    await terminal.shows("Type yes or no.");
    terminal.type("no, package.json is enough", "Enter");
    const screen = await terminal.shows("The scout is through.");
    expect(screen).toContain("scout asks");
    expect(screen).toContain("Result of scout completed");
    expect(screen).toMatch(/you said:\s+no, package\.json is enough/);
    terminal.type("/quit", "Enter");
    await terminal.shows("exit code 0");
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("pi-herd-try-") && !before.includes(name))).toEqual(
      [],
    );
  });

  test("npm run pi leaves nothing behind when its terminal is closed in the middle", async () => {
    const place = piPlace();
    const before = readdirSync(tmpdir());
    const terminal = new PiTerminal(place, [], { command: [process.execPath, `${root}examples/pi/try.ts`], cwd: root });
    await terminal.shows("Type yes or no.");
    terminal.close();
    const left = () =>
      readdirSync(tmpdir()).filter((name) => name.startsWith("pi-herd-try-") && !before.includes(name));
    await until(() => left().length === 0).catch(() => undefined);
    expect(left()).toEqual([]);
  });

  test("a question and a result have a heading each, and the list shows what runs", async () => {
    const place = piPlace();
    const asks = task(
      'call ask_owner {"question":"Which colour?\\n\\n1. red\\n2. blue\\n3. green\\n4. black\\n5. white\\n6. grey\\n7. pink\\n8. gold"}',
    );
    const terminal = new PiTerminal(place, [
      ["SCRIPT", subagent({ action: "assign", agent: "scout", task: asks }), "say assigned", "say I see."].join("\n"),
    ]);
    const screen = await terminal.shows(/scout asks[^]*more lines/);
    expect(screen).toContain("A small background process");
    expect(screen).toMatch(/2 more lines \(ctrl\+o/);
    expect(screen).not.toMatch(/^ *8\. gold/m);
    expect(screen).not.toContain("Answer with");
    terminal.type("", "C-o");
    await terminal.shows(/^ *8\. gold/m);
    terminal.type("/subagents", "Enter");
    const listed = await terminal.shows(/^ *Agents \(/m);
    expect(listed).toMatch(/scout +blocked, asks: Which colour/);
    // Pi draws it anew before its extensions hear of it.
    terminal.type("/reload", "Enter");
    expect(await terminal.shows(/[Rr]eloaded/)).toMatch(/subagent assign · scout · SCRIPT/);
    // The next Pi in this folder hears of them.
    const other = new PiTerminal(place);
    expect(await other.shows("Workers of another session work in this folder: scout.")).toContain("open in another Pi");
    expect(await until(() => existsSync(place.herd))).toBe(true);
  });
});
