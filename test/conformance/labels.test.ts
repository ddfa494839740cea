import { describe, expect, test } from "vitest";
import { createTestHerd } from "pi-herd/testing";
import { asks, does, gate, refusalOf, rowsOf } from "./support.ts";

const agents = { asks, does };

describe("an explicit label", () => {
  test("that a live worker holds is refused, and every stored row stays as it was", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "one" });
    await t.question();
    const before = await rowsOf(t);
    expect(await refusalOf(t.owner.assign({ agent: "does", task: "B", label: "one" }))).toMatchObject({
      category: "worker_label_exists",
      ids: { label: "one" },
      rollbackOccurred: false,
    });
    expect(await rowsOf(t)).toBe(before);
  });

  test("that is taken is told before what is wrong with the files", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "one" });
    for (const request of [{ files: ["gone.md"] }, { task: "x".repeat(200_000) }]) {
      const refused = t.owner.assign({ agent: "does", task: "B", label: "one", ...request });
      expect(await refusalOf(refused)).toMatchObject({ category: "worker_label_exists" });
    }
    expect(await refusalOf(t.owner.assign({ agent: "does", task: "B", files: ["gone.md"] }))).toMatchObject({
      reason: "unreadable_file",
    });
  });

  test("that another owner holds in the same workspace is refused, and every stored row stays as it was", async () => {
    const t = await createTestHerd({ agents });
    const mine = t.herd.owner("mine", { workspace: "shared" });
    const theirs = t.herd.owner("theirs", { workspace: "shared" });
    await theirs.assign({ agent: "does", task: "A", label: "one" });
    await mine.assign({ agent: "does", task: "B", label: "two" });
    const before = await rowsOf(t);
    expect(await refusalOf(mine.assign({ agent: "does", task: "C", label: "one" }))).toMatchObject({
      category: "worker_label_exists",
    });
    expect(await rowsOf(t)).toBe(before);
  });

  test("is free again at once when its worker was closed", async () => {
    const t = await createTestHerd({ agents });
    for (const task of ["A", "B", "C"]) {
      await t.owner.assign({ agent: "asks", task, label: "one" });
      await t.owner.close({ label: "one" });
    }
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("is told from one that differs in its last character", async () => {
    const t = await createTestHerd({ agents });
    const [one, two] = ["1", "2"].map((end) => `${"review-long-".repeat(2)}abcdefg${end}`) as [string, string];
    expect(one).toHaveLength(32);
    await t.owner.assign({ agent: "asks", task: "first", label: one });
    await t.owner.assign({ agent: "asks", task: "second", label: two });
    await t.idle();
    await t.owner.close({ label: one });
    expect((await t.owner.list()).workers).toMatchObject([{ label: two, state: "blocked" }]);
    await t.owner.reply({ label: two, message: "yes" });
    expect((await t.result()).text).toBe("second: yes");
  });
});

describe("a generated label", () => {
  test("whose suffix would exceed 32 characters is refused, starts nothing, and leaves nothing claimed", async () => {
    const agent = "r".repeat(32);
    const t = await createTestHerd({ agents: { [agent]: does } });
    const script = t.scripted(agent);
    await t.owner.assign({ agent, task: "A" });
    const before = await rowsOf(t);
    expect(await refusalOf(t.owner.assign({ agent, task: "B" }))).toMatchObject({
      category: "invalid_request",
      reason: "bad_label",
      field: "label",
    });
    expect(await rowsOf(t)).toBe(before);
    expect(script.runs).toHaveLength(1);
    await t.owner.close({ label: agent });
    expect((await t.owner.assign({ agent, task: "B" })).label).toBe(agent);
  });

  test("passes over those that are taken, also by results that nobody has fetched yet", async () => {
    const t = await createTestHerd({ agents });
    const owner = t.herd.owner("me");
    await owner.assign({ agent: "does", task: "A" });
    await owner.assign({ agent: "does", task: "B", label: "does-3" });
    expect((await owner.assign({ agent: "does", task: "C" })).label).toBe("does-2");
    expect((await owner.assign({ agent: "does", task: "D" })).label).toBe("does-4");
  });

  test("from a name that cannot be one is refused before anything changes", async () => {
    const t = await createTestHerd({ agents: { Reviewer: does, "code.review": does } });
    const script = t.scripted("Reviewer");
    for (const agent of ["Reviewer", "code.review"]) {
      const { error } = await t.owner.subagent({ action: "assign", agent, task: "A" });
      expect(error).toMatchObject({ category: "invalid_request", field: "label" });
    }
    expect(await rowsOf(t)).toBe("");
    expect(script.runs).toEqual([]);
  });
});

test("a request that is acknowledged late takes nothing from the next worker under its label", async () => {
  const t = await createTestHerd({ agents });
  const received: string[] = [];
  const [handed, read] = [gate(), gate()];
  const owner = t.herd.owner("me", {
    onResult: async (result) => {
      handed.open();
      await read.opened;
      received.push(result.text);
    },
  });
  await owner.assign({ agent: "does", task: "A", label: "one" });
  await handed.opened;
  await owner.close({ label: "one" });
  await owner.assign({ agent: "asks", task: "B", label: "one" });
  read.open();
  await t.idle();
  expect(received).toEqual(["did A"]);
  expect((await owner.list()).workers).toMatchObject([{ label: "one", agentDefinition: "asks", state: "blocked" }]);
  expect(await refusalOf(owner.assign({ agent: "does", task: "C", label: "one" }))).toMatchObject({
    category: "worker_label_exists",
  });
});
