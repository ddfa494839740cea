import type { Question } from "../asks/question.ts";
import type { BackendHost } from "../backend.ts";
import type { Result } from "../deliveries/result.ts";
import type { AgentDefinition } from "../functions/agent.ts";
import type { Herd, Owner } from "../api.ts";
import { openHerd, type HerdInstance } from "../herd-instance.ts";
import type { HerdOptions } from "../options.ts";
import { memoryStore } from "../store/memory.ts";
import type { Store } from "../store/store.ts";
import { TestClock } from "./clock.ts";
import { SCRIPTED, ScriptedAgent, ScriptedBackend } from "./scripted.ts";

/** An owner that writes down what reaches it and acknowledges every result. */
export interface RecordingOwner extends Owner<string> {
  readonly questions: Question[];
  readonly results: Result[];
}

/** A herd that a test controls, with the owner that it listens as. */
export interface TestHerd {
  /** The herd that is open now: another object after `crash`. */
  readonly herd: Herd;
  readonly owner: RecordingOwner;
  readonly store: Store;
  readonly clock: {
    /** The time that stands still. */
    now(): Date;
    /** Lets time pass, in milliseconds or as `"90s"`, `"10m"`, …, and everything happen that is due by then. */
    advance(by: string | number): Promise<void>;
  };
  /** The next question not given yet; fails at once, with what the herd is doing, if none can come. */
  question(): Promise<Question>;
  /** The next result not given yet; fails at once, with what the herd is doing, if none can come. */
  result(): Promise<Result>;
  /** Resolves when nothing happens any more unless somebody acts or time passes. */
  idle(): Promise<void>;
  /** Drops everything in memory, as the end of the process would, and opens the store again. */
  crash(options?: { agents?: Record<string, AgentDefinition> }): Promise<void>;
  /** Takes over an agent's workers: the test makes their moves. Call it before the agent is assigned. */
  scripted(agent: string): ScriptedAgent;
  /** Closes the herd at once, without waiting for functions that execute. */
  close(): Promise<void>;
}

/** What `createTestHerd` takes: the options of `createHerd`, without those that the test itself controls. */
export interface TestHerdOptions extends Omit<HerdOptions<object>, "agents" | "tickMs" | "directory"> {
  agents: Record<string, AgentDefinition>;
  /** ISO 8601; the real time unless given. The clock stands still until `clock.advance`. */
  now?: string;
  /** The recording owner's id; "tester" unless given. */
  owner?: string;
  /** The recording owner's working directory. */
  cwd?: string;
  /** Where scripted workers have their session files. */
  sessionFolders?: readonly string[];
}

/**
 * A herd for tests: on a memory store, with a clock that stands still and an owner that records.
 *
 * @example
 * const t = await createTestHerd({ agents });
 * await t.owner.assign({ agent: "mailer", task: "Invite everyone" });
 * const question = await t.question();
 * await t.crash();
 * await t.owner.reply({ askId: question.askId, message: "yes" });
 * expect((await t.result()).text).toBe("sent");
 */
export async function createTestHerd(options: TestHerdOptions): Promise<TestHerd> {
  const { now, owner: ownerId = "tester", cwd, sessionFolders = [], ...rest } = options;
  const clock = new TestClock(now);
  const store = options.store ?? memoryStore();
  const scripts = new Map<string, ScriptedAgent>();
  const runAgents = new Map<string, string>();
  const questions: Question[] = [];
  const results: Result[] = [];
  let given = { questions: 0, results: 0 };
  let agents = options.agents;
  let host: BackendHost | undefined;
  let herd: HerdInstance;
  let owner: Owner<string>;

  async function open(): Promise<void> {
    herd = await openHerd(
      { waitForLockMs: 0, ...rest, store, agents, tickMs: 0 },
      {
        clock,
        backends: [
          (attached) => {
            host = attached;
            return new ScriptedBackend(scripts, runAgents, () => host as BackendHost, sessionFolders);
          },
        ],
        backendOf: (agent) => (scripts.has(agent) ? SCRIPTED : undefined),
      },
    );
    owner = herd.owner(ownerId, {
      ...(cwd !== undefined && { cwd }),
      onQuestion: (question) => void questions.push(question),
      onResult: (result) => void results.push(result),
    });
  }

  const idle = () => herd.engine.idle(() => clock.asleep);

  /** Until idle, or for some turns of the event loop when a function executes on and on. */
  async function shortly(): Promise<void> {
    let quiet = false;
    const noLonger = () => (quiet = true);
    void idle().then(noLonger, noLonger);
    for (let turn = 0; turn < 50 && !quiet; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  async function next<Item>(kind: "questions" | "results", items: readonly Item[]): Promise<Item> {
    if (items.length <= given[kind]) await idle();
    if (items.length <= given[kind]) throw new Error(await describe(kind));
    given = { ...given, [kind]: given[kind] + 1 };
    return items[given[kind] - 1] as Item;
  }

  async function describe(kind: string): Promise<string> {
    const { workers } = await owner.list();
    const states = workers.map(({ label, state, question, diagnostic }) => {
      const why = question ? `: asks ${JSON.stringify(question.question)}` : diagnostic ? `: ${diagnostic}` : "";
      return `  ${label} is ${state}${why}`;
    });
    return [
      `no ${kind.slice(0, -1)} can come: nothing happens any more, ${given.questions} questions and ${given.results} results were given`,
      ...(states.length > 0 ? states : ["  no worker is left"]),
    ].join("\n");
  }

  await open();
  const recording: RecordingOwner = {
    questions,
    results,
    subagent: (request) => owner.subagent(request),
    assign: (request) => owner.assign(request),
    steer: (request) => owner.steer(request),
    reply: (request) => owner.reply(request),
    close: (request) => owner.close(request),
    list: () => owner.list(),
    parked: () => owner.parked(),
    parkedTool: (name, input) => owner.parkedTool(name, input),
    detach: () => owner.detach(),
  };

  return {
    get herd() {
      return herd;
    },
    owner: recording,
    store,
    clock: {
      now: () => new Date(clock.now()),
      async advance(by) {
        await shortly();
        clock.move(by);
        // What one tick sets off may be due itself by now.
        for (let round = 0; round < 3; round++) {
          await shortly();
          await herd.tick();
        }
        await shortly();
      },
    },
    question: () => next("questions", questions),
    result: () => next("results", results),
    idle,
    async crash(changed = {}) {
      agents = changed.agents ?? agents;
      await herd.crash();
      await open();
    },
    scripted(agent) {
      const script = scripts.get(agent) ?? new ScriptedAgent(agent);
      scripts.set(agent, script);
      return script;
    },
    close: () => herd.close({ graceMs: 0 }),
  };
}
