import { z } from "zod";
import type { BackendFactory } from "./backend.ts";
import type { ControlOptions } from "./control/grants.ts";
import { definitionSources, type DefinitionSources } from "./definitions/source.ts";
import { invalidRequest } from "./errors.ts";
import { inlineBytes, payloadBytes } from "./evidence/limits.ts";
import type { AgentDefinition } from "./functions/agent.ts";
import type { Store } from "./store/store.ts";

const DAY = 24 * 60 * 60 * 1000;
const count = (fallback: number) => z.number().int().min(1).default(fallback);
const milliseconds = (fallback: number) => z.number().min(0).default(fallback);

const schema = z.strictObject({
  directory: z.string().min(1).default(".herd"),
  store: z.custom<Store>((value) => typeof value === "object" && value !== null && "batch" in value).optional(),
  agents: z.custom<Record<string, AgentDefinition>>((value) => typeof value === "object" && value !== null).default({}),
  definitions: definitionSources,
  backends: z.array(z.custom<BackendFactory>((value) => typeof value === "function", "must be a function")).default([]),
  durability: z.literal("process").optional(),
  concurrency: z.number().int().min(1).optional(),
  maxTrees: count(1_000),
  maxChildren: count(256),
  inlineBytes: inlineBytes.default(131_072),
  payloadBytes: payloadBytes.default(131_072),
  labelCeiling: count(999),
  maxParkedRuns: count(1_000),
  parkAfter: z.number().min(0).optional(),
  maxInFlight: count(1_000),
  tickMs: milliseconds(1_000),
  waitForLockMs: milliseconds(2_000),
  passive: z.boolean().default(false),
  control: z
    .union([
      z.boolean(),
      z.custom<ControlOptions>(
        (value) => typeof value === "object" && value !== null,
        "must be a boolean or an object",
      ),
    ])
    .default(true),
  runWorkers: z.boolean().default(true),
  restarts: count(5),
  jqTimeoutMs: count(2_000),
  callerAskTtl: z
    .number()
    .positive()
    .nullable()
    .default(30 * DAY),
  maxConcurrentCaller: z.number().int().min(1).nullable().default(10_000),
  maxConcurrent: z.number().int().min(1).nullable().default(1_000),
  retention: z.strictObject({ outcomesMs: milliseconds(30 * DAY), resultsMs: milliseconds(30 * DAY) }).prefault({}),
  reopen: z.strictObject({ attempts: count(8), pauseMs: milliseconds(250) }).prefault({}),
});

/** What `createHerd` takes. Every option has a default that suits one person on one machine. */
export interface HerdOptions<AgentsByName> {
  /** The herd's folder; `.herd` in the working directory unless set. */
  directory?: string;
  /** A store of your own instead of a folder. */
  store?: Store;
  agents?: AgentsByName;
  /**
   * Folders with agent definition files, above those that come with the package; a later one overlays an earlier one.
   * `~` is the home folder. Their workers run on the first of `backends`. A function is asked whenever the agents are
   * looked at, so that folders come and go; if it throws, what it gave last counts on, and the list says so.
   */
  definitions?: DefinitionSources;
  /** What runs workers that are no functions of this program. */
  backends?: readonly BackendFactory[];
  /** `"process"`: no fsync; survives the end of the process, not of the machine. */
  durability?: "process";
  /** How many function runs execute at once, over all agents; unlimited unless set. */
  concurrency?: number;
  /** Trees kept in memory while idle; 1,000. A soft limit. */
  maxTrees?: number;
  /** Direct workers of one owner; 256. */
  maxChildren?: number;
  /** Bytes up to which the text of a file in `files` is embedded; 131,072. 0: never, its path is given. */
  inlineBytes?: number;
  /** Bytes of a task, question, reply or steer with everything that is embedded; 131,072. 1,024 to 1,048,576. */
  payloadBytes?: number;
  /** How far generated labels are numbered: `name-999`. */
  labelCeiling?: number;
  /** Waiting function runs kept in memory; 1,000. */
  maxParkedRuns?: number;
  /** Milliseconds after which a waiting run is parked out of memory; never unless set, 0 is at once. */
  parkAfter?: number;
  /** Commands not yet on disk beyond which new ones are refused as `overloaded`; 1,000. */
  maxInFlight?: number;
  /** How often due things are looked at, in milliseconds; 1,000. 0: only when `tick` is called. */
  tickMs?: number;
  /** How long to wait for a store that another process is closing, in milliseconds; 2,000. */
  waitForLockMs?: number;
  /** Only read: no commands, no deliveries, nothing is changed. */
  passive?: boolean;
  /**
   * Lets other processes of this user reach the herd through a private socket; true. Not with `passive`. As an object it
   * says who may do what there, and what is offered besides.
   */
  control?: boolean | ControlOptions;
  /**
   * Lets workers go on in this process; true. With false it takes commands and stores what they lead to, for whoever
   * answers or closes while the program that runs the workers does not: they go on when that opens the store.
   */
  runWorkers?: boolean;
  /** Ends of the process without progress after which a run ends as `worker_lost`; 5. */
  restarts?: number;
  /** How long one evaluation of a door's jq program may take, in milliseconds; 2,000. */
  jqTimeoutMs?: number;
  /** How long a parked ask without `expiresAt` waits, in milliseconds; 30 days. null: for ever. */
  callerAskTtl?: number | null;
  /**
   * How many open asks and untaken outcomes of subjects there may be (`INTERACTIONS_MAX_CONCURRENT_CALLER`); 10,000. An ask
   * beyond is refused as `limit`, an outcome never. null: any number.
   */
  maxConcurrentCaller?: number | null;
  /** How many asks to people may be open (`INTERACTIONS_MAX_CONCURRENT`); 1,000. null: any number. */
  maxConcurrent?: number | null;
  /**
   * How long finished work stays readable (`resultsMs`), and how long an outcome waits on a subject before it is dropped
   * (`outcomesMs`), in milliseconds; 30 days each.
   */
  retention?: { outcomesMs?: number; resultsMs?: number };
  /** How a batch that the store refused is written again: 8 attempts, 250 ms apart. */
  reopen?: { attempts?: number; pauseMs?: number };
}

export type ResolvedOptions = z.infer<typeof schema>;

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings of the environment that stand for options which are not given. Source: "Asking the caller". */
const SETTINGS = {
  maxConcurrentCaller: "INTERACTIONS_MAX_CONCURRENT_CALLER",
  maxConcurrent: "INTERACTIONS_MAX_CONCURRENT",
} as const;

/** @throws HerdError `bad_option` naming the variable. */
function withSettings(options: HerdOptions<object>, env: Environment): HerdOptions<object> {
  const given: Record<string, number | null> = {};
  for (const [option, variable] of Object.entries(SETTINGS)) {
    const value = env[variable]?.trim();
    if (value === undefined || value === "" || options[option as keyof typeof SETTINGS] !== undefined) continue;
    if (!/^(null|[1-9]\d{0,14})$/.test(value)) {
      throw invalidRequest(
        "createHerd",
        "bad_option",
        `The variable ${variable} is ${JSON.stringify(value)}, which is neither a positive whole number nor null`,
        `correct ${variable}, or unset it`,
        { field: variable },
      );
    }
    given[option] = value === "null" ? null : Number(value);
  }
  return { ...options, ...given };
}

/** Fills in the defaults. @throws HerdError `invalid_request` naming each wrong option and its rule. */
export function resolveOptions(options: HerdOptions<object>, env: Environment = process.env): ResolvedOptions {
  const parsed = schema.safeParse(withSettings(options, env));
  if (parsed.success) return parsed.data;
  const findings = parsed.error.issues.map((issue) => {
    if (issue.code === "unrecognized_keys") return `unknown option ${issue.keys.join(", ")}`;
    return `option ${issue.path.join(".")}: ${issue.message}`;
  });
  throw invalidRequest("createHerd", "bad_option", findings.join("; "), "correct the options of createHerd", {
    field: parsed.error.issues
      .map((issue) => (issue.code === "unrecognized_keys" ? issue.keys.join(", ") : issue.path.join(".")))
      .join(", "),
  });
}
