import type { Herd } from "../../../runtime/index.ts";
import { Screen, type Terminal } from "./screen.ts";

/** At most so many drawings a second: more, nobody sees. */
const PER_SECOND = 20;

/** What is drawn, for a terminal of this size. Lines that are wider or more would be drawn wrongly. */
export type Drawing = (given: {
  columns: number;
  rows: number;
  /** Progress by the request that a worker is at. */
  notes: ReadonlyMap<string, string>;
}) => Promise<readonly string[]>;

/** What a herd does, live at the end of a terminal: drawn again whenever something happens in it. */
export class LiveView {
  readonly #lines: Drawing;
  readonly #terminal: Terminal;
  readonly #screen: Screen;
  readonly #notes = new Map<string, string>();
  readonly #stops: (() => void)[];
  #timer: NodeJS.Timeout | undefined;
  #shown = true;

  constructor(herd: Herd, lines: Drawing, terminal: Terminal & NodeJS.EventEmitter) {
    this.#lines = lines;
    this.#terminal = terminal;
    this.#screen = new Screen(terminal);
    const soon = () => this.#soon();
    terminal.on("resize", soon);
    this.#stops = [
      () => terminal.off("resize", soon),
      herd.on("state", soon),
      herd.on("question", soon),
      herd.on("result", soon),
      herd.on("report", ({ requestId, note }) => {
        this.#notes.set(requestId, note);
        soon();
      }),
    ];
    soon();
  }

  /** Writes a line that stays, above the view. */
  above(line: string): void {
    this.#screen.clear();
    this.#terminal.write(`${line}\n`);
    this.#soon();
  }

  /** Draws what is so now and leaves it there, for something else to be written below. */
  async pause(): Promise<void> {
    await this.#draw();
    this.#shown = false;
    this.#screen.release();
  }

  resume(): void {
    this.#shown = true;
    this.#soon();
  }

  /** Stops following; what is drawn is taken away unless it is paused. */
  close(): void {
    this.#shown = false;
    clearTimeout(this.#timer);
    for (const stop of this.#stops) stop();
    this.#screen.clear();
  }

  #soon(): void {
    if (!this.#shown || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // A herd that closes lists nothing any more; what it comes to, the command tells.
      this.#draw().catch(() => undefined);
    }, 1_000 / PER_SECOND);
  }

  async #draw(): Promise<void> {
    const lines = await this.#lines({ ...this.#screen.size, notes: this.#notes });
    if (this.#shown) this.#screen.draw(lines);
  }
}
