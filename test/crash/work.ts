import type { Random } from "./random.ts";

/** What a worker does is written in its task, so that a re-run, and the auditor, know it too. */
export interface Work {
  /** Unique in the whole campaign. */
  name: string;
  acts: Act[];
}

export type Act =
  | { act: "ask"; named: boolean }
  /** A journalled step with an effect outside the store. */
  | { act: "step" }
  /** A child, whose questions are answered by a policy or asked upwards, and whose result is read or not. */
  | { act: "child"; work: Work; escalate: boolean; named: boolean; read: boolean }
  /** Asks of one group at once, of whoever is the outermost run's caller. */
  | { act: "park"; asks: number; named: boolean; until?: number; onExpiry?: "kill" | "resume" }
  | { act: "pause"; ms: number }
  | { act: "fill"; bytes: number }
  | { act: "throw" }
  /** Several at once. */
  | { act: "all"; acts: Act[] };

/** Which agent, which task, and how it is assigned. */
export interface Order {
  agent: AgentName;
  work: Work;
  id?: string;
  label?: string;
  deadlineMs?: number;
}

export const AGENT_NAMES = ["plain", "asker", "stepper", "sleeper", "parent"] as const;
/** What visits start. */
export const VISITED_NAMES = ["parker", "broker"] as const;
export type AgentName = (typeof AGENT_NAMES)[number] | (typeof VISITED_NAMES)[number];

export const questionOf = (name: string, at: string): string => `${name}?${at}`;

/** The questions of one group. */
export const groupOf = (name: string, at: string, { asks }: { asks: number }): string[] =>
  Array.from({ length: asks }, (_, index) => questionOf(name, `${at}.${index}`));

/** An answer, as it stands in a result. */
export const saidOf = (answer: unknown): string => (typeof answer === "string" ? answer : JSON.stringify(answer));

/** What parents answer to questions that they do not ask upwards. */
export const policyFor = (question: string): string => `policy(${question})`;

/** The part of a result that a finished child makes. */
export const partOf = (name: string, outcome: { text: string } | { code: string }): string =>
  "text" in outcome ? outcome.text : `${name}!${outcome.code}`;

export const filling = (bytes: number): string => "z".repeat(bytes);

/** How the parts of some work become its result. */
export const textOf = (name: string, parts: readonly string[]): string => `${name}(${parts.join(" ")})`;

/** Where the acts of a work stand: `0`, `1`, and inside an `all` `1.0`, `1.1`. */
export function* placed(acts: readonly Act[], prefix = ""): Generator<[at: string, act: Act]> {
  for (const [index, act] of acts.entries()) {
    const at = `${prefix}${index}`;
    if (act.act === "all") yield* placed(act.acts, `${at}.`);
    else yield [at, act];
  }
}

export const throws = (work: Work): boolean => [...placed(work.acts)].some(([, { act }]) => act === "throw");

/**
 * The result that some work must have, from what its questions were answered, what its steps gave and how its
 * children ended.
 */
export function expectedText(
  work: Work,
  told: {
    answer(question: string): string;
    step(at: string): string;
    child(at: string, name: string): { text: string } | { code: string };
  },
): string {
  const parts: string[] = [];
  for (const [at, act] of placed(work.acts)) {
    if (act.act === "ask") parts.push(`?${at}=${told.answer(questionOf(work.name, at))}`);
    else if (act.act === "park") parts.push(...groupOf(work.name, at, act).map(told.answer));
    else if (act.act === "step") parts.push(`#${at}=${told.step(at)}`);
    else if (act.act === "child" && act.read) parts.push(partOf(act.work.name, told.child(at, act.work.name)));
    else if (act.act === "fill") parts.push(filling(act.bytes));
  }
  return textOf(work.name, parts);
}

/** Makes up some work for one of the agents. */
export function makeWork(random: Random, agent: AgentName, name: string): Work {
  switch (agent) {
    case "plain":
      return { name, acts: random.chance(0.2) ? [{ act: "fill", bytes: random.between(1, 30_000) }] : [] };
    case "asker":
      return { name, acts: askerActs(random) };
    case "stepper":
      return { name, acts: stepperActs(random) };
    case "sleeper":
      return {
        name,
        acts: [{ act: "pause", ms: random.between(0, 400) }, ...(random.chance(0.3) ? [ask(random)] : [])],
      };
    case "parent":
      return { name, acts: parentActs(random, name) };
    case "parker":
      return { name, acts: parkerActs(random) };
    case "broker":
      return { name, acts: brokerActs(random, name) };
  }
}

const ask = (random: Random): Act => ({ act: "ask", named: random.chance(0.5) });

function askerActs(random: Random): Act[] {
  const acts = Array.from({ length: random.between(1, 3) }, () => ask(random));
  if (acts.length > 1 && random.chance(0.3)) return [{ act: "all", acts }];
  if (random.chance(0.1)) acts.push({ act: "throw" });
  return acts;
}

function stepperActs(random: Random): Act[] {
  const acts: Act[] = [];
  for (let left = random.between(1, 4); left > 0; left--) {
    const kind = random.weighted({ step: 5, ask: 1, both: 1, pause: 1 });
    if (kind === "step") acts.push({ act: "step" });
    else if (kind === "ask") acts.push(ask(random));
    else if (kind === "pause") acts.push({ act: "pause", ms: random.between(0, 20) });
    else
      acts.push({ act: "all", acts: [{ act: "step" }, { act: "step" }, ...(random.chance(0.3) ? [ask(random)] : [])] });
  }
  if (random.chance(0.1)) acts.push({ act: "throw" });
  return acts;
}

function park(random: Random): Act {
  const until = random.chance(0.2) ? { until: Date.now() + random.between(0, 300) } : {};
  const onExpiry = random.pick([undefined, "kill", "resume"] as const);
  const asks = random.chance(0.3) ? random.between(2, 3) : 1;
  return { act: "park", asks, named: random.chance(0.5), ...until, ...(onExpiry && { onExpiry }) };
}

function parkerActs(random: Random): Act[] {
  const acts: Act[] = [];
  for (let left = random.between(0, 3); left > 0; left--) {
    if (random.chance(0.3)) acts.push({ act: "step" });
    acts.push(park(random));
  }
  if (random.chance(0.3)) acts.push({ act: "step" });
  if (random.chance(0.1)) acts.push({ act: "throw" });
  return acts;
}

/** Children that ask the caller of their parent, one after the other or at once, and the parent itself before and after. */
function brokerActs(random: Random, name: string): Act[] {
  const children = Array.from({ length: random.between(1, 2) }, (_, index): Act => {
    const work = { name: `${name}.${index}`, acts: parkerActs(random) };
    return { act: "child", work, escalate: false, named: random.chance(0.5), read: true };
  });
  const acts: Act[] = random.chance(0.5) ? [{ act: "all", acts: children }] : children;
  return [...(random.chance(0.3) ? [park(random)] : []), ...acts, ...(random.chance(0.3) ? [park(random)] : [])];
}

function parentActs(random: Random, name: string): Act[] {
  // A parent may not ask while a child's result is unread, so one that leaves results unread asks nothing.
  const asking = random.chance(0.7);
  const children = Array.from({ length: random.between(1, 3) }, (_, index): Act => {
    const acts: Act[] = [];
    if (random.chance(0.7)) acts.push(ask(random));
    if (random.chance(0.4)) acts.push({ act: "step" });
    if (random.chance(0.3)) acts.push(ask(random));
    if (random.chance(0.1)) acts.push({ act: "throw" });
    return {
      act: "child",
      work: { name: `${name}.${index}`, acts },
      escalate: asking && random.chance(0.8),
      named: random.chance(0.5),
      read: asking || random.chance(0.5),
    };
  });
  const extra: Act[] = [];
  const throwing = random.chance(0.08);
  // A throw beside a running step, while a question is open, has the step run again in the same process.
  if (!throwing && random.chance(0.3)) extra.push({ act: "step" });
  if (asking && random.chance(0.3)) extra.push(ask(random));
  if (throwing) extra.push({ act: "throw" });
  if (random.chance(0.6)) return [{ act: "all", acts: [...children, ...(random.chance(0.5) ? extra : [])] }];
  return random.chance(0.5) ? [...children, ...extra] : [...extra, ...children];
}
