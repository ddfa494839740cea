import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { storeContract } from "./contract.ts";
import { levelStore } from "./level.ts";
import { memoryStore } from "./memory.ts";
import { StoreLockedError, type Operation, type Row, type Store, type StoreHolder } from "./store.ts";

const SYNC = { sync: true };
const ALL = { gte: "", lt: "\u{10FFFF}" };

storeContract("level", async () => {
  const directory = mkdtempSync(join(tmpdir(), "herd-level-"));
  const stores = [levelStore(directory)];
  const again = async (): Promise<Store> => {
    const store = levelStore(directory);
    stores.push(store);
    return store;
  };
  const dispose = async (): Promise<void> => {
    for (const store of stores) await store.close();
    await rm(directory, { recursive: true });
  };
  return { store: stores[0] as Store, again, dispose };
});

let folder: string;
const stores: Store[] = [];
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "herd-level-"));
});

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const child of children.splice(0)) await killed(child);
  await rm(folder, { recursive: true });
});

describe("the folder of a store", () => {
  test("is created with its parents, for its owner alone", async () => {
    const directory = join(folder, "deep", "er", ".herd");
    await opened(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect(await readdir(directory)).toEqual(["holder.json", "store"]);
  });

  test("is not touched before the store is opened", async () => {
    levelStore(join(folder, "later"));
    expect(await readdir(folder)).toEqual([]);
  });

  test("is told by the store as an absolute path", () => {
    expect(levelStore(relative(process.cwd(), folder)).directory).toBe(folder);
  });

  test("of a store that may not be created must have one, and stays empty", async () => {
    const missing = join(folder, "missing");
    for (const directory of [folder, missing]) {
      const failure = await failureOf(levelStore(directory, { create: false }));
      expect(failure).toMatchObject({ code: "ENOENT", message: `there is no store at ${directory} yet` });
    }
    expect(await readdir(folder)).toEqual([]);
    await (await opened(folder)).close();
    const reading = track(levelStore(folder, { create: false }));
    await reading.open();
    expect(await reading.range(ALL)).toEqual([]);
  });

  test("below a regular file is refused with the folder, the errno and the cause", async () => {
    await writeFile(join(folder, "file"), "");
    const directory = join(folder, "file", "herd");
    for (const create of [true, false]) {
      const failure = await failureOf(levelStore(directory, { create }));
      expect(failure).toMatchObject({ code: "ENOTDIR", cause: expect.any(Error) });
      expect(failure.message).toContain(`cannot open the store at ${directory}: ENOTDIR`);
    }
  });

  test("with a regular file where its rows belong is refused with ENOTDIR", async () => {
    await writeFile(join(folder, "store"), "");
    expect(await failureOf(levelStore(folder))).toMatchObject({ code: "ENOTDIR" });
  });

  test("with damaged files is refused with LevelDB's code, and can be opened once they are mended", async () => {
    const store = await opened(folder);
    await store.close();
    const current = join(folder, "store", "CURRENT");
    const healthy = await readFile(current);
    await truncate(current, 3);
    const failure = await failureOf(store);
    expect(failure).toMatchObject({ code: "LEVEL_CORRUPTION", cause: expect.any(Error) });
    expect(failure.message).toContain(folder);
    await writeFile(current, healthy);
    await store.reopen();
    expect(await store.range(ALL)).toEqual([]);
  });
});

/** What may lie in a holder file that does not name who has the lock. */
const LEFT_BEHIND: [string, () => string | undefined][] = [
  ["missing", () => undefined],
  ["empty", () => ""],
  ["cut short", () => '{"pid":12'],
  ["of another shape", () => '{"pid":"1","command":1}'],
  ["naming a process that ended", () => JSON.stringify({ pid: endedPid(), command: "x", since: "x" })],
  ["naming this process, which does not hold it", () => JSON.stringify({ pid: process.pid, command: "x", since: "x" })],
];

describe("the holder file", () => {
  test("names this process while the store is open, for its owner alone, and is gone after closing", async () => {
    const store = await opened(folder);
    const holder = JSON.parse(await readFile(join(folder, "holder.json"), "utf8"));
    expect(holder).toEqual({ pid: process.pid, command: expect.any(String), since: expect.any(String) });
    expect(new Date(holder.since).toISOString()).toBe(holder.since);
    expect((await stat(join(folder, "holder.json"))).mode & 0o777).toBe(0o600);
    await store.reopen();
    expect(await readdir(folder)).toContain("holder.json");
    await store.close();
    expect(await readdir(folder)).toEqual(["store"]);
  });

  test("shows program, script and sub-command, and nothing that follows", async () => {
    const script = join(folder, "cli", "herd.mjs");
    await mkdir(join(folder, "cli"));
    await writeFile(script, HOLD);
    await ready(run([script, "serve", "--token=very-secret", "secret-too"]));
    expect((await refusal(folder)).holder?.command).toMatch(/^node[^ ]* cli\/herd\.mjs serve$/);
  });

  test.for(LEFT_BEHIND)("claims nobody when it is %s", async ([, content]) => {
    await ready(holdingChild());
    const text = content();
    await rm(join(folder, "holder.json"));
    if (text !== undefined) await writeFile(join(folder, "holder.json"), text);
    expect((await refusal(folder)).holder).toBeUndefined();
  });

  test("stops nothing when it cannot be written", async () => {
    await mkdir(join(folder, "holder.json"));
    const store = await opened(folder);
    await store.batch([put("a", "1")], SYNC);
    expect(store.get("a")).toBe("1");
  });
});

describe("the lock", () => {
  test("names this process when another store of it has the folder, however the path is written", async () => {
    await opened(folder);
    const link = `${folder}-link`;
    await symlink(folder, link);
    try {
      for (const path of [folder, link, `${folder}/../${relative(tmpdir(), folder)}/`]) {
        expect((await refusal(path)).holder?.pid).toBe(process.pid);
      }
    } finally {
      await rm(link);
    }
  });

  test("still keeps other processes out after another store of this process was refused", async () => {
    await opened(folder);
    await refusal(folder);
    const child = holdingChild();
    expect(await firstLine(child)).toBe(`refused: in use by ${process.pid}`);
  });

  test("of a child process is told with its pid; after SIGKILL everything it acknowledged is there", async () => {
    const child = writingChild();
    let acknowledged = 0;
    let holder: StoreHolder | undefined;
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      acknowledged = Number(line);
      if (acknowledged === 1) holder = (await refusal(folder)).holder;
      if (acknowledged === 300) child.kill("SIGKILL"); // it goes on writing; what it says meanwhile counts as well
    }
    await killed(child);
    expect(holder?.pid).toBe(child.pid);
    expect(child.signalCode).toBe("SIGKILL");
    expect(JSON.parse(await readFile(join(folder, "holder.json"), "utf8")).pid).toBe(child.pid);

    const store = await opened(folder);
    const found = await store.range(ALL);
    expect(found.slice(0, acknowledged)).toEqual(written(acknowledged));
    expect(found.length - acknowledged).toBeOneOf([0, 1]);
    expect(JSON.parse(await readFile(join(folder, "holder.json"), "utf8")).pid).toBe(process.pid);
  });

  test("taken by another process between close and open leaves the store closed, to be reopened later", async () => {
    const store = await opened(folder);
    await store.batch([put("a", "1")], SYNC);
    await store.close();
    const child = holdingChild();
    await ready(child);
    await expect(store.reopen()).rejects.toBeInstanceOf(StoreLockedError);
    expect(() => store.get("a")).toThrow(/not open/);
    await killed(child);
    await store.reopen();
    expect(store.get("a")).toBe("1");
  });
});

test("level and memory give the same answers to the same batches and questions", async () => {
  const level = await opened(folder);
  const memory = track(memoryStore());
  await memory.open();
  const key = fc.string({ unit: "binary", maxLength: 3 });
  const operation: fc.Arbitrary<Operation> = fc.oneof(
    fc.record({ type: fc.constant("put" as const), key, value: fc.string({ unit: "binary" }) }),
    fc.record({ type: fc.constant("del" as const), key }),
  );
  const bounds = fc.record({ gte: key, lt: key, limit: fc.nat(20), reverse: fc.boolean() });
  // Rows of earlier runs stay: what counts is that both tell the same.
  await fc.assert(
    fc.asyncProperty(fc.array(operation), bounds, async (operations, question) => {
      for (const store of [level, memory]) await store.batch(operations, { sync: false });
      expect(await level.range(question)).toEqual(await memory.range(question));
      for (const { key } of operations) expect(level.get(key)).toBe(memory.get(key));
    }),
  );
  expect(await level.range(ALL)).toEqual(await memory.range(ALL));
});

/** Opens the store in the test's folder, says so, and waits to be killed. */
const HOLD = `
  import { levelStore } from ${JSON.stringify(new URL("./level.ts", import.meta.url).href)};
  const store = levelStore(process.env.HERD_TEST_FOLDER);
  try {
    await store.open();
    console.log("open");
    process.stdin.resume();
  } catch (error) {
    console.log("refused: in use by " + error.holder?.pid);
  }
`;

/** Opens the store and writes one row after another with fsync; says the number of rows after each. */
const WRITE = `
  import { levelStore } from ${JSON.stringify(new URL("./level.ts", import.meta.url).href)};
  const store = levelStore(process.env.HERD_TEST_FOLDER);
  await store.open();
  for (let n = 0; ; n++) {
    await store.batch([{ type: "put", key: String(n).padStart(6, "0"), value: "row " + n }], { sync: true });
    console.log(n + 1);
  }
`;

function run(args: string[]): ChildProcess {
  const env = { ...process.env, HERD_TEST_FOLDER: folder };
  const child = spawn(process.execPath, args, { env, stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  return child;
}

function holdingChild(): ChildProcess {
  return run(["--input-type=module", "-e", HOLD]);
}

function writingChild(): ChildProcess {
  return run(["--input-type=module", "-e", WRITE]);
}

async function firstLine(child: ChildProcess): Promise<string> {
  const [line] = await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line");
  return line;
}

async function ready(child: ChildProcess): Promise<void> {
  expect(await firstLine(child)).toBe("open");
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

function endedPid(): number {
  return spawnSync(process.execPath, ["--version"]).pid;
}

function track(store: Store): Store {
  stores.push(store);
  return store;
}

async function opened(directory: string): Promise<Store> {
  const store = track(levelStore(directory));
  await store.open();
  return store;
}

async function failureOf(store: Store): Promise<Error> {
  track(store);
  const failure = await store.open().catch((error: Error) => error);
  if (!failure) throw new Error("the store was opened");
  return failure;
}

async function refusal(directory: string): Promise<StoreLockedError> {
  const error = await failureOf(levelStore(directory));
  expect(error).toBeInstanceOf(StoreLockedError);
  return error as StoreLockedError;
}

function written(count: number): Row[] {
  return Array.from({ length: count }, (_, n): Row => [String(n).padStart(6, "0"), `row ${n}`]);
}

function put(key: string, value: string): Operation {
  return { type: "put", key, value };
}
