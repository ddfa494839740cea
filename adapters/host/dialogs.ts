import { HerdError, visible } from "../../runtime/client.ts";
import { hostCommand } from "./herd-command.ts";
import type { Dialog } from "./shapes.ts";

/** What a person says to a dialog. */
export type DialogAnswer = { value: string } | { confirmed: boolean } | { cancelled: true };

interface Open {
  dialog: Dialog;
  owner: string;
  answered(answer: DialogAnswer): void;
}

/** Who shows dialogs, or takes them away again. */
interface Audience {
  opened(owner: string, dialog: Dialog): void;
  closed(owner: string, id: string): void;
}

/** The dialogs that extensions opened in workers and that a person has not answered yet. Each is answered once. */
export class Dialogs {
  readonly #open = new Map<string, Open>();
  readonly #audience: Audience;
  readonly #directory: string;

  /** @param directory the folder of the host. */
  constructor(audience: Audience, directory: string) {
    this.#audience = audience;
    this.#directory = directory;
  }

  open(owner: string, dialog: Dialog, answered: (answer: DialogAnswer) => void): void {
    this.#open.set(dialog.id, { dialog, owner, answered });
    this.#audience.opened(owner, dialog);
  }

  /** Nobody can answer it any more: what asked has gone on, or is gone. */
  close(id: string): void {
    const open = this.#open.get(id);
    if (open === undefined) return;
    this.#open.delete(id);
    this.#audience.closed(open.owner, id);
  }

  /** @param owner of one owner alone. */
  list(owner?: string): Dialog[] {
    return [...this.#open.values()]
      .filter((each) => owner === undefined || each.owner === owner)
      .map((each) => each.dialog);
  }

  /**
   * A person's answer.
   * @param which the dialog's id, or a worker's label.
   * @param by the owner that answers; anybody's dialogs unless set.
   * @throws HerdError `target_not_found`, `target_ambiguous`, or `invalid_field` when the answer is none to it.
   */
  answer(which: string, answer: DialogAnswer | string, by?: string): Dialog {
    const visibles = [...this.#open.values()].filter(({ owner }) => by === undefined || owner === by);
    const found = visibles.filter(({ dialog }) => dialog.id === which || dialog.label === which);
    // A worker's dialogs are answered in the order in which they came.
    const [first] = found;
    if (first === undefined) throw notAsked(which, visibles, this.#directory);
    if (new Set(found.map(({ dialog }) => dialog.runId)).size > 1) throw ambiguous(which, found);
    const given = typeof answer === "string" ? answerTo(first.dialog, answer) : answer;
    this.close(first.dialog.id);
    first.answered(given);
    return first.dialog;
  }
}

/** What a word is to a dialog. @throws HerdError `invalid_field`. */
function answerTo({ method, options = [], label }: Dialog, word: string): DialogAnswer {
  if (method === "input" || method === "editor") return { value: word };
  const said = word.trim().toLowerCase();
  if (method === "confirm") {
    if (said === "yes" || said === "true") return { confirmed: true };
    if (said === "no" || said === "false") return { confirmed: false };
    throw notAnAnswer(label, "it asks for yes or no");
  }
  if (options.includes(word)) return { value: word };
  if (said === "no") return { cancelled: true };
  throw notAnAnswer(
    label,
    `it asks for one of ${options.map((each) => JSON.stringify(each)).join(", ")}, or no for none`,
  );
}

function notAnAnswer(label: string, rule: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "invalid_field",
    message: `That is no answer to the dialog of "${label}": ${rule}`,
    nextAction: "answer with what it asks for",
    operation: "answer",
    field: "answer",
    rule,
  });
}

function notAsked(which: string, open: readonly Open[], directory: string): HerdError {
  const labels = open.map(({ dialog }) => `"${dialog.label}"`).join(", ");
  return new HerdError({
    category: "target_not_found",
    reason: "target_not_found",
    message: `No dialog of "${visible(which)}" is open${labels === "" ? "" : `; open are those of ${labels}`}`,
    nextAction: `look with ${hostCommand(directory, ["status"])} which dialogs are open; one that was answered is gone`,
    operation: "answer",
  });
}

function ambiguous(which: string, found: readonly Open[]): HerdError {
  return new HerdError({
    category: "target_ambiguous",
    reason: "target_ambiguous",
    message: `Several workers are labelled "${which}" and have a dialog open`,
    nextAction: `name the dialog: ${found.map(({ dialog }) => dialog.id).join(", ")}`,
    operation: "answer",
  });
}
