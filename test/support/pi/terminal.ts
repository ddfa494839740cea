import { spawnSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { piCli, until, type PiPlace } from "./folder.ts";

/** Whether this machine has tmux, which gives programs a real terminal. */
export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

/** What has not changed for so long is at rest, in milliseconds. */
const REST_MS = 500;

let terminals = 0;

export interface TerminalOptions {
  /** Another program than Pi. */
  command?: readonly string[];
  cwd?: string;
  columns?: number;
  rows?: number;
}

/** Pi on the screen of a real terminal. */
export class PiScreen {
  readonly #socket = `herd-pi-${process.pid}-${++terminals}`;
  readonly #env: NodeJS.ProcessEnv;

  /** Starts a program in it; Pi with these arguments unless it is another one. */
  constructor(place: PiPlace, args: readonly string[] = [], options: TerminalOptions = {}) {
    const { command = [process.execPath, piCli, "--tui-mode", "regular"], cwd = place.cwd } = options;
    const { columns = 100, rows = 60 } = options;
    this.#env = place.env;
    const line = [...command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    const size = ["-x", String(columns), "-y", String(rows)];
    this.#tmux(
      "-f",
      "/dev/null",
      "-u",
      "set-option",
      "-s",
      "extended-keys",
      "on",
      ";",
      "new-session",
      "-d",
      ...size,
      "-c",
      cwd,
      `${line}; echo "exit code $?"; read x`,
    );
  }

  type(text: string, ...keys: string[]): void {
    if (text !== "") this.#tmux("send-keys", "-l", text);
    if (keys.length > 0) this.#tmux("send-keys", ...keys);
  }

  /** What it shows, once that is so. */
  async shows(text: string | RegExp): Promise<string> {
    let screen = "";
    const isThere = () => {
      screen = this.screen();
      return typeof text === "string" ? screen.includes(text) : text.test(screen);
    };
    await until(isThere, () => `${text} on the screen, which shows:\n${screen}`);
    return screen;
  }

  /** What it shows now, and what has left it at its top. */
  screen(): string {
    return this.#tmux("capture-pane", "-p", "-S", "-");
  }

  /** The same with the sequences that colour it, once nothing changes any more. */
  async rests(): Promise<string> {
    let last = "";
    for (;;) {
      const now = this.#tmux("capture-pane", "-p", "-e", "-N", "-S", "-");
      if (now === last) return now;
      last = now;
      await pause(REST_MS);
    }
  }

  close(): void {
    spawnSync("tmux", ["-L", this.#socket, "kill-server"]);
  }

  #tmux(...args: string[]): string {
    // A terminal of its own is in no other one.
    const { TMUX: _, ...env } = this.#env;
    const { status, stdout, stderr } = spawnSync("tmux", ["-L", this.#socket, ...args], { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`tmux ${args[0]} failed: ${stderr}`);
    return stdout;
  }
}
