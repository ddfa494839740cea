import type { Herd } from "../../../runtime/index.ts";
import { Screen, type Terminal } from "./screen.ts";

/** How soon news is drawn, in milliseconds: sooner, nobody sees. */
const SOON_MS = 50;
/** How late at the latest, for what no event tells: that a result was taken, or the size of a window. */
const LATER_MS = 2_000;
/** So many times as long as a drawing took, nothing is drawn. */
const REST = 4;

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
  #dueAt = 0;
  #drawing = false;
  /** Something happened while it was drawn. */
  #stale = false;
  #shown = true;
  #closed = false;

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
    this.#shown = !this.#closed;
    this.#soon();
  }

  /** Stops following; what is drawn is taken away unless it is paused. */
  close(): void {
    this.#closed = true;
    this.#shown = false;
    clearTimeout(this.#timer);
    for (const stop of this.#stops) stop();
    this.#screen.clear();
  }

  #soon(): void {
    if (!this.#shown) return;
    if (this.#drawing) this.#stale = true;
    else this.#schedule(SOON_MS);
  }

  /** The next drawing, unless one comes earlier. */
  #schedule(inMs: number): void {
    const at = performance.now() + inMs;
    if (this.#timer && this.#dueAt <= at) return;
    clearTimeout(this.#timer);
    this.#dueAt = at;
    this.#timer = setTimeout(() => void this.#drawNow(), inMs);
  }

  async #drawNow(): Promise<void> {
    this.#timer = undefined;
    this.#drawing = true;
    this.#stale = false;
    const began = performance.now();
    // A herd that closes lists nothing any more; what it comes to, the command tells.
    await this.#draw().catch(() => undefined);
    this.#drawing = false;
    if (!this.#shown) return;
    // Where looking takes long, it is done less often, so that whoever looks does not hold up the work.
    const rest = Math.max(SOON_MS, REST * (performance.now() - began));
    this.#schedule(this.#stale ? rest : Math.max(rest, LATER_MS));
  }

  async #draw(): Promise<void> {
    const lines = await this.#lines({ ...this.#screen.size, notes: this.#notes });
    if (this.#shown) this.#screen.draw(lines);
  }
}
