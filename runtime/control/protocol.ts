import { z } from "zod";
import type { BackupReceipt, OwnerRow } from "../api.ts";
import type { ParkedEntry } from "../asks/entry.ts";
import type { InboxEntry } from "../asks/people.ts";
import type { ReplyReceipt } from "../asks/question.ts";
import type { VisitOutcome } from "../asks/visit-shapes.ts";
import type { DoorKind, DoorRun } from "../doors/shapes.ts";
import { messageLimits } from "../evidence/limits.ts";
import type { CloseReceipt, Listing, SteerReceipt } from "../subagent/shapes.ts";

const text = z.string().min(1);
const Subject = z.strictObject({ scope: text, keys: z.record(z.string(), z.string()) });
const Owner = z.strictObject({
  id: text,
  scope: text.optional(),
  keys: z.record(z.string(), z.string()).optional(),
});

/** Whom a call acts for, and where relative files are looked up and workers work: the client's own directory. */
const by = { owner: Owner, workspace: text.optional(), cwd: text, limits: messageLimits.optional() };
const request = z.unknown();
const requestId = text;

/** What a client can call, by method, and what each call says. `hello` comes before all of them. */
export const Says = {
  /** `call`: see `ToolCall`. */
  "owner/subagent": z.strictObject({
    ...by,
    request,
    call: z.strictObject({ replyId: text, assignId: text, steerId: text, askId: text }).partial().optional(),
  }),
  "owner/assign": z.strictObject({ ...by, request }),
  "owner/steer": z.strictObject({ ...by, request }),
  "owner/reply": z.strictObject({ ...by, request }),
  "owner/close": z.strictObject({ ...by, request }),
  "owner/list": z.strictObject(by),
  "owner/parked": z.strictObject(by),
  "owner/parkedTool": z.strictObject({
    ...by,
    name: z.enum(["list_parked", "resume_parked", "cancel_parked"]),
    input: request,
  }),
  /** Makes this client the owner's receiver; it is called with `receiver/question` and `receiver/result`. */
  "owner/attach": z.strictObject({
    ...by,
    receiver: z.int(),
    hearsQuestions: z.boolean(),
    hearsResults: z.boolean(),
    replace: z.boolean(),
  }),
  /** The same for every owner of a scope that has no receiver of its own. */
  "herd/receive": z.strictObject({
    scope: text,
    receiver: z.int(),
    hearsQuestions: z.boolean(),
    hearsResults: z.boolean(),
  }),
  "owner/detach": z.strictObject({ receiver: z.int() }),
  "question/reply": z.strictObject({ askId: text, cwd: text, answer: z.json(), options: z.looseObject({}) }),
  "herd/owners": z.strictObject({}),
  "herd/parked": z.strictObject({ subject: Subject }),
  "herd/take": z.strictObject({ subject: Subject, id: text.optional() }),
  "herd/visit": z.strictObject({ cwd: text, request }),
  "herd/door": z.strictObject({ request }),
  "herd/doors": z.strictObject({}),
  /** A saved door by its name, or one that is made for this visit alone. */
  "door/visit": z.strictObject({
    name: text.optional(),
    request: request.optional(),
    input: z.json(),
    waits: z.boolean().optional(),
  }),
  "door/fetch": z.strictObject({
    name: text,
    method: text,
    headers: z.array(z.tuple([z.string(), z.string()])),
    /** Base64. */
    body: z.string(),
  }),
  "door/remove": z.strictObject({ name: text }),
  "herd/nextDue": z.strictObject({}),
  "herd/run": z.strictObject({ id: text }),
  "herd/runs": z.strictObject({}),
  "inbox/list": z.strictObject({}),
  "inbox/answer": z.strictObject({ request }),
  "herd/assignment": z.strictObject({ requestId }),
  "herd/tick": z.strictObject({ now: z.iso.datetime().optional() }),
  "herd/backup": z.strictObject({ directory: text }),
  "herd/listen": z.strictObject({ event: text }),
  "herd/unlisten": z.strictObject({ event: text }),
  "assignment/status": z.strictObject({ requestId }),
  /** `seen` names the questions that this handle has given already. */
  "assignment/next": z.strictObject({ requestId, seen: z.array(text) }),
  "assignment/result": z.strictObject({ requestId }),
  /** The client's program has the result: it is acknowledged unless a receiver does that. */
  "assignment/returned": z.strictObject({ requestId, deliveryId: text }),
} satisfies Record<string, z.ZodType>;

export type Method = keyof typeof Says;
export type Said<M extends Method> = z.infer<(typeof Says)[M]>;
/** Whom a call acts for. */
export type By = Said<"owner/list">;

/** What each call hears. Questions and results are as in the typed API, without what only a process can have. */
export interface Hears {
  "owner/subagent": unknown;
  "owner/assign": HandleWire;
  "owner/steer": SteerReceipt;
  "owner/reply": ReplyReceipt;
  "owner/close": CloseReceipt;
  "owner/list": Listing;
  "owner/parked": ParkedEntry[];
  "owner/parkedTool": unknown;
  "owner/attach": null;
  "herd/receive": null;
  "owner/detach": null;
  "question/reply": ReplyReceipt;
  "herd/owners": OwnerRow[];
  "herd/parked": ParkedEntry[];
  /** Null when nothing waits. */
  "herd/take": unknown;
  "herd/visit": VisitOutcome;
  "herd/door": DoorWire;
  "herd/doors": DoorWire[];
  "door/visit": unknown;
  "door/fetch": { status: number; headers: [string, string][]; body: string };
  "door/remove": null;
  /** ISO 8601, or null when nothing is due. */
  "herd/nextDue": string | null;
  "herd/run": DoorRun;
  "herd/runs": DoorRun[];
  "inbox/list": InboxEntry[];
  "inbox/answer": ReplyReceipt;
  "herd/assignment": HandleWire;
  "herd/tick": null;
  "herd/backup": BackupReceipt;
  "herd/listen": null;
  "herd/unlisten": null;
  "assignment/status": unknown;
  "assignment/next": unknown;
  "assignment/result": unknown;
  "assignment/returned": null;
}

/** What a client says first. */
export const Hello = z.looseObject({
  protocol: z.int(),
  /** The client's process, for messages. */
  pid: z.int(),
  /** What it may do, as the herd's program gave it out. */
  token: z.string().optional(),
  /** The version of its package. */
  version: z.string().optional(),
});

/** A door as it is named on the wire. */
export interface DoorWire {
  name?: string;
  kind: DoorKind;
  url?: string;
}

/** A handle as it is named on the wire. */
export interface HandleWire {
  requestId: string;
  label: string;
  sessionId: string;
}
