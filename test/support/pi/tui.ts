import { spawnSync } from "node:child_process";
import { onTestFinished } from "vitest";
import { piCli, until, type PiPlace } from "./place.ts";

/** Whether this machine has tmux, which gives tests a real terminal. */
export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

let terminals = 0;

/** Pi on the screen of a real terminal. */
export class PiTerminal {
  readonly #socket = `herd-pi-${process.pid}-${++terminals}`;
  readonly #env: NodeJS.ProcessEnv;

  /** Starts a program in it; Pi with these arguments unless it is another one. */
  constructor(
    place: PiPlace,
    args: readonly string[] = [],
    { command = [process.execPath, piCli, "--tui-mode", "regular"], cwd = place.cwd } = {},
  ) {
    this.#env = place.env;
    onTestFinished(() => void spawnSync("tmux", ["-L", this.#socket, "kill-server"]));
    const line = [...command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    const size = ["-x", "100", "-y", "60"];
    this.#tmux(
      "-f",
      "/dev/null",
      "-u",
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

  #tmux(...args: string[]): string {
    // A terminal of its own is in no other one.
    const { TMUX: _, ...env } = this.#env;
    const { status, stdout, stderr } = spawnSync("tmux", ["-L", this.#socket, ...args], { env, encoding: "utf8" });
    if (status !== 0) throw new Error(`tmux ${args[0]} failed: ${stderr}`);
    return stdout;
  }
}
