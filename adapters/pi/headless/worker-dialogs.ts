import type { DialogAnswer, Dialogs } from "../../host/dialogs.ts";
import type { Log } from "../../host/log.ts";
import type { Dialog, RootSays } from "../../host/shapes.ts";
import { NO_DIALOG } from "../environment.ts";
import type { LineReader } from "./output.ts";
import type { HeadlessRun } from "./run.ts";

interface Options {
  /** The root session that a worker belongs to in the end, while it is open. */
  rootOf(owner: string): RootSays | undefined;
  dialogs: Dialogs;
  log: Log;
}

/** What waits for somebody; the others only show something. */
const METHODS: readonly string[] = ["select", "confirm", "input", "editor"];

/** The dialogs that extensions open in headless workers, until a person has answered. */
export class WorkerDialogs {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Hears what the process of a worker says. */
  readerOf(run: HeadlessRun): LineReader {
    return { line: (text) => this.#heard(run, text), tooLong: (start) => this.#tooLong(run, start) };
  }

  /** A line of the process: most are news of its turns, which come through its connection as well. */
  #heard(run: HeadlessRun, line: string): void {
    if (!line.startsWith('{"type":"extension_')) return;
    let said: Record<string, unknown>;
    try {
      said = JSON.parse(line) as Record<string, unknown>;
    } catch {
      return;
    }
    if (said["type"] === "extension_error") {
      this.#options.log.warn({ runId: run.runId, event: said["event"] }, "an extension failed in a worker");
    } else if (said["method"] === "setStatus" && said["statusKey"] === NO_DIALOG) this.over(run.runId);
    else if (said["type"] === "extension_ui_request") this.#opened(run, said);
  }

  /** A line that is too long to be kept; what it asks nobody can be shown, and what asks must not wait for ever. */
  #tooLong({ runId, process: program }: HeadlessRun, start: string): void {
    const [, id, method = ""] = /^\{"type":"extension_ui_request","id":"([\w-]+)","method":"(\w+)"/.exec(start) ?? [];
    if (id === undefined || !METHODS.includes(method)) return;
    this.#options.log.warn({ runId, method }, "dialog cancelled: it is too large to be shown");
    program?.say({ type: "extension_ui_response", id, cancelled: true });
  }

  /** Whatever it asked nobody waits for any more: its process is over, or what asked has gone on. */
  over(runId: string): void {
    const { dialogs } = this.#options;
    for (const dialog of dialogs.list()) if (dialog.runId === runId) dialogs.close(dialog.id);
  }

  /** What it wants to know of a person. That it waits, the worker tells itself, in the order of its turns. */
  #opened(run: HeadlessRun, said: Record<string, unknown>): void {
    const { method, id } = said as { method: Dialog["method"]; id: string };
    if (typeof id !== "string" || !METHODS.includes(method)) return;
    const { rootOf, dialogs, log } = this.#options;
    const { process: program } = run;
    const dialog = dialogOf(run, method, said, id);
    const answer = (given: DialogAnswer) => program?.say({ type: "extension_ui_response", id, ...given });
    if ((rootOf(run.owner)?.dialogs ?? run.dialogs) === "deny") {
      log.info({ runId: run.runId, method }, "dialog denied");
      return answer({ cancelled: true });
    }
    const timeout = typeof said["timeout"] === "number" ? said["timeout"] : undefined;
    const timer = timeout === undefined ? undefined : setTimeout(() => dialogs.close(dialog.id), timeout).unref();
    log.info({ runId: run.runId, dialog: dialog.id, method }, "dialog opened");
    dialogs.open(run.owner, dialog, (given) => {
      clearTimeout(timer);
      answer(given);
    });
  }
}

function dialogOf(run: HeadlessRun, method: Dialog["method"], said: Record<string, unknown>, id: string): Dialog {
  return {
    id: id.slice(0, 8),
    runId: run.runId,
    label: run.label,
    method,
    title: String(said["title"] ?? ""),
    ...(typeof said["message"] === "string" && { message: said["message"] }),
    ...(Array.isArray(said["options"]) && { options: said["options"].map(String) }),
    ...(typeof said["placeholder"] === "string" && { placeholder: said["placeholder"] }),
    ...(typeof said["prefill"] === "string" && { prefill: said["prefill"] }),
  };
}
