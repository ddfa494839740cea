import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { herdCommand, herdProgram, quoted } from "./herd-command.ts";

/** A folder for the PATH. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "herd-path-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("a command for a person to paste", () => {
  test("is called by its name where a shell finds it", () => {
    const bin = folder();
    symlinkSync(herdProgram(), join(bin, "herd"));
    expect(herdCommand(["stop"], { PATH: bin })).toBe("herd stop");
  });

  test("is run from its file where a shell finds none, or another program of that name", () => {
    const bin = folder();
    const file = herdProgram().replace(`${homedir()}/`, "~/");
    expect(herdCommand(["stop"], { PATH: bin })).toBe(`node ${file} stop`);
    writeFileSync(join(bin, "herd"), "#!/bin/sh\n");
    chmodSync(join(bin, "herd"), 0o755);
    expect(herdCommand(["stop"], { PATH: bin })).toBe(`node ${file} stop`);
  });

  test("runs as it stands, whatever is in its words", () => {
    const strange = join(folder(), "it's $HOME");
    mkdirSync(strange);
    const command = herdCommand(["status", "--json", "--directory", strange], {});
    const env = { ...process.env, PATH: [dirname(process.execPath), process.env["PATH"]].join(delimiter) };
    const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", command], { env, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ directory: strange });
  });
});

test.each([
  ["plain-word", "plain-word"],
  ["two words", '"two words"'],
  ["a $PRICE", "'a $PRICE'"],
  ["it's", `"it's"`],
])("a word is quoted for shells when it needs it: %s", (word, shown) => {
  expect(quoted(word, { windows: false })).toBe(shown);
});
