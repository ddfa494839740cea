import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { version } from "../../adapters/pi/version.ts";
import { leftBehind, Root, serve, statusOf } from "../support/pi/client.ts";
import { piPlace, runHerd, until } from "../support/pi/place.ts";
import { commandsIn, pasted } from "../support/pasted.ts";
import { task } from "../support/pi/session.ts";

const agent = (fields: string) => `---\ndescription: a test's\n${fields}\n---\nYou work.\n`;

describe("herd doctor --pi", () => {
  test("says of everything that Pi's workers need what is wrong and how to mend it, and makes nothing", async () => {
    const place = piPlace({
      agents: { broken: agent("thinking: hard"), typo: agent("modle: scripted/script") },
      settings: { herd: { dialogs: "never" } },
    });
    const bin = join(place.base, "bin");
    mkdirSync(bin);
    for (const [name, text] of [
      ["node", "echo v20.1.0"],
      ["pi", "exit 1"],
    ] as const) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    place.env["PATH"] = `${bin}:${place.env["PATH"]}`;
    const { code, stdout, stderr } = await runHerd(place, ["doctor", "--pi"]);
    expect({ code, stderr }).toEqual({ code: 4, stderr: "" });
    expect(stdout).toMatch(
      /^WRONG +path +.*bin\/node, which runs the command pi, is Node.js v20.1.0\n +Next: put Node/m,
    );
    expect(stdout).toMatch(
      /^WRONG +settings +the setting herd.dialogs is ignored: .*\n +Next: correct it in .*settings/m,
    );
    expect(stdout).toMatch(/^WRONG +definitions .*broken.*\n +Next: correct its field thinking in .*broken.md: /m);
    expect(stdout).toMatch(/^ok +definitions .*modle.*\n +Next: correct its field modle in .*typo.md: /m);
    expect(stdout).toMatch(/^ok +pi +Pi 1\.\d+\.\d+ at /m);
    expect(stdout).toMatch(/^ok +tmux +/m);
    expect(stdout).toMatch(/^ok +herdr +/m);
    expect(stdout).toMatch(/^ok +host +none runs; a Pi session starts one/m);
    expect(existsSync(place.herd)).toBe(false);
  });

  test("counts agents of a project only where Pi trusts it, and names settings and tools that have no effect", async () => {
    const place = piPlace({
      agents: {
        odd: agent("tools: [read, nosuch, mcp__x, 'web_*', subagent]"),
        bare: agent("tools: [nosuch]\nnoExtensions: true"),
      },
      settings: { herd: { projectAgents: true } },
    });
    const doctor = async () => (await runHerd(place, ["doctor", "--pi"])).stdout;
    const own = join(place.cwd, ".pi");
    mkdirSync(join(own, "agents"), { recursive: true });
    writeFileSync(join(own, "agents", "mine.md"), agent("thinking: low"));
    writeFileSync(join(own, "settings.json"), JSON.stringify({ herd: { projectAgents: true, dialogs: 7 } }));

    const undecided = await doctor();
    expect(undecided).toMatch(/^ok +definitions +7 agents: bare, (?!.*\bmine\b)/m);
    expect(undecided).toMatch(
      /^ok +definitions +.*\.pi\/agents is left out: Pi was not told yet to trust .*\n +Next: .*\/trust$/m,
    );
    expect(undecided).toMatch(
      /^WRONG +settings +the setting herd\.projectAgents in .* is ignored: .*\n +Next: take it out there/m,
    );
    expect(undecided).toMatch(
      /^ok +definitions +"odd" has in its tools nosuch, which is none of Pi's own\n +Next: correct .*odd\.md, unless an extension/m,
    );
    expect(undecided).toMatch(
      /^WRONG +definitions +"bare" has in its tools nosuch, .* no extension that could bring it$/m,
    );

    const trust = (says: boolean) =>
      writeFileSync(join(place.agentDir, "trust.json"), JSON.stringify({ [place.base]: says }));
    trust(true);
    const trusted = await doctor();
    expect(trusted).toMatch(/^ok +definitions +8 agents: .*\bmine\b/m);
    expect(trusted).toMatch(/^WRONG +settings +.*dialogs is ignored: it must be "ask" or "deny", and is 7$/m);
    trust(false);
    expect(await doctor()).toMatch(/^ok +definitions +.* is left out: Pi does not trust this project$/m);
  });

  test("says who serves, and which Pi is too old or none", async () => {
    const place = piPlace();
    const host = serve(place);
    const root = await Root.of(place);
    const well = await runHerd(place, ["doctor", "--pi", "--json"]);
    const { ok, checks } = JSON.parse(well.stdout);
    expect({ code: well.code, ok }).toEqual({ code: 0, ok: true });
    const says = Object.fromEntries(checks.map((check: { name: string; says: string }) => [check.name, check.says]));
    expect(says["host"]).toMatch(
      new RegExp(`^process ${host.child.pid} since .*, pi-herd ${version}: 1 Pi session, 0 w`),
    );
    expect(says["socket"]).toContain("herd.sock");

    // Its folder alone says what it is.
    const old = join(place.base, "old");
    mkdirSync(old);
    writeFileSync(
      join(old, "package.json"),
      JSON.stringify({ name: "@earendil-works/pi-coding-agent", version: "1.5.9" }),
    );
    writeFileSync(join(old, "pi.js"), "#!/bin/sh\n");
    chmodSync(join(old, "pi.js"), 0o755);
    writeFileSync(join(place.herd, "key"), "damaged");
    const bin = join(place.base, "bin");
    mkdirSync(bin);
    symlinkSync(join(old, "pi.js"), join(bin, "pi"));
    place.env["PATH"] = `${bin}:${place.env["PATH"]}`;
    const ill = await runHerd(place, ["doctor", "--directory", place.herd]);
    expect(ill.code).toBe(4);
    expect(ill.stdout).toMatch(/^WRONG +pi +Pi 1\.5\.9 at .*needs 1\.6\.0 or newer\n +Next: npm install -g /m);
    expect(ill.stdout).toMatch(/^WRONG +host +The file .*key is damaged.*\n +Next: .* remove /m);
    await root.connection.close(0);
    host.child.kill("SIGTERM");
    expect((await host.ended).code).toBe(0);
    expect(leftBehind(place)).toEqual([]);
  });
});

describe("from a shell", () => {
  test("somebody answers the dialogs of workers, and reaches the herd of Pi without naming its folder", async () => {
    const place = piPlace();
    const asks = join(place.base, "asks.ts");
    writeFileSync(
      asks,
      `export default (pi) => {
        const tool = (name, ask) => pi.registerTool({ name, label: name, description: name,
          parameters: { type: "object", properties: {} },
          async execute(_id, _params, _signal, _update, ctx) {
            return { content: [{ type: "text", text: name + ": " + JSON.stringify(await ask(ctx.ui) ?? null) }], details: {} };
          } });
        tool("approve", (ui) => ui.confirm("Delete the folder?", "build/"));
        tool("choose", (ui) => ui.select("Which branch?", ["main", "next"]));
      };`,
    );
    writeFileSync(join(place.agentDir, "agents", "careful.md"), agent(`extensions: [${asks}]`));
    serve(place);
    const root = await Root.of(place);
    await root.assign("careful", task("call approve {}", "call choose {}", "say over: {last}"), { agent: "careful" });
    const shown = async (method: string) => {
      await until(async () => (await statusOf(place)).dialogs[0]?.method === method, `the dialog ${method}`);
      return (await runHerd(place, ["status"])).stdout;
    };
    expect(await shown("confirm")).toMatch(
      /"careful" waits for a person: Delete the folder\?: build\/ \(\w{8}; yes or no\)\n {2}Next: node \S+ answer careful yes$/m,
    );
    const wrong = await runHerd(place, ["answer", "careful", "perhaps"]);
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toMatch(/no answer to the dialog of "careful": it asks for yes or no\. Next: /);
    const nobody = await runHerd(place, ["answer", "nobody", "yes"]);
    expect(nobody.stderr).toMatch(/No dialog of "nobody" is open; open are those of "careful"/);
    expect(await runHerd(place, ["answer", "careful", "yes"])).toEqual({
      code: 0,
      stdout: 'Answered: "careful" goes on.\n',
      stderr: "",
    });
    const second = await shown("select");
    expect(second).toContain('one of "main", "next", or no)');
    expect(commandsIn(second).map((command) => pasted(command).slice(2))).toEqual([["answer", "careful", "main"]]);
    const id = /\((\w{8});/.exec(second)?.[1] as string;
    const answered = await runHerd(place, ["answer", id, "next", "--json"]);
    expect(JSON.parse(answered.stdout)).toEqual({ answered: true, label: "careful", dialog: id });
    await until(async () => (await root.worker("careful"))?.state === "settling", "the result");
    expect((await runHerd(place, ["answer", id, "next"])).code).toBe(1);

    // No .herd is here, so that of Pi is meant; one that is here goes before it.
    const listed = (await runHerd(place, ["list"])).stdout;
    expect(listed).toContain("careful");
    // The session of a worker is named to programs, in the list and with the result.
    const [result = ""] = commandsIn(listed);
    const told = JSON.parse((await runHerd(place, [...pasted(result).slice(2), "--json"])).stdout);
    const [owner] = JSON.parse((await runHerd(place, ["list", "--json"])).stdout).owners;
    expect(existsSync(told.result.details.piSessionFile)).toBe(true);
    expect(owner.workers).toMatchObject([{ label: "careful", pi_session_path: told.result.details.piSessionFile }]);
    const closed = await runHerd(place, ["close", "careful"]);
    expect(closed).toEqual({ code: 0, stdout: 'Closed: "careful".\n', stderr: "" });
    mkdirSync(join(place.cwd, ".herd"));
    expect((await runHerd(place, ["list"])).stderr).toMatch(/no herd in .*project\/\.herd/);
    await root.connection.close(0);
    expect((await runHerd(place, ["stop"])).code).toBe(0);
    expect(leftBehind(place)).toEqual([]);
  }, 60_000);
});
