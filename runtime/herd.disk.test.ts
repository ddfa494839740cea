import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import type { AgentDefinition } from "./functions/agent.ts";
import { createHerd, type Assignment, type Herd } from "./index.ts";

/** A folder that can be a mount point; mounting needs root on Linux, and in a container the right to mount. */
const mountPoint = mkdtempSync(join(tmpdir(), "herd-mount-"));
const directory = join(mountPoint, "herd");
const filler = join(mountPoint, "filler");
const mayMount = process.platform === "linux" && process.getuid?.() === 0 && mount("size=1m") && unmount();
const herds: Herd[] = [];

// With every test skipped, no hook runs.
if (!mayMount) rmSync(mountPoint, { recursive: true });
afterAll(() => rmSync(mountPoint, { recursive: true, force: true }));

const stops: string[] = [];
const agents = {
  asks: {
    description: "asks before it ends",
    run: async (task, worker) => `${task.slice(0, 8)}: ${await worker.askOwner({ question: "May I?" })}`,
  },
  waits: {
    description: "waits until it is stopped",
    run: (_task, worker) =>
      new Promise<string>(() => worker.signal.addEventListener("abort", () => stops.push(worker.signal.reason.code))),
  },
} satisfies Record<string, AgentDefinition>;

describe.skipIf(!mayMount)("a herd on a disk of its own (needs root on Linux, to mount a tmpfs)", () => {
  afterEach(async () => {
    stops.length = 0;
    await rm(filler, { force: true });
    // A fenced herd may refuse even this.
    await Promise.allSettled(herds.splice(0).map((herd) => herd.close({ graceMs: 0 })));
    unmount();
  });

  test("that is full while it works goes on when there is space again within the attempts", async () => {
    mount("size=8m");
    const herd = await open({ attempts: 1_000, pauseMs: 10 });
    const owner = herd.owner("me");
    const parked = await owner.assign({ id: "before", agent: "asks", task: text(1), label: "before" });
    await parked.next();
    await fill();
    const accepted = owner.assign({ id: "during", agent: "asks", task: text(64), label: "during" });
    const replied = owner.reply({ label: "before", message: "yes" });
    await storeIsClosed();
    expect(herd.status).toBe("open");
    await rm(filler);
    expect((await accepted).label).toBe("during");
    await replied;
    await (await accepted).next();
    await herd.close();

    const again = await open();
    expect((await (await again.assignment(parked.requestId)).result()).text).toMatch(/: yes$/);
    const during = await again.assignment((await accepted).requestId);
    expect(await during.next()).toMatchObject({ type: "question", question: { label: "during" } });
    await again.owner("me").reply({ label: "during", message: "also" });
    expect((await during.result()).text).toMatch(/: also$/);
  });

  test("that stays full is fenced: it refuses everything and says what to do; nothing acknowledged is lost", async () => {
    mount("size=8m");
    const herd = await open({ attempts: 2, pauseMs: 10 });
    const owner = herd.owner("me");
    const acknowledged: Assignment[] = [];
    for (const label of ["a", "b", "c"]) {
      const run = await owner.assign({ id: label, agent: "asks", task: text(1), label });
      await run.next();
      acknowledged.push(run);
    }
    await owner.reply({ label: "a", message: "yes", id: "reply to a" });
    expect((await acknowledged[0]?.result())?.status).toBe("completed");
    await owner.assign({ agent: "waits", task: "x" });
    await fill();

    const message =
      /the outcome of commands under way is unknown\. Next: make the disk writable again and reopen the herd\.$/;
    const lost = { id: "lost", agent: "asks", task: text(64) } as const;
    await expect(owner.assign(lost)).rejects.toThrow(message);
    expect(herd.status).toBe("fenced");
    expect(stops).toEqual(["fenced"]);
    const refused = { category: "internal_failure", reason: "fenced", message: expect.stringMatching(message) };
    for (const call of [
      () => owner.assign({ agent: "asks", task: "x" }),
      () => owner.reply({ label: "b", message: "yes" }),
      () => owner.close({ label: "b" }),
      () => owner.list(),
      () => herd.assignment(acknowledged[1]?.requestId ?? ""),
      () => acknowledged[1]?.result(),
    ]) {
      await expect(call()).rejects.toMatchObject(refused);
    }
    expect(await owner.subagent({ action: "list" })).toMatchObject({ ok: false, error: { reason: "fenced" } });

    await rm(filler);
    await herd.close({ graceMs: 0 });
    const again = await open();
    const { workers } = await again.owner("me").list();
    expect(workers.map(({ label, state }) => `${label} ${state}`).toSorted()).toEqual([
      "b blocked",
      "c blocked",
      "waits working",
    ]);
    const [a, b] = await Promise.all(acknowledged.map(({ requestId }) => again.assignment(requestId)));
    expect((await a?.result())?.text).toMatch(/: yes$/);
    await again.owner("me").reply({ label: "b", message: "go on" });
    expect((await b?.result())?.text).toMatch(/: go on$/);
    // Its outcome was unknown: under its id it is there once now, done before or only now.
    const found = await again.owner("me").assign(lost);
    expect(found.label).toBe("asks");
    await found.next();
    expect((await again.owner("me").list()).workers.map(({ label }) => label).toSorted()).toEqual([
      "asks",
      "c",
      "waits",
    ]);
  });

  test("that is read-only is not opened, and the refusal names the folder and the reason", async () => {
    mount("size=1m,ro");
    await expect(open()).rejects.toThrow(new RegExp(`${directory}.*read-only`));
  });

  test("that has become read-only is not opened, and opens unharmed when it can be written again", async () => {
    mount("size=8m");
    const herd = await open();
    const run = await herd.owner("me").assign({ agent: "asks", task: "x" });
    await run.next();
    await herd.close();
    mount("remount,ro");
    await expect(open()).rejects.toThrow(new RegExp(`${directory}.*read-only`));
    mount("remount,rw");
    const again = await open();
    await again.owner("me").reply({ label: "asks", message: "yes" });
    expect((await (await again.assignment(run.requestId)).result()).text).toBe("x: yes");
  });
});

async function open(reopen: { attempts: number; pauseMs: number } = { attempts: 8, pauseMs: 250 }) {
  const herd = await createHerd({ directory, agents, reopen, tickMs: 0, waitForLockMs: 0 });
  herds.push(herd as Herd);
  return herd;
}

function mount(options: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", mountPoint]).status === 0;
}

function unmount(): boolean {
  return spawnSync("umount", [mountPoint]).status === 0;
}

/** Leaves no block of the disk free. */
async function fill(): Promise<void> {
  for (const size of [1024 * 1024, 64 * 1024, 4096]) {
    const block = Buffer.alloc(size);
    let full = false;
    while (!full) {
      full = await writeFile(filler, block, { flag: "a" }).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === "ENOSPC",
      );
    }
  }
}

/** Resolves when the store was closed to be opened again, which a full disk does not let it. */
async function storeIsClosed(): Promise<void> {
  while (existsSync(join(directory, "holder.json"))) await pause(5);
}

/** So many KB of text that does not get smaller by compression. */
function text(kilobytes: number): string {
  return randomBytes(kilobytes * 512).toString("hex");
}
