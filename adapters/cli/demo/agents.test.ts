import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createTestHerd, type TestHerd } from "../../../runtime/testing/index.ts";
import { folderWith } from "../../../test/e2e/folder.ts";
import { censusAgents } from "./agents.ts";
import type { Report } from "./report.ts";

/** Waiting runs stay in memory, or are parked out of it at once: nothing may depend on which. */
const modes = [
  { name: "waiting in memory", options: {} },
  { name: "parked at once", options: { parkAfter: 0 } },
];

const files = {
  ".gitignore": "dist\n",
  "a.ts": "1\n2\n",
  "src/b.ts": "1\n",
  "src/deep/c.py": "1\n",
  "dist/a.js": "1\n",
  "my docs/d.md": "1\n",
  ".herd/store/e.log": "1\n",
};

async function answered(t: TestHerd, message: string): Promise<Report> {
  const { askId } = await t.question();
  await t.owner.reply({ askId, message });
  const { status, data, error } = await t.result();
  expect(error).toBeUndefined();
  expect(status).toBe("completed");
  return data as Report;
}

describe.each(modes)("the census, $name", ({ options }) => {
  async function begin(folder: string): Promise<TestHerd> {
    const t = await createTestHerd({ ...options, agents: censusAgents(join(folder, ".herd")) });
    await t.owner.assign({ agent: "census", task: folder, cwd: folder });
    return t;
  }

  test("asks one question, with evidence from the folder", async () => {
    const folder = folderWith(files);
    const t = await begin(folder);
    const { question, files: evidence } = await t.question();
    expect(question.split("\n")).toEqual([
      `Which folders do I leave out of the census of ${folder}?`,
      "",
      "  folder         files  bytes",
      "  src                2    4 B",
      "  dist               1    2 B  looks generated: build output",
      '  "my docs"          1    2 B',
      "  (loose files)      2    9 B",
      "",
      'Answer with names, separated by spaces or commas, or with "none".',
    ]);
    expect(evidence).toEqual([{ path: join(folder, ".gitignore"), bytes: 5, text: "dist\n" }]);
    await t.close();
  });

  test("counts by language what is not left out, and says what was", async () => {
    const folder = folderWith(files);
    const t = await begin(folder);
    const { table, ...data } = await answered(t, 'dist "my docs"');
    expect(data).toEqual({
      folder,
      languages: [
        { language: "TypeScript", files: 2, lines: 3, bytes: 6 },
        { language: "Ignore list", files: 1, lines: 1, bytes: 5 },
        { language: "Python", files: 1, lines: 1, bytes: 2 },
      ],
      total: { files: 4, lines: 5, bytes: 13 },
      leftOut: ["dist", "my docs"],
      unknown: [],
      unreadable: { count: 0, paths: [] },
      failed: [],
    });
    expect(table.split("\n")).toEqual([
      `Census of ${folder}`,
      "",
      "  language     files  lines  bytes",
      "  TypeScript       2      3      6",
      "  Ignore list      1      1      5",
      "  Python           1      1      2",
      "  total            4      5     13",
      "",
      'Left out: dist (1 file, 2 B), "my docs" (1 file, 2 B).',
    ]);
    expect(t.owner.questions).toHaveLength(1);
    expect((await t.owner.list()).workers).toEqual([]);
    await t.close();
  });

  test("reports a folder that it does not find instead of guessing one", async () => {
    const t = await begin(folderWith(files));
    const report = await answered(t, "dits");
    expect(report.leftOut).toEqual([]);
    expect(report.total.files).toBe(6);
    expect(report.table).toContain("No such folder, so not left out: dits.");
    await t.close();
  });

  test("goes on with the same question and the same choice after crashes", async () => {
    const folder = folderWith(files);
    const t = await begin(folder);
    await t.idle();
    await t.crash();
    await t.idle();
    await t.crash();
    const question = await t.question();
    await t.owner.reply({ askId: question.askId, message: "dist" });
    await t.crash();
    const { data } = await t.result();
    await t.crash();
    await t.idle();
    expect((data as Report).total.files).toBe(5);
    expect(new Set(t.owner.questions.map(({ askId }) => askId))).toEqual(new Set([question.askId]));
    expect(t.owner.results).toHaveLength(1);
    await t.close();
  });

  test("counts what is there when it counts: new folders too, gone ones not", async () => {
    const folder = folderWith(files);
    const t = await begin(folder);
    await t.idle();
    rmSync(join(folder, "src"), { recursive: true });
    mkdirSync(join(folder, "new"));
    await t.owner.reply({ askId: (await t.question()).askId, message: "src dist" });
    const { data } = await t.result();
    expect(data).toMatchObject({ unknown: ["src"], leftOut: ["dist"], total: { files: 3 } });
    await t.close();
  });

  test("has more folders than counters counted, none twice and none forgotten", async () => {
    const many = Array.from({ length: 60 }, (_, n) => [`folder-${n}/a.ts`, "1\n"]);
    const t = await begin(folderWith(Object.fromEntries(many)));
    expect((await answered(t, "folder-1 folder-59")).total).toEqual({ files: 58, lines: 58, bytes: 116 });
    await t.close();
  });

  test("names a part whose counter failed and keeps the others", async () => {
    const folder = folderWith(files);
    const { census, counter } = censusAgents("");
    const failing: typeof counter.run = (task, worker) =>
      task.includes('"folder":"my docs"') ? Promise.reject(new Error("the disk is tired")) : counter.run(task, worker);
    const t = await createTestHerd({ ...options, agents: { census, counter: { ...counter, run: failing } } });
    await t.owner.assign({ agent: "census", task: folder, cwd: folder });
    const report = await answered(t, "none");
    expect(report.failed).toEqual([{ part: '"my docs"', message: "the disk is tired" }]);
    expect(report.table).toContain('Not counted: "my docs", because its worker failed: the disk is tired');
    expect(report.total.files).toBe(6);
    await t.close();
  });

  test("fails when its folder is gone before it looked", async () => {
    const t = await createTestHerd({ ...options, agents: censusAgents("") });
    await t.owner.assign({ agent: "census", task: join(folderWith({}), "gone") });
    const { status, error } = await t.result();
    expect(status).toBe("failed");
    expect(error?.message).toMatch(/gone/);
    await t.close();
  });
});
