import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openLog } from "./log.ts";
import { logFolder } from "./place.ts";

test("the log keeps three files of a megabyte, for this user alone, and the newest lines in the first", async () => {
  const directory = mkdtempSync(join(tmpdir(), "herd-log-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const { log, close } = openLog(directory);
  const line = "x".repeat(10_000);
  for (let number = 0; number < 500; number++) {
    log.info({ number }, line);
    // As much as a moment's lines are written before the next moment's come.
    if (number % 50 === 49) await new Promise<void>((done) => setImmediate(done));
  }
  await close();
  const folder = logFolder(directory);
  const names = readdirSync(folder).toSorted();
  expect(names).toEqual(["host.1.log", "host.2.log", "host.log"]);
  for (const name of names) {
    const { size, mode } = statSync(join(folder, name));
    expect(mode & 0o777).toBe(0o600);
    expect(size).toBeLessThan(1.1 * 1024 * 1024);
  }
  const numbers = (name: string) =>
    readFileSync(join(folder, name), "utf8")
      .trimEnd()
      .split("\n")
      .map((text) => (JSON.parse(text) as { number: number }).number);
  const kept = ["host.2.log", "host.1.log", "host.log"].flatMap(numbers);
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 500 - kept.length + index));
});
