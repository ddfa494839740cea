import { existsSync } from "node:fs";
import type { Launch } from "../../../runtime/backend.ts";
import { withNodeFirst } from "../../host/node.ts";
import { isInstalled } from "../../host/pi-command.ts";
import type { PiCommand, RootSays } from "../../host/shapes.ts";
import { ENV } from "../environment.ts";
import { contextFiles } from "./context.ts";
import { launchFlags } from "./flags.ts";
import type { Start } from "./process.ts";
import type { PromptFiles } from "./prompts.ts";
import type { ProcessRecord, ProcessRecords } from "./records.ts";
import { checkSkills } from "./skills.ts";

/** What every worker's process is started from. */
export interface Surroundings {
  /** The host's folder. */
  directory: string;
  /** Pi's folder of this user. */
  agentDirectory: string;
  /** Our extension as Pi loads it, absolute. */
  extension: string;
  /** The root session that a worker belongs to in the end, while it is open. */
  rootOf(owner: string): RootSays | undefined;
  /** What that session said last, also when it is closed by now; nothing since this program began to run. */
  lastSaid(owner: string): RootSays | undefined;
  /** Gives a session that this program has not heard of yet a moment to come. */
  mayCome(owner: string, signal: AbortSignal): Promise<void>;
  /** Pi as it is found without any root. @throws HerdError `pi_missing`. */
  findPi(): Promise<PiCommand>;
}

export interface StartPlansOptions extends Surroundings {
  /** Where sessions of workers are made. */
  sessionFolder: string;
  /** What one process of a worker is let in by. */
  tokenOf(start: { runId: string; launch: string }): string;
  records: ProcessRecords;
  prompts: PromptFiles;
}

/** What is started, and what is kept of it once that has a process id. */
export interface StartPlan {
  start: Omit<Start, "reader">;
  record: Omit<ProcessRecord, "pid" | "began">;
}

/** How Pi is started for workers: which Pi, with what flags, prompts and environment. */
export class StartPlans {
  readonly #options: StartPlansOptions;

  constructor(options: StartPlansOptions) {
    this.#options = options;
  }

  /**
   * Writes the prompts, too, which are to be removed once the process has read them.
   * @throws HerdError `pi_missing`, `missing_skill`, and what the disk says. @throws Error when its session was there and is gone.
   */
  async make(
    { runId, launch: launchId, label }: { runId: string; launch: string; label: string },
    launch: Launch,
  ): Promise<StartPlan> {
    const { directory, sessionFolder, extension, lastSaid, findPi, agentDirectory, tokenOf, records, prompts } =
      this.#options;
    const root = lastSaid(launch.owner);
    const before = await records.read(runId);
    // One that was updated meanwhile may be somewhere else.
    const pi = [root?.pi, before?.pi].find((known) => known && isInstalled(known)) ?? (await findPi());
    const trusted = root?.cwd === launch.cwd ? root.trusted : (before?.trusted ?? false);
    const model = before?.model ?? root?.model;
    const thinking = before?.thinking ?? root?.thinking;
    const inherited = { ...(model !== undefined && { model }), ...(thinking !== undefined && { thinking }) };
    const dialogs = root?.dialogs ?? before?.dialogs ?? "ask";
    const { policy, sessionPath } = launch;
    const hasSession = sessionPath !== undefined && existsSync(sessionPath);
    if (before?.hasSession === true && !hasSession) throw new Error(`Its session file ${sessionPath ?? ""} is gone`);
    checkSkills(policy, launch.cwd);
    const written = await prompts.write(runId, {
      role: policy?.systemPrompt ?? "",
      delegates: policy?.delegates ?? false,
    });
    const args = launchFlags({
      launch,
      extension,
      ...written,
      contextFiles: contextFiles(policy, { cwd: launch.cwd, agentDirectory }),
      label,
      sessionFolder,
      ...(hasSession && { sessionFile: sessionPath }),
      trusted,
      ...inherited,
    });
    const token = tokenOf({ runId, launch: launchId });
    const env = {
      ...withNodeFirst(root?.env ?? process.env, pi.node),
      [ENV.directory]: directory,
      [ENV.token]: token,
      [ENV.session]: launch.sessionId,
      [ENV.delegates]: policy?.delegates ? "1" : "0",
    };
    return {
      start: { node: pi.node, args: [pi.cli, ...args], cwd: launch.cwd, env, token },
      record: { runId, launch: launchId, pi, trusted, dialogs, ...inherited, ...(hasSession && { hasSession }) },
    };
  }
}
