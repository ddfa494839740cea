/** What time is it, and how to wait: the system's, or a test's. */
export interface Clock {
  /** UTC milliseconds. */
  now(): number;
  /** Resolves after so many milliseconds, or at once when the signal aborts. */
  pause(ms: number, signal?: AbortSignal): Promise<void>;
}
