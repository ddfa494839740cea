import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = await readFile(join(root, "README.md"), "utf8");
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herd-readme-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, "gm"))].map(([, text = ""]) => text);
const npm = (...args: string[]) =>
  spawnSync("npm", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

describe("the README", () => {
  test("has an example that runs as it stands, on the package as it is published", async () => {
    const installed = join(folder, "node_modules", "pi-herd");
    await mkdir(installed, { recursive: true });
    await cp(join(root, "package.json"), join(installed, "package.json"));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const built = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", join(installed, "dist")], {
      cwd: root,
      encoding: "utf8",
    });
    expect(built.stdout + built.stderr).toBe("");
    await symlink(join(root, "node_modules"), join(installed, "node_modules"));
    const [example = ""] = blocks("js");
    expect(example.trim().split("\n").length).toBeLessThanOrEqual(15);
    await writeFile(join(folder, "example.mjs"), example);
    const ran = spawnSync(process.execPath, ["example.mjs"], { cwd: folder, encoding: "utf8" });
    expect(ran.stderr).toBe("");
    expect(ran.stdout).toBe("Hello, Ada!\n");
    // The same id gives the same assignment: it is told again and nothing is asked twice.
    expect(spawnSync(process.execPath, ["example.mjs"], { cwd: folder, encoding: "utf8" }).stdout).toBe(
      "Hello, Ada!\n",
    );
  });

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
    const parked = npm("start", "--silent", "--", "--directory", store);
    expect(parked.status).toBe(0);
    const answer = /npm start -- (.*--answer ".*")/.exec(parked.stdout)?.[1];
    expect(answer).toBeDefined();
    const answered = spawnSync(`npm start --silent -- ${answer}`, { cwd: root, encoding: "utf8", shell: true });
    expect(answered.status).toBe(0);
    expect(answered.stdout).toContain("Left out: ");
    expect(answered.stdout.match(/^Census of /gm)).toHaveLength(1);
  });

  test("has charts that are drawn by the command it names", () => {
    expect(npm("run", "--silent", "charts").status).toBe(0);
  });
});
