import type { Audience } from "./audience.ts";
import { print, shownAsking, shownBeginning, shownResult, shownWaiting } from "./showing.ts";

/** Without a terminal: the result goes to stdout, nobody answers, and the rest is said on stderr. */
export class Pipe implements Audience {
  watch(): void {}

  begin(...about: Parameters<Audience["begin"]>): void {
    console.error(shownBeginning(...about));
  }

  async ask(): Promise<undefined> {}

  async tell(result: Parameters<Audience["tell"]>[0]): Promise<void> {
    const { text, to } = shownResult(result);
    await print(text, to);
  }

  waiting(...about: Parameters<Audience["waiting"]>): string {
    return `${shownAsking(about[0])}\n\n${shownWaiting(...about)}`;
  }

  close(): void {}
}
