import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { npm, shellEnv, unreachable } from "../../tools/package/npm.ts";
import { root } from "../../tools/run.ts";
import { blocksOf } from "../docs/page.ts";

const readme = await readFile(join(root, "README.md"), "utf8");
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

/** What a fresh checkout does not have. */
const NOT_OURS = new Set(["node_modules", ".git", "dist", ".herd"]);

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

  test(
    "has commands that work from nothing, in a copy of what it describes",
    { timeout: 240_000 },
    async ({ skip }) => {
      const copy = join(folder, "copy");
      await cp(root, copy, { recursive: true, filter: (path) => !NOT_OURS.has(basename(path)) });
      const blocks = blocksOf(readme, "sh");
      expect(blocks.length).toBeGreaterThan(0);
      for (const block of blocks) {
        const { status, stdout, stderr } = spawnSync("bash", ["-e", "-c", block], {
          cwd: copy,
          env: shellEnv,
          encoding: "utf8",
          stdio: ["ignore", "pipe", "pipe"],
        });
        skip(unreachable(stderr) !== undefined && process.env["HERD_E2E"] !== "required", "needs the npm registry");
        if (status !== 0) throw new Error(`${block}ended with ${status}:\n${stdout}${stderr}`);
        // What somebody without a terminal is told: the question waits, and how it is answered.
        expect(stdout).toMatch(/The command that answers it:\n\n +npm start -- /);
      }
    },
  );

  test("has charts that are drawn by the command it names", () => {
    expect(npm(["run", "--silent", "charts"], root)).toContain(".svg");
  });
});
