import { setTimeout as pause } from "node:timers/promises";
import type { AgentDefinition, Question, Worker } from "../../runtime/index.ts";
import type { Fact } from "./facts.ts";
import type { Random } from "./random.ts";
import {
  filling,
  groupOf,
  partOf,
  policyFor,
  questionOf,
  saidOf,
  textOf,
  type Act,
  type AgentName,
  type Work,
} from "./work.ts";

/** What a worker's function needs of its process. */
interface Surroundings {
  /** The number of the process, which makes the values of steps unique. */
  session: number;
  write(fact: Fact): void;
  random: Random;
}

/** Agents that do what their task says. */
export function crashAgents(surroundings: Surroundings): Record<AgentName | "child", AgentDefinition> {
  const run = async (task: string, worker: Worker) => new Doing(JSON.parse(task) as Work, worker, surroundings).text();
  return {
    plain: { description: "ends at once", run },
    asker: { description: "asks its owner", run },
    stepper: { description: "has effects outside the store", concurrency: 4, run },
    sleeper: { description: "takes its time", run },
    parent: { description: "has children", subagents: ["child"], run },
    parker: { description: "asks its caller", run },
    broker: { description: "has children that ask its caller", subagents: ["child"], run },
    child: { description: "works for a parent", concurrency: 6, run },
  };
}

let effects = 0;

/** One execution of some work. */
class Doing {
  readonly #work: Work;
  readonly #worker: Worker;
  readonly #around: Surroundings;

  constructor(work: Work, worker: Worker, around: Surroundings) {
    this.#work = work;
    this.#worker = worker;
    this.#around = around;
  }

  async text(): Promise<string> {
    const parts: string[] = [];
    for (const [index, act] of this.#work.acts.entries()) parts.push(...(await this.#do(act, `${index}`)));
    return textOf(this.#work.name, parts);
  }

  async #do(act: Act, at: string): Promise<string[]> {
    const { name } = this.#work;
    switch (act.act) {
      case "ask": {
        const question = questionOf(name, at);
        const answer = await this.#worker.askOwner({ question, ...(act.named && { name: `ask-${at}` }) });
        return [`?${at}=${answer}`];
      }
      case "park": {
        const { named, until, onExpiry } = act;
        const asked = groupOf(name, at, act).map((question) =>
          this.#worker.ask({
            question,
            groupId: at,
            ...(named && { name: `ask-${question}` }),
            ...(until !== undefined && { expiresAt: new Date(until) }),
            ...(onExpiry && { onExpiry }),
          }),
        );
        return (await Promise.all(asked)).map(saidOf);
      }
      case "step":
        return [`#${at}=${await this.#step(at)}`];
      case "child":
        return this.#child(act, at);
      case "pause":
        await pause(act.ms, undefined, { signal: this.#worker.signal });
        return [];
      case "fill":
        return [filling(act.bytes)];
      case "throw":
        throw new Error(`${name} throws`);
      case "all": {
        const parts = await Promise.all(act.acts.map((each, index) => this.#do(each, `${at}.${index}`)));
        return parts.flat();
      }
    }
  }

  async #step(at: string): Promise<string> {
    const { session, write, random } = this.#around;
    const { name } = this.#work;
    let failing = random.chance(0.1);
    const value = await this.#worker.step(
      `step-${at}`,
      async () => {
        if (failing) {
          failing = false;
          throw new Error("try again");
        }
        await pause(random.between(0, 8));
        const done = `${session}.${++effects}`;
        write({ fact: "effect", name, at, value: done });
        if (random.chance(0.5)) await pause(random.between(0, 8));
        return done;
      },
      { attempts: 2, backoffMs: 2 },
    );
    write({ fact: "journalled", name, at, value });
    return value;
  }

  async #child({ work, escalate, named, read }: Extract<Act, { act: "child" }>, at: string): Promise<string[]> {
    const answer = (question: Question) =>
      escalate ? this.#worker.escalate(question) : question.reply(policyFor(question.question));
    const child = await this.#worker.assign({
      agent: "child",
      task: JSON.stringify(work),
      onQuestion: answer,
      ...(named && { name: `child-${at}` }),
    });
    if (!read) return [];
    const { text, error } = await child.result();
    return [partOf(work.name, error ? { code: error.code } : { text })];
  }
}
