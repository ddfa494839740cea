import type { Figure, FigureName, FigureOf } from "./figures.ts";
import { VALUE_BYTES, WRITES_PER_CYCLE, WRITES_PER_RESUME } from "./raw.ts";
import { CONCURRENCY } from "./trees.ts";
import { count, counted } from "./words.ts";

/** A quantity in words, and what its number counts. */
export interface Quantity {
  what: string;
  unit: string;
}

/** What the page says about the figures of one name. */
export interface Section<F extends Figure = Figure> {
  title: string;
  about: string;
  /** What tells a figure from others of its name, as the head of its column. */
  column: (figure: F) => string;
  /** Every quantity of the figure in the order of the rows; null for what the head of the column says. */
  quantities: { [Key in Exclude<keyof F, "name">]: Quantity | null };
}

const RATE = "cycles a second";

export const SECTIONS: { [Name in FigureName]: Section<FigureOf<Name>> } = {
  cycle: {
    title: "Cycles beside the raw limit",
    about: `A cycle is one assignment with one question: assigned, its question on disk, replied to, its result acknowledged. Each
caller is an owner of its own that begins the next cycle when one is over.

The raw limit is what LevelDB alone does on the same disk with the same options: ${WRITES_PER_CYCLE} writes of ${count(VALUE_BYTES)} bytes one
after another, each on disk (fsync) before the next. Product and raw limit take turns.`,
    column: ({ concurrency }) => counted(concurrency, "caller"),
    quantities: {
      concurrency: null,
      cyclesPerSecond: { what: "product, median of the rounds", unit: RATE },
      rawCyclesPerSecond: { what: "raw limit, median of the rounds", unit: RATE },
      ratio: { what: "ratio, median of the rounds", unit: "product ÷ raw limit" },
      ratios: { what: "ratio of each round", unit: "product ÷ raw limit" },
      cpuMsPerCycle: { what: "processor time of the process", unit: "milliseconds a cycle" },
    },
  },
  parked: {
    title: "Opening a store full of parked questions",
    about: `A process parks the questions and is killed. Then the store is opened, one owner lists its workers and answers one of
them; medians of several openings.`,
    column: () => "value",
    quantities: {
      parked: { what: "questions parked", unit: "questions" },
      owners: { what: "owners that they belong to", unit: "owners" },
      openMs: { what: "from `createHerd()` to the open herd", unit: "milliseconds" },
      listMs: { what: "one owner's first `list()`", unit: "milliseconds" },
      openAndListMs: { what: "both together", unit: "milliseconds" },
      firstAnswerMs: { what: "from the first reply to its result", unit: "milliseconds" },
    },
  },
  trees: {
    title: "More owners than fit into memory",
    about: `The same cycles, ${counted(CONCURRENCY, "caller")} at once, with many owners who take turns: only \`maxTrees\` of them have their workers
in memory at a time. Beside them, in turns, ${counted(CONCURRENCY, "owner")} who all stay in memory.`,
    column: () => "value",
    quantities: {
      owners: { what: "owners who take turns", unit: "owners" },
      maxTrees: { what: "`maxTrees`, owners in memory at a time", unit: "owners" },
      cyclesPerSecond: { what: "owners who take turns, median of the rounds", unit: RATE },
      warmCyclesPerSecond: { what: "owners who stay in memory, median of the rounds", unit: RATE },
      ratio: { what: "ratio, median of the rounds", unit: "taking turns ÷ staying" },
    },
  },
  heap: {
    title: "Memory of a waiting worker",
    about: `What one more worker that waits for its owner adds to the heap, its function parked out of memory.`,
    column: ({ workersPerTree }) => `${counted(workersPerTree, "worker")} an owner`,
    quantities: {
      workersPerTree: null,
      workers: { what: "workers waiting at the end", unit: "workers" },
      bytesPerWorker: { what: "heap for one more", unit: "bytes a worker" },
    },
  },
  resume: {
    title: "Answers to parked asks beside the raw limit",
    about: `Each visitor resumes a run that asks again as soon as it is answered: the answer claimed, the run gone on, its next ask
on disk, and told to the visitor. The raw limit is ${WRITES_PER_RESUME} writes of ${count(VALUE_BYTES)} bytes one after another, as above.`,
    column: ({ concurrency }) => counted(concurrency, "visitor"),
    quantities: {
      concurrency: null,
      resumesPerSecond: { what: "product, median of the rounds", unit: "answers a second" },
      rawPerSecond: { what: "raw limit, median of the rounds", unit: "answers a second" },
      ratio: { what: "ratio, median of the rounds", unit: "product ÷ raw limit" },
      ratios: { what: "ratio of each round", unit: "product ÷ raw limit" },
    },
  },
  listing: {
    title: "Listing what is parked",
    about: `Asks of many subjects that share one key, listed by that key; and one subject of them by its own. Medians of several
listings in a process that has just opened the store.`,
    column: () => "value",
    quantities: {
      entries: { what: "entries that share the key", unit: "entries" },
      subjects: { what: "subjects that they belong to", unit: "subjects" },
      listAllMs: { what: "all of them", unit: "milliseconds" },
      listOneMs: { what: "those of one subject", unit: "milliseconds" },
    },
  },
  jq: {
    title: "Evaluations of a door's programs",
    about: `The same contract, as jq programs in worker threads and as functions in this one: what to resume out of what is parked.`,
    column: () => "value",
    quantities: {
      evaluationsPerSecond: { what: "jq, one after another", unit: "evaluations a second" },
      atOncePerSecond: { what: "jq, as many at once as there is to do", unit: "evaluations a second" },
      functionsPerSecond: { what: "functions", unit: "evaluations a second" },
      firstMs: { what: "the first one, which starts a thread", unit: "milliseconds" },
    },
  },
  disk: {
    title: "Memory beside what is parked on disk",
    about: `A process opens the store that others parked everything in, and lists one subject. Beside it one that opens an empty
store.`,
    column: () => "value",
    quantities: {
      entries: { what: "entries parked on disk", unit: "entries" },
      rssMb: { what: "memory of the process", unit: "MB" },
      emptyRssMb: { what: "memory with an empty store", unit: "MB" },
      heapMb: { what: "heap in use", unit: "MB" },
      emptyHeapMb: { what: "heap in use with an empty store", unit: "MB" },
    },
  },
  "pi-start": {
    title: "A Pi worker's start beside Pi's own",
    about: `From \`assign\` until the model of every worker is at its first turn; the host runs already. Beside it, in turns, as many
bare Pis (\`pi --mode rpc\` with the same model, without the extension) from their start to their first turn.`,
    column: ({ workers }) => counted(workers, "worker"),
    quantities: {
      workers: null,
      firstTurnMs: { what: "from the assignments to the last first turn, median of the rounds", unit: "milliseconds" },
      bareMs: { what: "bare Pis, median of the rounds", unit: "milliseconds" },
      overMs: { what: "difference, median of the rounds", unit: "milliseconds" },
    },
  },
  "pi-latency": {
    title: "Questions and answers between Pi sessions",
    about: `One worker asks again and again, and its owner's model answers at once. By the times at which the messages were written
to the files of both sessions.`,
    column: () => "value",
    quantities: {
      questions: { what: "questions", unit: "questions" },
      questionMs: {
        what: "from the worker's call to the question in its owner's session, median",
        unit: "milliseconds",
      },
      replyMs: { what: "from the owner's call to the answer in the worker's session, median", unit: "milliseconds" },
    },
  },
  "host-memory": {
    title: "Memory of the host",
    about: `The background process with workers that wait for an answer, whose processes are not there, after all of them were
listed.`,
    column: ({ known }) => counted(known, "worker"),
    quantities: {
      known: null,
      ownMb: { what: "memory that is its own", unit: "MB" },
      rssMb: { what: "memory with what it shares", unit: "MB" },
    },
  },
};

/** The figures of a name, with their type. */
export function named<Name extends FigureName>(figures: readonly Figure[], name: Name): FigureOf<Name>[] {
  return figures.filter((figure): figure is FigureOf<Name> => figure.name === name);
}
