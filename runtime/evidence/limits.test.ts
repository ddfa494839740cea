import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { connected, folder, open, refusal } from "../../test/support/control.ts";
import type { Link } from "../control/link.ts";
import {
  createHerd,
  type AgentDefinition,
  type Herd,
  type HerdError,
  type MessageLimits,
  type Owner,
} from "../index.ts";
import { createTestHerd, type TestHerd } from "../testing/index.ts";

const long = "x".repeat(1_025);
const codeOf = (error: unknown) => (error as HerdError).reason;
const outcomeOf = (call: Promise<unknown>) => call.then(() => "taken", codeOf);

const echo: AgentDefinition = { description: "says its task", run: async (task) => task };
const texts: AgentDefinition = {
  description: "says which texts it got",
  run: async (_task, worker) => worker.files.map(({ text }) => text ?? "a path").join(),
};
const asks: AgentDefinition = {
  description: "asks what it was told to, or something short",
  run: (task, worker) =>
    worker.askOwner({ question: task === "long" ? long : task }).catch((error) => `refused: ${codeOf(error)}`),
};
const parent: AgentDefinition = {
  description: "gives its child much",
  subagents: ["echo"],
  run: (_task, worker) => outcomeOf(worker.assign({ agent: "echo", task: long })),
};
const agents = { echo, texts, asks, parent };

const owning = (t: TestHerd, limits: MessageLimits) => t.herd.owner("tester", { limits });

describe("the limits of a herd", () => {
  test.each([
    ["inlineBytes", -1, "0 or more"],
    ["inlineBytes", 1.5, "a whole number"],
    ["inlineBytes", Infinity, "a whole number"],
    ["payloadBytes", 1_023, "from 1024 to 1048576"],
    ["payloadBytes", 1_048_577, "from 1024 to 1048576"],
    ["payloadBytes", "8192", "a whole number"],
  ])("refuse %s: %j by its name and rule", async (field, value, rule) => {
    const error = await refusal(createHerd({ agents, [field]: value }));
    expect(error).toMatchObject({ category: "invalid_request", reason: "bad_option", field });
    expect(error.message).toContain(`option ${field}: must be a whole number of bytes`);
    expect(error.message).toContain(rule);
  });

  test.each([
    [{ inlineBytes: 2 }, "aa,a path,"],
    [{ inlineBytes: 0 }, "a path,a path,a path"],
    [{ payloadBytes: 1_048_576, inlineBytes: 1_048_576 }, "aa,bbb,"],
  ])("%j embed of three files %j", async (options, expected) => {
    const cwd = folder();
    for (const [name, text] of Object.entries({ a: "aa", b: "bbb", c: "" })) writeFileSync(join(cwd, name), text);
    const t = await createTestHerd({ agents, ...options, cwd });
    await t.owner.assign({ agent: "texts", task: "Read", files: ["a", "b", "c"] });
    expect((await t.result()).text).toBe(expected);
  });
});

describe("the limits of an owner", () => {
  test("count for its tasks, steers and replies, and for nobody else's", async () => {
    const t = await createTestHerd({ agents });
    const owner = owning(t, { payloadBytes: 1_024 });
    const calls = async (who: Owner<string>) => [
      await outcomeOf(who.assign({ agent: "echo", task: long })),
      await outcomeOf(who.assign({ label: "ready", task: long })),
      await outcomeOf(who.steer({ label: "slow", message: long })),
      await outcomeOf(who.reply({ label: "asks", message: long })),
    ];
    const tooLarge = Array.from({ length: 4 }, () => "payload_too_large");
    expect(await calls(owner)).toEqual(tooLarge);
    // An owner is its id: also whoever names no limits has them.
    expect(await calls(t.owner)).toEqual(tooLarge);
    expect(await calls(t.herd.owner("other"))).not.toContain("payload_too_large");
    const { error } = await owner.subagent({ action: "assign", agent: "echo", task: long });
    expect(error).toMatchObject({ reason: "payload_too_large", details: { bytes: 1_025, limit: 1_024 } });
  });

  test("count for what its workers ask and give their own, in processes too", async () => {
    const t = await createTestHerd({ agents: { ...agents, lead: { ...parent, description: "scripted" } } });
    const lead = t.scripted("lead");
    owning(t, { payloadBytes: 1_024 });
    await t.owner.assign({ agent: "asks", task: "long" });
    expect((await t.result()).text).toBe("refused: payload_too_large");
    await t.owner.assign({ agent: "parent", task: "Go" });
    expect((await t.result()).text).toBe("payload_too_large");
    await t.owner.assign({ agent: "lead", task: "Go" });
    const run = await lead.run();
    await run.turn();
    const refused = await run.subagent({ action: "assign", agent: "echo", task: long });
    expect(refused).toMatchObject({ ok: false, error: { reason: "payload_too_large" } });
    await t.herd.owner("other").assign({ agent: "parent", task: "Go", id: "theirs" });
    const theirs = await t.herd.owner("other").assign({ agent: "parent", task: "Go", id: "theirs" });
    expect((await theirs.result()).text).toBe("taken");
  });

  test("of a subject count for the runs that visits start on it, and for their questions", async () => {
    const t = await createTestHerd({ agents });
    const subject = { scope: "shop", keys: { order: "7" } };
    t.herd.owner(subject, { limits: { payloadBytes: 1_024 } });
    const start = (task: string) => t.herd.visit({ subject, start: { agent: "asks", task } });
    expect(await outcomeOf(start(long))).toBe("payload_too_large");
    expect(await start("long")).toMatchObject({ result: "refused: payload_too_large" });
  });

  test("are those that were given last; what is left out is the herd's, and so is all of it after a restart", async () => {
    const t = await createTestHerd({ agents, payloadBytes: 2_048 });
    const limit = async () => {
      const refused = t.owner.assign({ agent: "echo", task: "x".repeat(200_000) });
      return (await refusal(refused)).details?.["limit"];
    };
    owning(t, { payloadBytes: 1_024 });
    expect(await limit()).toBe(1_024);
    t.herd.owner("tester");
    expect(await limit()).toBe(1_024);
    owning(t, { inlineBytes: 0, payloadBytes: undefined });
    expect(await limit()).toBe(2_048);
    owning(t, { payloadBytes: 4_096 });
    await t.crash();
    expect(await limit()).toBe(2_048);
  });

  test.each([
    [{ payloadBytes: 1_023 }, "limits.payloadBytes", "must be a whole number of bytes from 1024 to 1048576"],
    [{ inlineBytes: -1 }, "limits.inlineBytes", "must be a whole number of bytes, 0 or more"],
    [{ inlineBytes: "0" }, "limits.inlineBytes", "must be a whole number of bytes, 0 or more"],
    [{ bytes: 5 }, "limits.bytes", "only inlineBytes and payloadBytes are known"],
    [null, "limits", "must be an object"],
  ])(
    "that are %j are refused by field and rule, here and at a client, and change nothing",
    async (bad, field, rule) => {
      const { herd, directory } = await open();
      const client = await connected(directory);
      herd.owner("me", { limits: { payloadBytes: 1_024 } });
      for (const side of [herd, client]) {
        const given = () => side.owner("me", { limits: bad as never, onResult: () => undefined });
        expect(given).toThrow(expect.objectContaining({ reason: "bad_owner", field, rule }));
      }
      expect(await outcomeOf(herd.owner("me").assign({ agent: "echo", task: long }))).toBe("payload_too_large");
      // Nobody hears for it: the refused one is no receiver.
      herd.owner("me", { onResult: () => undefined });
    },
  );

  test("of a client that only looks change nothing; those of one that hears count", async () => {
    const { herd, directory } = await open();
    const client = await connected(directory);
    const limits = { payloadBytes: 1_024 };
    const looks = client.owner("me", { limits });
    await looks.list();
    await looks.parked();
    await looks.subagent({ action: "list" });
    await looks.parkedTool("list_parked", {});
    expect(await outcomeOf(herd.owner("me").assign({ agent: "echo", task: long }))).toBe("taken");
    await client.owner("me", { limits, onQuestion: () => undefined }).list();
    expect(await outcomeOf(herd.owner("me").assign({ agent: "echo", task: long }))).toBe("payload_too_large");
  });

  test("can be given by a client, and count for this owner everywhere", async () => {
    const { herd, directory } = await open();
    const client = await connected(directory);
    const owner = client.owner("me", { limits: { payloadBytes: 1_024 } });
    expect(await refusal(owner.assign({ agent: "echo", task: long }))).toMatchObject({
      reason: "payload_too_large",
      details: { limit: 1_024 },
    });
    expect(await outcomeOf(herd.owner("me").assign({ agent: "echo", task: long }))).toBe("payload_too_large");
    expect(await outcomeOf(client.owner("other").assign({ agent: "echo", task: long }))).toBe("taken");
  });

  test("are looked at by the herd too, whatever a client says", async () => {
    const { directory } = await open();
    const { connection } = (await connected(directory)) as Herd & Link;
    const by = { owner: { id: "me" }, cwd: "/", limits: { payloadBytes: 1 } };
    const error = await refusal(connection.call("owner/list", by));
    expect(error).toMatchObject({ reason: "invalid_field", field: "limits" });
    expect(error.message).toContain("limits.payloadBytes: must be a whole number of bytes from 1024 to 1048576");
  });
});
