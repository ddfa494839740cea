import { visible } from "../../runtime/client.ts";
import type { Dialog } from "./shapes.ts";

export interface DialogTextOptions {
  /** The command that answers, from what it is to be told. */
  command(...words: string[]): string;
  /** Every dialog that is open, as far as it is known: a label may stand for several workers. */
  all?: readonly Dialog[];
}

/** A dialog that waits for a person, and the command that answers it. */
export function dialogText(dialog: Dialog, { command, all = [] }: DialogTextOptions): string[] {
  const { id, runId, label, title, message } = dialog;
  const what = message === undefined ? title : `${title}: ${message}`;
  const { answers, example } = answersTo(dialog);
  const isShared = all.some((each) => each.label === label && each.runId !== runId);
  return [
    `"${visible(label)}" waits for a person: ${visible(what)} (${[id, ...answers].join("; ")})`,
    `  Next: ${command("answer", isShared ? id : label, example)}`,
  ];
}

/** What can be answered, in words, and one such answer. */
function answersTo({ method, options: [first, ...others] = [] }: Dialog): { answers: string[]; example: string } {
  if (method === "confirm") return { answers: ["yes or no"], example: "yes" };
  if (first === undefined) return { answers: [], example: "…" };
  const choices = [first, ...others].map((each) => JSON.stringify(visible(each)));
  return { answers: [`one of ${choices.join(", ")}, or no`], example: visible(first) };
}
