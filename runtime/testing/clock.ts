import type { Clock } from "../clock.ts";

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A clock that stands still until a test moves it. */
export class TestClock implements Clock {
  #now: number;
  #sleepers: { until: number; wake: () => void }[] = [];

  /** @param start ISO 8601; the real time of the call unless given. */
  constructor(start?: string) {
    this.#now = start === undefined ? Date.now() : Date.parse(start);
    if (Number.isNaN(this.#now)) throw new Error(`now: ${JSON.stringify(start)} is not an ISO 8601 time`);
  }

  now(): number {
    return this.#now;
  }

  /** Pauses under way: functions that wait for time to pass. */
  get asleep(): number {
    return this.#sleepers.length;
  }

  pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms <= 0 || signal?.aborted) return Promise.resolve();
    return new Promise((wake) => {
      const sleeper = { until: this.#now + ms, wake };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        wake();
      });
    });
  }

  /** Moves the time, forwards or backwards, and wakes whose pause is over. */
  move(by: string | number): void {
    this.#now += typeof by === "number" ? by : durationOf(by);
    const awake = this.#sleepers.filter(({ until }) => until <= this.#now);
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.#now);
    for (const { wake } of awake) wake();
  }
}

/** `"24h"`, `"90s"`, `"250ms"` in milliseconds. */
function durationOf(text: string): number {
  const match = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match) throw new Error(`${JSON.stringify(text)} is not a duration like "24h", "90s" or "250ms"`);
  return Number(match[1]) * (UNITS[match[2] as string] as number);
}
