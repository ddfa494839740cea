import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { npm } from "../../tools/package/npm.ts";
import { root } from "../../tools/run.ts";

const readme = await readFile(join(root, "README.md"), "utf8");
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herd-readme-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the README", () => {
  test("names no command and no file that does not exist", async () => {
    const commands = [...readme.matchAll(/(?:^|`|\$ )npm (?:run )?([a-z]+)/gm)].map(([, name = ""]) => name);
    expect(commands.length).toBeGreaterThan(5);
    const known = [...Object.keys(manifest.scripts), "ci"];
    expect(commands.filter((name) => !known.includes(name))).toEqual([]);
    const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, path = ""]) => path);
    const missing = await Promise.all(
      links.map((path) =>
        stat(join(root, path)).then(
          () => [],
          () => [path],
        ),
      ),
    );
    expect(missing.flat()).toEqual([]);
  });

  test("has a start and an answer that work as they are written", async () => {
    const store = join(folder, "store");
    const parked = npm(["start", "--silent", "--", "--directory", store], root);
    const answer = /npm start -- (.*--answer ".*")/.exec(parked)?.[1];
    expect(answer).toBeDefined();
    const answered = spawnSync(`npm start --silent -- ${answer}`, { cwd: root, encoding: "utf8", shell: true });
    expect(answered.status).toBe(0);
    expect(answered.stdout).toContain("Left out: ");
    expect(answered.stdout.match(/^Census of /gm)).toHaveLength(1);
  });

  test("has charts that are drawn by the command it names", () => {
    expect(npm(["run", "--silent", "charts"], root)).toContain(".svg");
  });
});
