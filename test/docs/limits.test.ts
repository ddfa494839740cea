import { JSON_LIMIT } from "../../runtime/asks/json.ts";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createTestHerd } from "pi-herd/testing";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { MAX_MESSAGE_BYTES, MAX_UNREAD_BYTES } from "../../runtime/control/wire.ts";
import { TEXT_LIMIT } from "../../runtime/definitions/folder.ts";
import { RESULT_LIMIT } from "../../runtime/deliveries/outcome.ts";
import { MAX_BODY_BYTES } from "../../runtime/doors/body.ts";
import { HerdError, type AgentDefinition } from "../../runtime/index.ts";
import { resolveOptions } from "../../runtime/options.ts";
import { page, sectionOf } from "./page.ts";

const limits = await page("limits.md");
const [KiB, MiB] = [1024, 1024 * 1024];
const { format } = new Intl.NumberFormat("en");

/** The cells of every row of a section's table, without its heading. */
function rowsOf(heading: string): string[][] {
  const lines = sectionOf(limits, heading)
    .split("\n")
    .filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim()),
  );
}

/** A constant that its file keeps to itself: a number, or a product of numbers. */
function constant(path: string, name: string): number {
  const source = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  const [, value = ""] = new RegExp(String.raw`\b${name}(?: =|:) ([\d_ *]+)[;,]`).exec(source) ?? [];
  if (value === "") throw new Error(`${path} has no constant ${name}`);
  return value.split("*").reduce((product, factor) => product * Number(factor.replaceAll("_", "")), 1);
}

/** How far the memory of a WebAssembly module may grow, in bytes: its memory section says that in pages. */
function maxMemory(path: string): number {
  const bytes = readFileSync(new URL(import.meta.resolve(path)));
  let at = 8;
  const number = () => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const [section, size] = [number(), number()];
    if (section === 5) {
      const [count, flags, , pages = 0] = [number(), number(), number(), number()];
      if (count === 1 && flags === 1) return pages * 64 * KiB;
    }
    at += size;
  }
  throw new Error(`${path} has no memory with a limit`);
}

const inBytes = (bytes: number) => (bytes < MiB ? `${bytes / KiB} KiB` : `${bytes / MiB} MiB`);

/** What the page says of each fixed limit, in its order; those without a value are tried out below. */
const FIXED: [string, string | undefined][] = [
  ["levels: an owner's worker, and the workers of that", undefined],
  ["open questions of one assignment to its owner", undefined],
  ["receivers of one owner", undefined],
  ["`onQuestion` and `onResult` of one owner at once", format(constant("runtime/deliveries/desk.ts", "AT_ONCE"))],
  ["owner id", undefined],
  ["`id` of a task, a reply or a visit", undefined],
  ["name of a step", undefined],
  [`label: \`${LABEL_PATTERN.source}\``, undefined],
  ["`metadata`, as JSON", inBytes(constant("runtime/subagent/acceptance.ts", "METADATA_LIMIT"))],
  ["text of a parked ask", `${format(constant("runtime/asks/formats.ts", "QUESTION_LIMIT"))} characters`],
  ["`payload`, `options` and `schema` of one ask, as JSON", inBytes(JSON_LIMIT)],
  ["the answer to a parked ask, as JSON", inBytes(JSON_LIMIT)],
  ["name of a door: `^[a-z0-9][a-z0-9_-]{0,63}$`", undefined],
  ["a jq program of a door", inBytes(constant("runtime/doors/jq.ts", "MAX_PROGRAM_BYTES"))],
  ["memory of one evaluation of it", inBytes(maxMemory("jq-wasm/jq.wasm"))],
  ["the body of a webhook's delivery", inBytes(MAX_BODY_BYTES)],
  ["what a step gives, as JSON", inBytes(constant("runtime/functions/step.ts", "STEP_LIMIT"))],
  ["a result", inBytes(RESULT_LIMIT)],
  ["history that a function begins with", inBytes(constant("runtime/subagent/assign.ts", "HISTORY_LIMIT"))],
  [
    "a session file that is to be continued or forked",
    inBytes(constant("runtime/sessions/reference.ts", "FILE_LIMIT")),
  ],
  ["a definition file, and a file that its role prompt names", inBytes(TEXT_LIMIT)],
  [
    "what a model sees of one result or list",
    `${format(constant("runtime/text/bounds.ts", "VISIBLE_LINES"))} lines, ` +
      inBytes(constant("runtime/text/bounds.ts", "VISIBLE_BYTES")),
  ],
  ["bytes of commands that wait for the disk", inBytes(constant("runtime/herd-engine.ts", "maxInFlightBytes"))],
  ["a message on the control socket", inBytes(MAX_MESSAGE_BYTES)],
  ["what waits for a client that reads nothing for 30 seconds", inBytes(MAX_UNREAD_BYTES)],
  ["clients connected at once", format(constant("runtime/control/server.ts", "MAX_CONNECTIONS"))],
  ["batches whose loss is noticed at the opening", `the last ${format(constant("runtime/store/sequence.ts", "RING"))}`],
];

/** Numbers among the options that bound nothing: times, and how often something is tried. */
const NO_LIMITS = ["tickMs", "waitForLockMs", "retention", "reopen", "callerAskTtl"];

describe("the page on limits", () => {
  test("has every option that is a limit, with its default", () => {
    const options = Object.entries(resolveOptions({}))
      .filter(([name, value]) => typeof value !== "boolean" && typeof value !== "string" && !NO_LIMITS.includes(name))
      .filter(([, value]) => typeof value === "number")
      .map(([name, value]) => [`\`${name}\``, format(value as number)]);
    expect(options.length).toBeGreaterThan(5);
    const unlimited = ["`concurrency`", "`agents.x.concurrency`"];
    expect(resolveOptions({}).concurrency).toBeUndefined();
    const shown = rowsOf("Limits that you set").map(([name, value]) => [name, value]);
    expect(shown.toSorted()).toEqual([...options, ...unlimited.map((name) => [name, "unlimited"])].toSorted());
  });

  test("has the fixed ones as they are in the code", () => {
    const shown = rowsOf("Limits that are fixed").map(([what, limit]) => [what, limit]);
    const untold = new Map(shown.map(([what = "", limit]) => [what, limit]));
    expect(shown).toEqual(FIXED.map(([what, limit]) => [what, limit ?? untold.get(what)]));
  });
});

const letters = (count: number) => "x".repeat(count);
const told = (heading: string) => {
  const row = rowsOf("Limits that are fixed").find(([what = ""]) => what.startsWith(heading)) ?? [];
  const [, number = "", unit = ""] = /^(\d+)(?: (\w+))?/.exec(row[1] ?? "") ?? [];
  const reasons = [...(row[2] ?? "").matchAll(/\[`(\w+)`\]/g)].map(([, reason]) => reason);
  const factor = unit === "KiB" ? KiB : unit === "MiB" ? MiB : 1;
  return { limit: Number(number) * factor, reason: reasons[0] };
};

describe("a limit on the page", () => {
  const echo: AgentDefinition = { description: "echoes", run: async (task) => task };
  const grows: AgentDefinition = { description: "gives much", run: async (size) => letters(Number(size)) };
  const steps: AgentDefinition = {
    description: "steps",
    run: (task, worker) => {
      const { name = "a", size = 1 } = JSON.parse(task) as { name?: string; size?: number };
      return worker.step(name, () => letters(size)).then(() => "fits", codeOf);
    },
  };
  const agents = { echo, grows, steps };
  const codeOf = (error: unknown) => (error as HerdError).reason;

  type Attempt = (size: number) => Promise<string | undefined>;
  const assigned = async (request: { agent?: string; [field: string]: unknown }) => {
    const t = await createTestHerd({ agents });
    const accepted = { agent: "echo", task: "go", ...request };
    const refused = await t.owner.assign(accepted as never).then(() => undefined, codeOf);
    if (refused !== undefined) return refused;
    const { error, text } = await t.result();
    return error?.code ?? (request.agent === "steps" ? text : "fits");
  };

  test.each<[string, Attempt]>([
    [
      "owner id",
      async (size) => {
        const t = await createTestHerd({ agents });
        const owner = () => t.herd.owner(letters(size));
        return Promise.resolve()
          .then(owner)
          .then(() => "fits", codeOf);
      },
    ],
    ["`id`", (size) => assigned({ id: letters(size) })],
    [
      "name of a door",
      async (size) => {
        const t = await createTestHerd({ agents });
        const subject = { scope: "shop", keys: { order: "7" } };
        return t.herd.door({ name: letters(size), subject, target: "echo" }).then(() => "fits", codeOf);
      },
    ],
    [
      "a jq program",
      async (size) => {
        const t = await createTestHerd({ agents });
        const subject = { scope: "shop", keys: { order: "7" } };
        const startExpr = `null${" ".repeat(size - 4)}`;
        return t.herd.door({ subject, target: "echo", contract: { startExpr } }).then(() => "fits", codeOf);
      },
    ],
    ["name of a step", (size) => assigned({ agent: "steps", task: JSON.stringify({ name: letters(size) }) })],
    ["label", (size) => assigned({ label: letters(size) })],
    // The quotes of a JSON string count.
    ["`metadata`", (size) => assigned({ metadata: letters(size - 2) })],
    ["what a step gives", (size) => assigned({ agent: "steps", task: JSON.stringify({ size: size - 2 }) })],
    ["a result", (size) => assigned({ agent: "grows", task: String(size) })],
  ])("takes %s of that size, and refuses one that is larger by one with the reason", async (what, attempt) => {
    const { limit, reason } = told(what);
    expect(limit).toBeGreaterThan(1);
    expect(await attempt(limit)).toBe("fits");
    expect(await attempt(limit + 1)).toBe(reason);
  });

  test("can be set for a message, in whole and for each file in it, and for one owner otherwise", async () => {
    const rows = new Map(rowsOf("Limits that you set").map(([name = "", ...row]) => [name, row]));
    const [, , beyond = ""] = rows.get("`payloadBytes`") ?? [];
    const t = await createTestHerd({ agents, payloadBytes: 2_048 });
    const small = t.herd.owner("small", { limits: { payloadBytes: 1_024 } });
    for (const [owner, limit] of [
      [t.owner, 2_048],
      [small, 1_024],
    ] as const) {
      expect(await owner.assign({ agent: "echo", task: letters(limit) }).then(() => "fits", codeOf)).toBe("fits");
      expect(beyond).toContain(
        await owner.assign({ agent: "echo", task: letters(limit + 1) }).then(() => "fits", codeOf),
      );
    }
  });

  test("is two levels of workers: a worker of a worker starts none", async () => {
    const below: AgentDefinition = {
      description: "tries to delegate",
      subagents: ["echo"],
      run: (_task, worker) => worker.assign({ agent: "echo", task: "go" }).then(() => "started", codeOf),
    };
    const above: AgentDefinition = {
      description: "delegates",
      subagents: ["below"],
      run: async (_task, worker) => (await (await worker.assign({ agent: "below", task: "go" })).result()).text,
    };
    const t = await createTestHerd({ agents: { echo, below, above } });
    await t.owner.assign({ agent: "above", task: "go" });
    const { limit, reason } = told("levels");
    expect(limit).toBe(2);
    expect((await t.result()).text).toBe(reason);
  });

  test("is one receiver of an owner", async () => {
    const t = await createTestHerd({ agents });
    const { limit, reason } = told("receivers");
    expect(limit).toBe(1);
    expect(() => t.herd.owner("tester", { onResult: () => undefined })).toThrow(expect.objectContaining({ reason }));
  });

  test("is one open question of an assignment", async () => {
    const asks: AgentDefinition = {
      description: "asks twice at once",
      run: async (_task, worker) => {
        const first = worker.askOwner({ question: "First?" });
        await new Promise<void>((resolve) => t.herd.on("question", () => resolve()));
        const second = await worker.askOwner({ question: "Second?", wait: false }).catch(codeOf);
        return `${await first} ${String(second)}`;
      },
    };
    const t = await createTestHerd({ agents: { asks } });
    await t.owner.assign({ agent: "asks", task: "go" });
    await (await t.question()).reply("yes");
    const { limit, reason } = told("open questions");
    expect(limit).toBe(1);
    expect((await t.result()).text).toBe(`yes ${reason}`);
  });
});
