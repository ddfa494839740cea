import type { Owner, Question, Result } from "../../../runtime/index.ts";
import { LiveView, type Drawing } from "../terminal/live.ts";
import { Prompt } from "../terminal/prompt.ts";
import { renderTree } from "../terminal/tree.ts";
import type { Audience } from "./audience.ts";
import type { CensusHerd } from "./conduct.ts";
import { print, shownBeginning, shownQuestion, shownResult, shownWaiting } from "./showing.ts";

/** A person at a terminal: sees the workers live and is asked. */
export class Person implements Audience {
  readonly #suggest: () => Promise<string>;
  readonly #prompt = new Prompt();
  #tree: LiveView | undefined;

  /** @param suggest the answer that is taken when the person only presses Enter. */
  constructor(suggest: () => Promise<string>) {
    this.#suggest = suggest;
  }

  watch(herd: CensusHerd, owner: Owner<string>): void {
    const lines: Drawing = async (given) => renderTree((await owner.list()).workers, given);
    this.#tree = new LiveView(herd, lines, process.stdout);
  }

  begin(...about: Parameters<Audience["begin"]>): void {
    this.#tree?.above(shownBeginning(...about));
  }

  async ask(question: Question): Promise<string | undefined> {
    await this.#tree?.pause();
    const suggested = await this.#suggest();
    await print(`\n${shownQuestion(question)}\n`);
    const line = await this.#prompt.line(`Leave out [${suggested}]: `);
    await print("");
    this.#tree?.resume();
    return line?.trim() === "" ? suggested : line;
  }

  async tell(result: Result): Promise<void> {
    this.#tree?.close();
    const { text, to } = shownResult(result);
    await print(text, to);
  }

  /** The person has just read the question. */
  waiting(...about: Parameters<Audience["waiting"]>): string {
    return shownWaiting(...about);
  }

  close(): void {
    this.#prompt.close();
    this.#tree?.close();
  }
}
