import type { Usage } from "../../machines/vocabulary.ts";

/** A run's progress: told at most once a turn of the event loop, its usage added up. */
export class Reports {
  usage: Usage | undefined;
  /** UTC milliseconds of the last one. */
  lastAt = 0;
  #note: string | undefined;
  readonly #tell: (note: string, usage: Usage | undefined) => void;

  constructor(tell: (note: string, usage: Usage | undefined) => void) {
    this.#tell = tell;
  }

  add(note: string, usage: Usage | undefined, at: number): void {
    this.lastAt = at;
    if (usage) this.usage = sum(this.usage, usage);
    const first = this.#note === undefined;
    this.#note = note;
    if (!first) return;
    setImmediate(() => {
      const latest = this.#note ?? "";
      this.#note = undefined;
      this.#tell(latest, this.usage);
    });
  }
}

function sum(a: Usage | undefined, b: Usage): Usage {
  const total: Usage = { ...a };
  for (const field of ["inputTokens", "outputTokens", "costUsd"] as const) {
    if (b[field] !== undefined) total[field] = (total[field] ?? 0) + b[field];
  }
  return total;
}
