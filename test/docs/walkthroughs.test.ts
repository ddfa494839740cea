import { readdirSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { installPackage, type Installed } from "../../tools/package/install.ts";
import { RegistryUnreachable } from "../../tools/package/npm.ts";
import { page } from "./page.ts";
import { walkThrough } from "./walkthrough.ts";

/** Pages whose examples have a test of their own, which knows more about them. */
const TESTED_ELSEWHERE = [
  "README.md",
  "ask_owner.md",
  "backends.md",
  "definitions.md",
  "errors.md",
  "performance.md",
  "subagent.md",
  "worker-states.md",
];

const folder = new URL("../../docs/", import.meta.url);
const pages = readdirSync(folder).filter((name) => name.endsWith(".md") && !TESTED_ELSEWHERE.includes(name));
const installed = install();
afterAll(() => installed?.remove());

/** Without a registry nothing can be installed, which only a run that must look at everything takes for a failure. */
function install(): Installed | undefined {
  try {
    return installPackage();
  } catch (error) {
    if (error instanceof RegistryUnreachable && process.env["HERD_E2E"] !== "required") return undefined;
    throw error;
  }
}

describe.skipIf(installed === undefined)("somebody who follows a page (needs the npm registry)", () => {
  test.each(pages)("of %s sees what it shows", { timeout: 120_000 }, async (name) => {
    expect(walkThrough(await page(name), installed as Installed)).toBeGreaterThan(0);
  });
});
