import { HerdError } from "../../runtime/client.ts";

/**
 * A process that listens and does not answer is another thing for a person than none: it has the store, and it has to be
 * ended before anything goes on.
 * @returns what is to be said of it; undefined when the error is about something else.
 */
export function hanging(error: unknown, directory: string): HerdError | undefined {
  if (!(error instanceof HerdError) || error.reason !== "not_running" || error.details?.["hangs"] !== true)
    return undefined;
  const { pid } = error.details as { pid?: number };
  const named = pid === undefined ? "A process" : `Process ${pid}`;
  const end = pid === undefined ? "end it" : `end it with kill ${pid} or, where that does nothing, with kill -9 ${pid}`;
  return new HerdError({
    category: "worker_busy",
    reason: "not_answering",
    message: `${named} has the herd in ${directory} open and does not answer: it hangs, was stopped, or has too much to do`,
    nextAction: `wait a little, or ${end} and run the command again; nothing that was acknowledged is lost`,
    operation: "connect",
    details: { directory, ...(pid !== undefined && { pid }) },
    cause: error,
  });
}
