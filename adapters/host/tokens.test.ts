import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { bearerOf, keyFile, knownKey, readKey, tokenFor, type Bearer } from "./tokens.ts";

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "herd-tokens-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

describe("the key of a folder", () => {
  test("is made once, also by several at once, for this user alone", async () => {
    const directory = join(folder(), "herd");
    expect(await knownKey(directory)).toBeUndefined();
    const keys = await Promise.all(Array.from({ length: 8 }, () => readKey(directory)));
    expect(new Set(keys.map((key) => key.toString("hex"))).size).toBe(1);
    expect(await knownKey(directory)).toEqual(keys[0]);
    expect(readdirSync(directory)).toEqual(["key"]);
    expect(statSync(keyFile(directory)).mode & 0o777).toBe(0o600);
  });

  test.each(["", "c2hvcnQ", "\0".repeat(43)])("that is damaged (%j) is never used", async (text) => {
    const directory = folder();
    writeFileSync(keyFile(directory), text);
    for (const read of [readKey, knownKey]) {
      await expect(read(directory)).rejects.toMatchObject({
        reason: "bad_key",
        nextAction: expect.stringContaining(keyFile(directory)),
      });
    }
  });
});

describe("a token", () => {
  const key = Buffer.alloc(32, 1);
  const bearers: Bearer[] = [
    { role: "person" },
    { role: "observer" },
    { role: "root", session: 'a "session" – ü' },
    { role: "worker", runId: "run", launch: "launch" },
  ];

  test.each(bearers)("says who bears it: $role", (bearer) => {
    expect(bearerOf(key, tokenFor(key, bearer))).toEqual(bearer);
  });

  test("is none when anything of it is changed, or another key made it", () => {
    const token = tokenFor(key, { role: "observer" });
    const [version, , signature] = token.split(".");
    const person = Buffer.from(`["person"]`).toString("base64url");
    const others = [
      undefined,
      "",
      "..",
      `${token}x`,
      token.slice(0, -1),
      token.replace("herd1", "herd2"),
      `${version}.${person}.${signature}`,
      tokenFor(Buffer.alloc(32, 2), { role: "observer" }),
    ];
    for (const other of others) {
      expect(() => bearerOf(key, other)).toThrow(expect.objectContaining({ reason: "bad_token" }));
    }
  });
});
