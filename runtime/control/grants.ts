import { invalidRequest, type HerdError } from "../errors.ts";

/**
 * What a client of the control socket may do: everything, as the person whose herd it is; act as one owner and nobody
 * else; read; or only call what the herd's program itself offers (`ControlOptions.methods`).
 */
export type Grant =
  | { role: "person" }
  | { role: "owner"; id: string }
  | { role: "observer" }
  /** `subject` is for the program: whom the client stands for. */
  | { role: "guest"; subject: string };

/** A client that was let in, as the herd's program sees it. */
export interface ControlClient {
  readonly grant: Grant;
  /** The client's process, as it says. */
  readonly pid: number;
  /** The version of the client's package, as it says. */
  readonly version: string | undefined;
  /** Aborted when the connection is gone. */
  readonly gone: AbortSignal;
  /** Calls the client. Rejects with what it answered, or when it is gone. */
  call(method: string, says: object): Promise<unknown>;
  /** Tells the client, without an answer. */
  tell(method: string, says: object): void;
  /** Hangs up, once what was answered is out. */
  close(): void;
}

/** Who may use the control socket of a herd, and what its program offers there besides. */
export interface ControlOptions {
  /**
   * What a client may do, by the token that it shows; everything unless set. One that speaks another version of the
   * protocol is asked about too, and refused whatever this says.
   * @throws HerdError why it is not let in.
   */
  admit?(token: string | undefined, client: { pid: number; version: string | undefined }): Grant;
  /** What clients of this user show unless they are given another token: it lies beside the address, for nobody else. */
  token?: string;
  /** Methods beside those of every herd. What one returns is the answer; what it throws is told. */
  methods?: Readonly<Record<string, (says: unknown, client: ControlClient) => unknown>>;
  /** Told of every client that was let in. */
  connected?(client: ControlClient): void;
}

/** What may be read without acting for anybody. */
const READING = new Set([
  "owner/list",
  "owner/parked",
  "herd/owners",
  "herd/parked",
  "herd/doors",
  "herd/nextDue",
  "herd/run",
  "herd/runs",
  "inbox/list",
  "herd/assignment",
  "assignment/status",
  "herd/listen",
  "herd/unlisten",
]);

/** What names the owner that it is done for. */
const OWN = /^owner\//;

interface Says {
  owner?: { id: string; scope?: string | undefined };
}

/** @throws HerdError `not_granted` before anything is done. */
export function checkGrant(grant: Grant, method: string, says: unknown): void {
  switch (grant.role) {
    case "person":
      return;
    case "observer":
      if (READING.has(method)) return;
      throw notGranted(method, "an observer, which only reads");
    case "owner": {
      if (!OWN.test(method) && method !== "question/reply") {
        throw notGranted(method, `the owner ${JSON.stringify(grant.id)}, which has its own workers and nothing else`);
      }
      const { owner } = says as Says;
      if (owner === undefined || (owner.id === grant.id && owner.scope === undefined)) return;
      throw notGranted(method, `the owner ${JSON.stringify(grant.id)} and not of ${JSON.stringify(owner.id)}`);
    }
    case "guest":
      throw notGranted(method, "a guest, which only calls what this herd's program offers it");
  }
}

function notGranted(method: string, whose: string): HerdError {
  return invalidRequest(
    method,
    "not_granted",
    `${method} is not for this client: its token is that of ${whose}`,
    "use the herd command, or connect with the token that this call needs",
  );
}
