import { onTestFinished } from "vitest";
import { PiDriver } from "./driver.ts";
import type { PiPlace } from "./folder.ts";

export * from "./driver.ts";

/** A root session for one test. */
export class PiSession extends PiDriver {
  constructor(place: PiPlace, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    super(place, args, env);
    onTestFinished(() => void this.child.kill("SIGKILL"));
  }
}
