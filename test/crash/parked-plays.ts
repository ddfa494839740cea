import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FAILPOINTS, type Failpoint } from "../../runtime/testing/index.ts";
import { ParkingBench, type Kills, type Left } from "./parking-bench.ts";
import type { Seen } from "./parking.ts";

/** What a play has to come to, wherever it is killed. */
export interface Expected {
  /** What may stand after the kill: label and status of what is parked, and how many workers there are. */
  left: string[];
  /** The points that it passes, besides those of every step and those of every function that goes on. */
  passes: Failpoint[];
  /** What whoever does it is told, whenever that is, and then those who come after. */
  told: unknown;
  rivals: string[];
  /** What stands in the end; nothing unless set. */
  after?: string;
  /** The event that tells it, and what stands only before it. */
  event?: { line: string; before: string };
}

const NOTHING = "nothing, workers: 0";
const asking = (workers: number) => `asks asking, workers: ${workers}`;
const running = (workers: number) => `asks running, workers: ${workers}`;
const FINISHED = "asks finished, workers: 1";
const TAKEN_LATER = (result: string) => ["entry_gone", `result ${result}`, "entry_gone"];
const GOES_ON: Failpoint[] = ["order.before", "order.after"];
const EXPIRED = '{"pi-herd:expired":true}';

/** Everything that is done with what is parked, by the name of its play. */
export const plays: Readonly<Record<string, Expected>> = {
  start: {
    left: [NOTHING, "nothing, workers: 1", asking(1)],
    passes: [...GOES_ON, "door.before-visit"],
    told: "asks",
    rivals: [],
    after: asking(1),
  },
  resume: {
    left: [asking(1), running(1), FINISHED, NOTHING],
    passes: [...GOES_ON, "door.before-visit"],
    told: "result yes",
    rivals: ["entry_gone", "entry_gone"],
  },
  nested: {
    left: [asking(2), running(2), "nothing, workers: 2", "nothing, workers: 1", "parent finished, workers: 1", NOTHING],
    passes: [...GOES_ON, "door.before-visit"],
    told: "result parent: yes",
    rivals: ["entry_gone", "entry_gone"],
  },
  group: {
    left: [
      "asks asking, asks asking, asks asking, workers: 1",
      "asks asking, asks running, asks running, workers: 1",
      "asks running, asks running, asks running, workers: 1",
      FINISHED,
    ],
    passes: [...GOES_ON, "door.before-visit"],
    told: "one two Ada",
    rivals: TAKEN_LATER("one two Ada"),
  },
  unreceived: {
    left: [asking(1), running(1), FINISHED],
    passes: [...GOES_ON, "door.before-visit"],
    told: "none",
    rivals: TAKEN_LATER("yes"),
  },
  take: {
    left: ["plain finished, workers: 1", NOTHING],
    passes: ["door.before-visit"],
    told: "result done before",
    rivals: ["entry_gone"],
  },
  cancel: {
    left: [asking(2), NOTHING],
    passes: [...GOES_ON, "close.child-gone", "door.before-visit"],
    told: "none 1 cancelled",
    rivals: ["entry_gone", "entry_gone"],
  },
  "cancel-received": {
    left: [asking(2), "parent failed, workers: 0", NOTHING],
    passes: [
      ...GOES_ON,
      "delivery.before",
      "delivery.after",
      "ack.before-flush",
      "close.child-gone",
      "door.before-visit",
    ],
    told: "none 1 cancelled",
    rivals: ["entry_gone", "entry_gone"],
  },
  "expiry-kill": {
    left: [asking(2), "parent failed, workers: 0"],
    passes: [...GOES_ON, "close.child-gone"],
    told: ["parent expired"],
    rivals: ["entry_gone", "run_failed expired", "entry_gone"],
    event: { line: "expired asks", before: asking(2) },
  },
  "expiry-resume": {
    left: [asking(1), running(1), FINISHED],
    passes: GOES_ON,
    told: EXPIRED,
    rivals: TAKEN_LATER(EXPIRED),
    event: { line: "expired asks", before: asking(1) },
  },
  drop: {
    left: ["plain finished, workers: 1", NOTHING],
    passes: [],
    told: [],
    rivals: ["entry_gone"],
    event: { line: "dropped plain untaken", before: "plain finished, workers: 1" },
  },
};

/**
 * Plays it without a kill, then kills it, looks at it as it was left, and has it done again.
 * @returns how often it was killed, and what was wrong.
 */
export async function playOut(play: string, kills: Kills): Promise<{ killed: number; faults: string[] }> {
  const expected = plays[play] as Expected;
  const bench = new ParkingBench(await mkdtemp(join(tmpdir(), "pi-herd-parked-")), play);
  try {
    const { told, passes } = await bench.begin();
    const faults: string[] = [];
    const check = checker(faults);
    check("told", told, expected.told);
    check(
      "it passes",
      FAILPOINTS.filter((point) => passes[point] !== undefined),
      FAILPOINTS.filter((point) => point.startsWith("step.") || expected.passes.includes(point)),
    );
    const left = await bench.kill(passes, kills);
    faults.push(...left.flatMap((each) => faultsOf(each, expected)));
    const first = expected.left[0] ?? NOTHING;
    if (!left.some(({ looked }) => shown(looked.before) === first)) faults.push(`never was left ${first}`);
    return { killed: left.length, faults };
  } finally {
    await rm(bench.directory, { recursive: true, force: true });
  }
}

function faultsOf({ at, looked, logBefore, log }: Left, expected: Expected): string[] {
  const { before, after, told, rivals } = looked;
  const faults: string[] = [...before.problems, ...after.problems];
  const check = checker(faults);
  if (!expected.left.includes(shown(before))) faults.push(`left ${shown(before)}`);
  check("told", told, expected.told);
  check("those who came later were told", rivals, expected.rivals);
  check("in the end there is", shown(after), expected.after ?? NOTHING);
  for (const [index, line] of log.entries()) {
    const [what, step = ""] = line.split(" ");
    if (what === "effect" && log.slice(0, index).includes(`journalled ${step}`)) faults.push(`${step} was done again`);
  }
  // Its receiver is told again when nobody can know that it was.
  check("its receiver was told once more", log.filter((line) => line.startsWith("told ")).slice(2), []);
  if (expected.event) {
    const { line, before: undone } = expected.event;
    const [was, is] = [logBefore, log].map((lines) => lines.filter((each) => each === line).length);
    // Who dies right after the commit has told nobody; never is it told twice, or before.
    check(`${line} was told`, is, shown(before) === undone ? 1 : was);
    if (shown(before) === undone) check(`${line} was told before it was so`, was, 0);
  }
  return faults.map((fault) => `killed at ${at}: ${fault}`);
}

function shown({ entries, workers }: Seen): string {
  return `${entries.join(", ") || "nothing"}, workers: ${workers}`;
}

function checker(faults: string[]) {
  return (what: string, is: unknown, mustBe: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(mustBe)) faults.push(`${what}: ${JSON.stringify(is)}`);
  };
}
