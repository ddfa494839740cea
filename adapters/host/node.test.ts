import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findNode } from "./node.ts";

const bun = { ...process.versions, bun: "1.3.0" };

/** A folder for the PATH, with a program `node` that prints this. */
function pathWith(version?: string): { PATH: string } {
  const folder = mkdtempSync(join(tmpdir(), "herd-node-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  if (version !== undefined) {
    writeFileSync(join(folder, "node"), `#!/bin/sh\necho ${version}\n`);
    chmodSync(join(folder, "node"), 0o755);
  }
  return { PATH: folder };
}

test("Node is what runs this program, whatever is on the PATH", async () => {
  expect(await findNode(pathWith("v12.0.0"))).toBe(process.execPath);
});

test.skipIf(process.platform === "win32")(
  "in a Pi that is a binary of its own, Node is the one on the PATH",
  async () => {
    const env = pathWith("v22.19.0");
    expect(await findNode(env, bun)).toBe(join(env.PATH, "node"));
  },
);

test.skipIf(process.platform === "win32").each([
  ["v22.18.9", /node is Node\.js v22\.18\.9, and .* need Node\.js 22\.19 or newer\. Next: install a newer Node\.js/],
  [
    undefined,
    /There is no Node\.js on the PATH, and .* Next: install a newer Node\.js, and put it first in the PATH\.$/,
  ],
])("one that is too old or missing there (%s) is refused with what to do", async (version, says) => {
  await expect(findNode(pathWith(version), bun)).rejects.toMatchObject({
    reason: "node_too_old",
    message: expect.stringMatching(says),
  });
});
