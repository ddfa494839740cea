import { spawnSync } from "node:child_process";
import { onTestFinished } from "vitest";
import { env, herdFile, until } from "./herd-process.ts";

/** Whether this machine has tmux, which gives tests a real terminal. */
export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

let terminals = 0;

/** A real terminal with `herd` in it. */
export class Terminal {
  readonly #socket = `herd-e2e-${process.pid}-${++terminals}`;

  /** Starts `herd` with these arguments, in this folder; the terminal shows its exit code when it has ended. */
  constructor(args: readonly string[], cwd: string) {
    onTestFinished(() => void spawnSync("tmux", ["-L", this.#socket, "kill-server"]));
    const command = [process.execPath, herdFile, ...args].map((word) => `'${word}'`).join(" ");
    const size = ["-x", "90", "-y", "40"];
    this.#tmux(
      "-f",
      "/dev/null",
      "-u",
      "new-session",
      "-d",
      ...size,
      "-c",
      cwd,
      `${command}; echo "exit code $?"; read x`,
    );
  }

  type(text: string, ...keys: string[]): void {
    if (text !== "") this.#tmux("send-keys", "-l", text);
    if (keys.length > 0) this.#tmux("send-keys", ...keys);
  }

  /** What it shows, once that is so. */
  async shows(text: string): Promise<string> {
    let screen = "";
    try {
      return await until(text, () => {
        screen = this.#tmux("capture-pane", "-p", "-S", "-");
        return screen.includes(text) && screen;
      });
    } catch (error) {
      throw new Error(`the terminal shows:\n${screen}`, { cause: error });
    }
  }

  /** What it shows now, without what has left it: tmux keeps what is cleared from the top of its screen. */
  screen(): string {
    return this.#tmux("capture-pane", "-p");
  }

  #tmux(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync("tmux", ["-L", this.#socket, ...args], { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`tmux ${args[0]} failed: ${stderr}`);
    return stdout;
  }
}
