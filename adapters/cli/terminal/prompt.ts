import { createInterface, type Interface } from "node:readline";

/** Asks whoever sits at the terminal for lines. */
export class Prompt {
  #lines: Interface | undefined;

  /** The line that is typed, or undefined when the input ends instead. */
  line(query: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      const lines = createInterface({ input: process.stdin, output: process.stdout });
      this.#lines = lines;
      lines.on("close", () => resolve(undefined));
      // The terminal is in raw mode, so Ctrl-C comes as a key: it becomes the signal that it is everywhere else.
      lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
      lines.question(query, (line) => {
        resolve(line);
        lines.close();
      });
    });
  }

  /** Gives the terminal back. */
  close(): void {
    this.#lines?.close();
  }
}
