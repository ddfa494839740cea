import { dialogText } from "../../host/dialog-text.ts";
import { herdCommand, hostCommand, quoted } from "../../host/herd-command.ts";
import type { Dialog, Elsewhere } from "../../host/shapes.ts";

/** What a session tells its person. Whatever is to be pasted has white space or nothing after it. */

/** There is a background process now. @param directory its folder. */
export function news(pid: number, directory: string): string {
  return (
    `A small background process (${pid}) keeps questions and workers alive, also when this session is closed. ` +
    `It leaves by itself when nobody needs it. To end it: ${hostCommand(directory, ["stop"])}`
  );
}

/** A session without a screen ends, and the background process does not say what is left. @param file the session's. */
export function noAnswer(pid: number, file: string | undefined): string {
  const again = file === undefined ? "the next session of Pi" : `pi --session ${quoted(file)}`;
  return (
    `The background process (${pid}) does not answer, so it is not known what its workers are at; nothing of them is lost. ` +
    `Next: kill -9 ${pid} ends it, and ${again} goes on with them.`
  );
}

/** An extension asks a person in a worker, and nobody can be shown that here. */
export function dialogWaits(dialog: Dialog, directory: string): string {
  return dialogText(dialog, { command: (...words) => hostCommand(directory, words) }).join("\n");
}

/** A worker has the session that is opened here. */
export function inUse(worker: string): string {
  return (
    `The worker "${worker}" has this session open, and both would write into its file. ` +
    "Leave this one, and come back when its work is over or it is closed."
  );
}

/** Workers of another session work in the same folder. */
export function others({ session, sessionFile, isOpen, labels }: Elsewhere, directory: string): string {
  const close = herdCommand(["close", labels[0] ?? "", "--owner", session, "--directory", directory]);
  return [
    `Workers of another session work in this folder: ${labels.join(", ")}.`,
    ...(isOpen ? ["That session is open in another Pi."] : []),
    ...(isOpen ? [] : [`To reach them: pi --session ${quoted(sessionFile ?? session)}`]),
    `To close one: ${close}`,
  ].join("\n");
}
