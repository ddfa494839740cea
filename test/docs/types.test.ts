import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { fences, page } from "./page.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** What the pages take for granted. */
const GIVEN = `
declare const owner: import("pi-herd").Owner<string>;
declare const worker: import("pi-herd").Worker;
declare const question: import("pi-herd").Question;
`;

test("the TypeScript on the pages compiles", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "herd-docs-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const texts = await Promise.all(["subagent.md", "ask_owner.md"].map(page));
  const blocks = texts.flatMap(fences).filter(({ info }) => info === "ts");
  expect(blocks.length).toBeGreaterThan(5);
  await Promise.all(
    blocks.map(({ content }, index) => writeFile(join(folder, `${index}.mts`), `export {};\n${content}`)),
  );
  await writeFile(join(folder, "given.d.ts"), GIVEN);
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      typeRoots: [join(root, "node_modules/@types")],
      paths: {
        "pi-herd": [join(root, "runtime/index.ts")],
        "pi-herd/testing": [join(root, "runtime/testing/index.ts")],
        "pi-herd/contracts": [join(root, "runtime/contracts.ts")],
      },
    },
    include: [folder],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
  expect(stdout).toBe("");
});
