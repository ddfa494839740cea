import { ErrorCodes, ResponseError } from "vscode-jsonrpc/node";
import { HerdError, internalFailure } from "../errors.ts";
import { HERD_ERROR, MAX_MESSAGE_BYTES } from "./wire.ts";

/** An error as it is answered: always one that the other side can raise again as a `HerdError`. */
export function toWire(method: string, error: unknown): ResponseError<Record<string, unknown>> {
  const failure = error instanceof HerdError ? error : internalFailure(method, error);
  return new ResponseError(HERD_ERROR, failure.message, failure.toJSON());
}

/** An error as the caller gets it. */
export function fromWire(error: unknown, lost: () => HerdError): unknown {
  if (!(error instanceof ResponseError)) return lost();
  if (error.code === HERD_ERROR) return HerdError.from(error.data as Record<string, unknown>);
  if (error.code === ErrorCodes.MethodNotFound) return unknownMethod(error.message);
  return lost();
}

/** @throws HerdError `message_too_large` before anything is sent. */
export function checkSize(operation: string, value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  // The rest of the message is small.
  if (bytes > MAX_MESSAGE_BYTES - 1_024) throw tooLarge(operation, bytes);
}

/** What is too long for the socket. Files are the way for long texts. */
export function tooLarge(operation: string, bytes: number): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "message_too_large",
    message: `${operation}: ${bytes} bytes are more than the control socket takes (${MAX_MESSAGE_BYTES})`,
    nextAction: "hand long texts over in files, and read long results from their resultPath",
    operation,
  });
}

/** The other process speaks another version of what is said over the socket. */
export function otherVersion(pid: number | undefined, theirs: unknown, ours: number): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "control_version",
    message:
      `Process ${pid ?? "?"} speaks version ${String(theirs)} of the control protocol, this one version ${ours}, ` +
      "so they run different versions of pi-herd",
    nextAction: "update pi-herd in the older of the two, then start that process again",
    operation: "hello",
  });
}

/** The first message has to be `hello`. */
export function noHello(method: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "control_version",
    message: `The first message on the control socket was ${JSON.stringify(method)} instead of "hello"`,
    nextAction: "use connectHerd, which says hello with its protocol version",
    operation: "hello",
  });
}

/** As many clients are connected as there may be. */
export function tooManyClients(): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "overloaded",
    message: "As many clients are connected to this herd as there may be",
    nextAction: "close connections that are not needed, and connect once for a whole program",
    operation: "hello",
    retryAfterMs: 1_000,
  });
}

function unknownMethod(message: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "control_version",
    message: `The other process does not know this call: ${message}`,
    nextAction: "update pi-herd in the older of the two, then start that process again",
    operation: "call",
  });
}

/** There is nobody to connect to. */
export function notRunning(directory: string, why: string): HerdError {
  return notOpen(`No process has the herd in ${directory} open: ${why}`);
}

/** Somebody listens and says nothing. @param pid the process that has the store, where that is known. */
export function silent(directory: string, pid: number | undefined): HerdError {
  const who = pid === undefined ? "The process" : `Process ${pid}`;
  const details = { hangs: true, ...(pid !== undefined && { pid }) };
  return notOpen(`${who} has the herd in ${directory} open and does not answer`, details);
}

function notOpen(message: string, details?: Record<string, unknown>): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "not_running",
    message,
    nextAction: "start the program that runs its workers, or open it yourself with createHerd",
    operation: "connectHerd",
    ...(details && { details }),
  });
}

/** The connection is gone. What was told is on disk; what was under way may or may not be. */
export function connectionLost(operation: string, directory: string, why: string): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "connection_lost",
    message:
      `The connection to the herd in ${directory} is gone (${why}). What was acknowledged is on disk; ` +
      "whether this call was carried out is not known",
    nextAction: "connect again and look; calls that carry an id of yours can simply be made again",
    operation,
  });
}

/** A receiver is not there any more, or another one has taken over. */
export function detached(): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "detached",
    message: "The receiver was detached or replaced meanwhile",
    nextAction: "nothing: the delivery goes to the next one",
    operation: "receive",
  });
}

/** The program closed its end. */
export function disconnected(operation: string): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "herd_closed",
    message: "The connection to the herd is closed",
    nextAction: "connect again with connectHerd",
    operation,
  });
}
