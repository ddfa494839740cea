import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import type { ExampleName } from "./scripted.ts";

/** Where a life ends, in the order in which an assignment passes. */
export const POINTS = [
  "writer starts",
  "writer has turn 1",
  "the question waits",
  "writer has the answer",
  "writer has turn 2",
  "translator starts",
  "translator has turn 1",
  "writer has the child's result",
  "writer has turn 3",
];

/** An example's folder over several lives. */
export class Lives {
  readonly lines: string[] = [];
  readonly #example: ExampleName;
  readonly #folder: string;

  private constructor(example: ExampleName, folder: string) {
    this.#example = example;
    this.#folder = folder;
  }

  static async of(example: ExampleName): Promise<Lives> {
    const folder = await mkdtemp(join(tmpdir(), `herd-${example}-`));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    return new Lives(example, folder);
  }

  /** The calls of the model so far, over all lives. */
  async calls(): Promise<string[]> {
    const text = await readFile(join(this.#folder, "model-calls"), "utf8").catch(() => "");
    return text.split("\n").slice(0, -1);
  }

  /** What all lives printed that starts with a word, without the word. */
  told(word: string): string[] {
    return this.lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []));
  }

  /**
   * Lives until the point, where it is killed, or to its own end.
   * @throws Error with what it wrote when it ended in another way.
   */
  async live(point?: string): Promise<void> {
    const program = ["--import", file("checkout.ts"), file("life.ts"), this.#example, this.#folder];
    const child = spawn(process.execPath, [...program, ...(point === undefined ? [] : [point])], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === point) child.kill("SIGKILL");
      else this.lines.push(line);
    });
    const ended = await new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => resolve(signal ?? code));
    });
    if (ended === (point === undefined ? 0 : "SIGKILL") && errors === "") return;
    throw new Error(`${this.#example} ended with ${String(ended)} on its way to ${point ?? "the end"}: ${errors}`);
  }
}

const file = (name: string) => join(import.meta.dirname, name);
