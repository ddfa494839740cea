import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Herd } from "../api.ts";
import { HerdError } from "../errors.ts";
import { z } from "zod";
import { parseRequest } from "../request.ts";

/** How often is looked for a herd that is to come, in milliseconds. */
const LOOK_EVERY_MS = 50;

/** Where the herd is, and who wants to know when it is gone. */
export interface ConnectOptions {
  /** The herd's folder; `.herd` in the working directory unless set. */
  directory?: string;
  /** How long to wait for a process that is about to open it, in milliseconds; 0. */
  waitForHerdMs?: number;
  /** What lets this program in; what the herd's folder holds for its user unless set. */
  token?: string;
  /**
   * Called once when the connection ends and nobody here closed it: receivers and listeners hear nothing more. Without
   * it that is a process warning, if there are any.
   */
  onDisconnect?: (error: HerdError) => void;
}

const Options = z.strictObject({
  directory: z.string().min(1).default(".herd"),
  waitForHerdMs: z.number().min(0).default(0),
  token: z.string().min(1).optional(),
  onDisconnect: z
    .custom<(error: HerdError) => void>((value) => typeof value === "function", "must be a function")
    .optional(),
});

/**
 * The herd that another process of this user has open, through its control socket. It has the same interface as one
 * of `createHerd`, and no agents of its own: what is assigned, the other process runs. `close()` ends the connection
 * only.
 *
 * What can happen twice: what it can there. A call whose connection is lost on the way may have been carried out:
 * give `assign` and `reply` an `id`, and make them again.
 * @throws HerdError `not_running` when no process has it open, or one that does not answer, `control_version` when that
 * runs another version, or why it does not let this program in.
 */
export async function connectHerd(options: ConnectOptions = {}): Promise<Herd> {
  const { directory, waitForHerdMs, onDisconnect, token } = parseRequest("connectHerd", Options, options);
  // Read when it is needed: most programs that import us open the store themselves.
  const [{ Connection }, { RemoteHerd }] = await Promise.all([import("./connection.ts"), import("./remote.ts")]);
  const until = Date.now() + waitForHerdMs;
  for (;;) {
    try {
      const connection = await Connection.open(resolve(directory), token === undefined ? {} : { token });
      return new RemoteHerd(connection, process.cwd(), onDisconnect);
    } catch (error) {
      const isToCome = error instanceof HerdError && error.reason === "not_running" && Date.now() < until;
      if (!isToCome) throw error;
      await pause(LOOK_EVERY_MS);
    }
  }
}
