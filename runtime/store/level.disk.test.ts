import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { levelStore } from "./level.ts";
import type { Operation, Row, Store } from "./store.ts";

const SYNC = { sync: true };
const ALL = { gte: "", lt: "\u{10FFFF}" };

/** A folder that can be a mount point; mounting needs root on Linux, and in a container the right to mount. */
const mountPoint = mkdtempSync(join(tmpdir(), "herd-mount-"));
const mayMount = process.platform === "linux" && process.getuid?.() === 0 && mount("size=1m") && unmount();
const stores: Store[] = [];

// With every test skipped, no hook runs.
if (!mayMount) rmSync(mountPoint, { recursive: true });
afterAll(() => rmSync(mountPoint, { recursive: true, force: true }));

describe.skipIf(!mayMount)("on a disk of its own (needs root on Linux, to mount a tmpfs)", () => {
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    unmount();
  });

  test("a folder that cannot be created because the disk is read-only is refused with EROFS", async () => {
    mount("size=1m,ro");
    const directory = join(mountPoint, "herd");
    await expect(levelStore(directory).open()).rejects.toMatchObject({
      code: "EROFS",
      message: expect.stringContaining(`cannot open the store at ${directory}: EROFS`),
      cause: expect.any(Error),
    });
  });

  test("a store on a disk that has become read-only is refused with EROFS, and opens when it is writable", async () => {
    mount("size=8m");
    const store = await opened(mountPoint);
    await store.batch([{ type: "put", key: "a", value: "1" }], SYNC);
    await store.close();
    mount("remount,ro");
    await expect(store.open()).rejects.toMatchObject({ code: "EROFS" });
    mount("remount,rw");
    await store.reopen();
    expect(store.get("a")).toBe("1");
  });

  test("a full disk fails a batch and loses nothing acknowledged, before and after there is space again", async () => {
    mount("size=8m");
    const directory = join(mountPoint, "herd");
    const filler = join(mountPoint, "filler");
    const store = await opened(directory);
    await store.batch([row(0)].map(asPut), SYNC);
    await fill(filler);
    await truncate(filler, (await stat(filler)).size - 256 * 1024);

    const failed = await firstFailing(store);
    expect(failed).toBeGreaterThan(100);
    await expect(store.batch([asPut(["zzz", "must not be taken"])], SYNC)).rejects.toThrow(/reopen/);
    expect((await store.range(ALL)).length).toBe(failed);

    // Still full: opening needs space too. The store stays closed, and may be tried again.
    await expect(store.reopen()).rejects.toThrow(/cannot open the store at .*No space left on device/);
    expect(() => store.get("a")).toThrow(/not open/);

    await rm(filler);
    await store.reopen();
    const acknowledged = Array.from({ length: failed }, (_, n) => row(n));
    const landed = store.get(row(failed)[0]) === undefined ? [] : [row(failed)];
    expect(await store.range(ALL)).toEqual([...acknowledged, ...landed]);

    await store.batch([row(failed), row(failed + 1)].map(asPut), SYNC);
    await store.close();
    const next = await opened(directory);
    expect(await next.range(ALL)).toEqual([...acknowledged, row(failed), row(failed + 1)]);
  });
});

async function opened(directory: string): Promise<Store> {
  const store = levelStore(directory);
  stores.push(store);
  await store.open();
  return store;
}

function mount(options: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", mountPoint]).status === 0;
}

function unmount(): boolean {
  return spawnSync("umount", [mountPoint]).status === 0;
}

/** Writes zeros until the disk is full. */
async function fill(file: string): Promise<void> {
  for (const size of [1024 * 1024, 64 * 1024, 4096]) {
    const block = Buffer.alloc(size);
    let full = false;
    while (!full) {
      full = await writeFile(file, block, { flag: "a" }).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === "ENOSPC",
      );
    }
  }
}

/** Writes row after row, from the second on, and returns the number of the one that failed. */
async function firstFailing(store: Store): Promise<number> {
  for (let n = 1; ; n++) {
    try {
      await store.batch([asPut(row(n))], SYNC);
    } catch {
      return n;
    }
  }
}

/** The n-th of many rows, of about 1 KB. */
function row(n: number): Row {
  return [`row ${String(n).padStart(6, "0")}`, `${n} `.repeat(200)];
}

function asPut([key, value]: Row): Operation {
  return { type: "put", key, value };
}
