import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { bundledFolder } from "../../runtime/definitions/roster.ts";
import { installPackage, type Installed } from "../../tools/package/install.ts";
import { npm, RegistryUnreachable, shellEnv } from "../../tools/package/npm.ts";
import { binary, root } from "../../tools/run.ts";
import { blocksOf, page } from "../docs/page.ts";
import { model, piPlace, runHerd, runPi } from "../support/pi/place.ts";
import { subagent, task } from "../support/pi/session.ts";
import { walkThrough } from "../docs/walkthrough.ts";

const required = process.env["HERD_E2E"] === "required";
const installed = install();
const folder = installed?.folder ?? "";
afterAll(() => installed?.remove());

const [example = ""] = blocksOf(readFileSync(join(root, "README.md"), "utf8"), "js");

/** Without a registry there is nothing to look at, which only a run that must look at everything takes for a failure. */
function install(): Installed | undefined {
  try {
    return installPackage();
  } catch (error) {
    if (error instanceof RegistryUnreachable && !required) return undefined;
    throw error;
  }
}

function run(script: string, ...args: string[]): { stdout: string; stderr: string } {
  const { stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: folder,
    env: shellEnv,
    encoding: "utf8",
  });
  return { stdout, stderr };
}

describe.skipIf(installed === undefined)("the package, installed in an empty folder", () => {
  test("runs the README's example as it stands", () => {
    expect(example.trim().split("\n").length).toBeLessThanOrEqual(15);
    writeFileSync(join(folder, "example.mjs"), example);
    expect(run("example.mjs")).toEqual({ stdout: "Hello, Ada!\n", stderr: "" });
    // The same id gives the same assignment: it is told again and nothing is asked twice.
    expect(run("example.mjs")).toEqual({ stdout: "Hello, Ada!\n", stderr: "" });
  });

  test("says how to install Pi where there is none", async () => {
    const file = join(installed?.package ?? "", "dist", "adapters", "host", "pi-command.js");
    const { findPi } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
      findPi(env: NodeJS.ProcessEnv): Promise<unknown>;
    };
    await expect(findPi({ PATH: "" })).rejects.toMatchObject({
      reason: "pi_missing",
      message: expect.stringMatching(
        /^Pi is not installed: .* Next: install it with npm install -g \S+ and try again\.$/,
      ),
    });
  });

  test("has the herd command", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(npm(["exec", "--offline", "--", "herd", "--version"], folder)).toBe(`${version}\n`);
  });

  test("has the bundled definitions, and finds them there", () => {
    const definitions = join(installed?.package ?? "", "dist", "runtime", "definitions");
    const built = join(definitions, "bundled");
    const files = readdirSync(bundledFolder);
    expect(readdirSync(built)).toEqual(files);
    for (const file of files) {
      expect(readFileSync(join(built, file), "utf8")).toBe(readFileSync(join(bundledFolder, file), "utf8"));
    }
    const script = `
      import { bundledFolder, Definitions } from ${JSON.stringify(pathToFileURL(join(definitions, "roster.js")))};
      const { definitions } = await new Definitions([]).current();
      console.log(JSON.stringify([bundledFolder, [...definitions.keys()]]));`;
    const { stdout, stderr } = run("--input-type=module", "--eval", script);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([built, files.map((file) => file.replace(/\.md$/, ""))]);
  });
});

/** The package is not on the registry as it stands here: who installs it by its name gets this one. */
const NPM = `#!/bin/sh
PATH="$REAL_PATH"
for word in "$@"; do
  shift
  if [ "$word" = pi-herd ]; then word="$TARBALL"; fi
  set -- "$@" "$word"
done
exec npm "$@" --prefer-offline
`;

describe.skipIf(installed === undefined)("the package in Pi", () => {
  const story = [
    "SCRIPT",
    subagent({
      action: "assign",
      agent: "scout",
      task: task('call ask_owner {"question":"Which?"}', "say {end} it is"),
    }),
    "say assigned",
    subagent({ action: "reply", label: "scout", message: "this one" }),
    "say told",
    "say {end}",
  ].join("\n");

  test("installs with pi install from its folder, and workers run out of it", async () => {
    const place = piPlace({ extensions: [model] });
    const { code, stdout } = await runPi(place, ["install", installed?.package ?? ""]);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("Installed") });
    expect(await runPi(place, ["-p", story])).toEqual({ code: 0, stdout: "this one it is\n", stderr: "" });
    const status = await runHerd(place, ["status"], join(installed?.package ?? "", "adapters/cli/herd.js"));
    expect(status.stdout).toContain("serves");
    expect((await runHerd(place, ["stop"])).stdout).toContain("has ended");
  });

  test.skipIf(process.platform === "win32")("installs with pi install from npm, by its name", async () => {
    const place = piPlace({ extensions: [model] });
    const bin = join(place.base, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "npm"), NPM, { mode: 0o755 });
    const path = [dirname(process.execPath), shellEnv["PATH"]].join(delimiter);
    const env = { PATH: [bin, path].join(delimiter), REAL_PATH: path, TARBALL: installed?.tarball, PI_OFFLINE: "" };
    const { code, stdout, stderr } = await runPi(place, ["install", "npm:pi-herd"], env);
    expect({ code, stderr, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining("Installed") });
    expect(await runPi(place, ["-p", story])).toEqual({ code: 0, stdout: "this one it is\n", stderr: "" });
    // It puts no command on the PATH: the one that messages name is run from where it was installed.
    const herd = join(place.agentDir, "npm", "node_modules", "pi-herd", "adapters", "cli", "herd.js");
    expect((await runHerd(place, ["stop"], herd)).stdout).toContain("has ended");
  });

  test("is there for one run with -e", async () => {
    const place = piPlace({ extensions: [model] });
    const { stdout, stderr } = await runPi(place, ["-e", installed?.package ?? "", "-p", story]);
    expect({ stdout, stderr }).toEqual({ stdout: "this one it is\n", stderr: "" });
  });
});

/** Pages whose examples have a test of their own, which knows more about them. */
const TESTED_ELSEWHERE = [
  "README.md",
  "ask_owner.md",
  "backends.md",
  "definitions.md",
  "errors.md",
  "performance.md",
  "pi.md",
  "pi-recovery.md",
  "pi-sessions.md",
  "pi-troubleshooting.md",
  "pi-workers.md",
  "subagent.md",
  "worker-states.md",
];

const pages = readdirSync(join(root, "docs")).filter(
  (name) => name.endsWith(".md") && !TESTED_ELSEWHERE.includes(name),
);

// Here because they need nothing but the installation, which takes long to make.
describe.skipIf(installed === undefined)("somebody who follows a page (needs the npm registry)", () => {
  test.each(pages)("of %s sees what it shows", { timeout: 120_000 }, async (name) => {
    expect(walkThrough(await page(name), installed as Installed)).toBeGreaterThan(0);
  });
});

/** The README's example as a TypeScript program has it: what is not inferred is named. */
function typedExample(): string {
  return example
    .replace("import { createHerd }", "import { createHerd, type AgentDefinition }")
    .replace("const greeter =", "const greeter: AgentDefinition =");
}

/** Uses every entry point; the lines after `@ts-expect-error` must not compile. */
const uses = `
import { createHerd, HerdError, type Question, type Result, type Worker } from "pi-herd";
import { createTestHerd, memoryStore, type TestHerd } from "pi-herd/testing";
import { backendContract, storeContract, type BackendUnderTest, type StoreUnderTest } from "pi-herd/contracts";

async function run(task: string, worker: Worker): Promise<string> {
  const length: number = await worker.step("length", () => task.length);
  // @ts-expect-error a step gives what its function gives
  const wrong: string = await worker.step("length", () => task.length);
  return String(length) + wrong;
}
const agents = { counter: { description: "Counts", run } };
export async function use(): Promise<[Question, Result]> {
  const herd = await createHerd({ store: memoryStore(), agents });
  // @ts-expect-error no such agent
  await herd.owner("me").assign({ agent: "other", task: "x" });
  const t: TestHerd = await createTestHerd({ agents });
  return [await t.question(), await t.result()];
}
export const isRefusal = (error: unknown): boolean => error instanceof HerdError;
declare const under: BackendUnderTest;
declare const store: StoreUnderTest;
storeContract("memory", async () => store);
backendContract("mine", () => under);
`;

const exact = {
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
};
/** Where all definitions are read too, they have to do with what the project has. */
const projects = [
  { name: "with @types/node", options: { types: ["node"], skipLibCheck: false } },
  {
    name: "with explicit disposal and no @types/node",
    options: { types: [], lib: ["es2024", "dom"], skipLibCheck: false },
  },
  { name: "with the strictest options", options: { types: ["node"], skipLibCheck: false, ...exact } },
];

describe.skipIf(installed === undefined).each(projects)("a strict TypeScript project $name", ({ name, options }) => {
  test("finds that the types of the installed package hold", () => {
    const project = join(folder, name.replaceAll(/\W+/g, "-"));
    const compilerOptions = { strict: true, module: "nodenext", noEmit: true, ...options };
    const types = join(project, "node_modules", "@types", "node");
    mkdirSync(dirname(types), { recursive: true });
    // A copy would have to bring along what it depends on.
    if (options.types.length > 0) symlinkSync(join(root, "node_modules", "@types", "node"), types, "junction");
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    writeFileSync(join(project, "package.json"), `{ "type": "module" }\n`);
    writeFileSync(join(project, "example.ts"), typedExample());
    writeFileSync(join(project, "uses.ts"), uses);
    expect(run(binary("typescript", "tsc"), "-p", project)).toEqual({ stdout: "", stderr: "" });
  });
});
