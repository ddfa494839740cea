import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import type { Started } from "../invocation.ts";
import { commandLine } from "./command-line.ts";

const installed: Started = { argv: ["node", "/usr/bin/herd"], env: {}, platform: "linux" };
const npmStart: Started = { argv: ["node", resolve("adapters/cli/herd.js")], env: { npm_lifecycle_event: "start" } };
const here = { folder: ".", directory: ".herd" };

describe("the command that goes on", () => {
  test("is npm start when npm start began", () => {
    expect(commandLine(here, "dist", npmStart)).toBe('npm start -- --answer "dist"');
    expect(commandLine(here, undefined, npmStart)).toBe("npm start");
    expect(commandLine({ ...here, directory: "my store" }, "none", npmStart)).toBe(
      'npm start -- --directory "my store" --answer "none"',
    );
  });

  test("is herd when the command is installed", () => {
    expect(commandLine({ folder: "../it", directory: ".herd" }, "dist build", installed)).toBe(
      'herd demo ../it --directory .herd --answer "dist build"',
    );
  });

  test("is npx when npx began, and the file when that was run", () => {
    expect(commandLine(here, undefined, { ...installed, env: { npm_command: "exec" } })).toMatch(/^npx pi-herd demo /);
    const local = { argv: ["node", resolve("node_modules/.bin/herd")], env: { npm_command: "exec" } };
    expect(commandLine(here, undefined, local)).toMatch(/^npx herd demo /);
    expect(commandLine(here, undefined, { ...npmStart, env: {} })).toBe(
      "node adapters/cli/herd.js demo . --directory .herd",
    );
  });

  test("quotes what a shell would take apart", () => {
    const asked = { folder: "it's $HOME", directory: "a b" };
    expect(commandLine(asked, '"my folder"', installed)).toBe(
      String.raw`herd demo 'it'\''s $HOME' --directory "a b" --answer '"my folder"'`,
    );
    expect(commandLine({ ...here, folder: "-x" }, undefined, installed)).toBe("herd demo ./-x --directory .herd");
    expect(commandLine(here, '"my folder"', { ...installed, platform: "win32" })).toBe(
      String.raw`herd demo . --directory .herd --answer "\"my folder\""`,
    );
  });
});
