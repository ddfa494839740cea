import { LABEL_PATTERN, type Json } from "../../machines/vocabulary.ts";
import { invalidRequest, type HerdError } from "../errors.ts";
import type { Worker } from "./worker.ts";

/** An agent that is an async function in this process. */
export interface AgentDefinition {
  description: string;
  /** The agents its workers may start. Without it a worker is a leaf. */
  subagents?: string[];
  /** `false` keeps it in the roster and refuses assignments. */
  enabled?: boolean;
  /** The keys that `worker.extras` may have; a visit with another one is refused. */
  extras?: string[];
  /** A JSON Schema of the `input` that a visit or a door starts it with. */
  input?: object;
  /** How many of its runs execute at once; unlimited unless set. */
  concurrency?: number;
  /** Names it had before: open runs of those go on with this definition. */
  formerly?: string[];
  /**
   * Everything outside `worker.step` may run more than once: after a crash, or after it was parked out of memory,
   * the function starts again from the top, and what it did through `worker` is given back instead of done again.
   *
   * What it returns is the result: any JSON. `undefined`, `null` and blank text end as `empty_result`; a throw ends
   * as `worker_error`, after its children were closed.
   */
  run: (task: string, worker: Worker) => Promise<Json>;
}

const FIELDS = new Set(["description", "subagents", "enabled", "extras", "input", "concurrency", "formerly", "run"]);

/** The agents of one herd, checked when it is created. */
export class Agents {
  readonly #definitions = new Map<string, AgentDefinition>();
  readonly #others: boolean;
  readonly #formerly = new Map<string, string>();
  /** Findings that hinder nothing, for the creator of the herd to see. */
  readonly warnings: string[] = [];

  /**
   * @param others there are definition files besides, whose names are not known yet.
   * @throws HerdError `invalid_request` naming the agent, the field and the rule.
   */
  constructor(definitions: Record<string, AgentDefinition>, others = false) {
    this.#others = others;
    for (const [name, definition] of Object.entries(definitions)) {
      this.#check(name, definition, definitions);
      this.#definitions.set(name, definition);
      for (const former of definition.formerly ?? []) {
        if (former in definitions || this.#formerly.has(former)) {
          throw badAgent(name, "formerly", `"${former}" is also another agent's name`);
        }
        this.#formerly.set(former, name);
      }
    }
  }

  get names(): string[] {
    return [...this.#definitions.keys()];
  }

  /** The definition that runs workers of an agent, also under a former name. */
  find(name: string): AgentDefinition | undefined {
    return this.#definitions.get(name) ?? this.#definitions.get(this.#formerly.get(name) ?? "");
  }

  /** Whether an agent is defined under exactly this name. */
  has(name: string): boolean {
    return this.#definitions.has(name);
  }

  /** The definition under exactly this name. */
  named(name: string): AgentDefinition | undefined {
    return this.#definitions.get(name);
  }

  #check(name: string, definition: AgentDefinition, all: Record<string, AgentDefinition>): void {
    for (const field of Object.keys(definition)) {
      if (!FIELDS.has(field)) throw badAgent(name, field, `unknown field; known are ${[...FIELDS].join(", ")}`);
    }
    if (typeof definition.description !== "string" || definition.description.trim() === "") {
      throw badAgent(name, "description", "a non-blank string is required");
    }
    if (typeof definition.run !== "function") throw badAgent(name, "run", "an async function is required");
    for (const field of ["subagents", "formerly", "extras"] as const) {
      const value = definition[field];
      if (value !== undefined && !(Array.isArray(value) && value.every((item) => typeof item === "string"))) {
        throw badAgent(name, field, "a list of names is required");
      }
    }
    const { input } = definition;
    if (input !== undefined && (typeof input !== "object" || input === null || Array.isArray(input))) {
      throw badAgent(name, "input", "a JSON Schema object is required");
    }
    for (const child of definition.subagents ?? []) {
      if (!(child in all) && !this.#others) throw badAgent(name, "subagents", `"${child}" is not defined`);
    }
    const { concurrency } = definition;
    if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency >= 1)) {
      throw badAgent(name, "concurrency", "a whole number of at least 1 is required");
    }
    if (!LABEL_PATTERN.test(name)) {
      this.warnings.push(`agent "${name}" cannot become a label: its workers need an explicit label`);
    }
  }
}

function badAgent(name: string, field: string, rule: string): HerdError {
  return invalidRequest("createHerd", "bad_agent", `Agent "${name}", field ${field}: ${rule}`, `correct ${field}`, {
    field: `agents.${name}.${field}`,
    rule,
  });
}

/** The defined name that a misspelling most likely meant: at most a third of its letters away. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const candidate of names) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= Math.max(1, Math.floor(candidate.length / 3)) && distance < (best?.distance ?? Infinity)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

/** Letters to insert, delete, replace or swap with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const [before, row] = [rows[i - 1] as number[], [i]];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = (before[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (rows[i - 2]?.[j - 2] as number) + 1 : Infinity;
      row.push(Math.min(replaced, swap, (before[j] as number) + 1, (row[j - 1] as number) + 1));
    }
  }
  return rows[a.length]?.[b.length] as number;
}
