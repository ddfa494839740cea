import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { installPackage, type Installed } from "../../tools/package/install.ts";
import { npm, RegistryUnreachable, shellEnv } from "../../tools/package/npm.ts";
import { binary, root } from "../../tools/run.ts";
import { blocksOf } from "../docs/page.ts";

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

  test("has the herd command", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(npm(["exec", "--offline", "--", "herd", "--version"], folder)).toBe(`${version}\n`);
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
