import { onTestFinished } from "vitest";
import type { PiPlace } from "./folder.ts";
import { PiScreen, type TerminalOptions } from "./terminal.ts";

export { hasTmux } from "./terminal.ts";

/** Pi on the screen of a real terminal, for one test. */
export class PiTerminal extends PiScreen {
  constructor(place: PiPlace, args?: readonly string[], options?: TerminalOptions) {
    super(place, args, options);
    onTestFinished(() => this.close());
  }
}
