import type { AnswerFormat, Evidence, Json, Usage } from "../../machines/vocabulary.ts";
import type { Question, ReplyReceipt } from "../asks/question.ts";
import type { ParkedToolName } from "../asks/visit-shapes.ts";
import type { Assignment } from "../deliveries/assignment.ts";
import type {
  AskOwnerAnswer,
  AssignRequest,
  CloseReceipt,
  Listing,
  SteerReceipt,
  ToolRefusal,
} from "../subagent/shapes.ts";

/** What a worker asks its owner. */
export interface AskOwnerRequest {
  /** Non-blank text. */
  question: string;
  /** Evidence, relative to the worker's `cwd`. */
  files?: string[];
  /** Names the question in the journal, so that its text may be reworded while it is open. */
  name?: string;
  /** `false`: be refused at once instead of waiting for children, another question or an unread request. */
  wait?: boolean;
}

/** What a worker asks whoever called it, or a person. */
export interface ParkedAskRequest {
  /** Text of at most 8,192 characters; may be left out when there is a `payload`. */
  question?: string;
  /** What the answer must be; `text` unless set. */
  answerFormat?: AnswerFormat;
  /** JSON that the answering side reads beside or instead of the question. Not for a person. */
  payload?: Json;
  /** Of `select` the values to choose from; of `text` suggestions. */
  options?: Json[];
  /** JSON Schema: of a `form` required, of a `free` answer optional. */
  schema?: object;
  /** Several asks under one group may be open at once; the run goes on when the last of them is answered. */
  groupId?: string;
  /** When it is given up; 30 days from now unless set (`callerAskTtl`). A string needs its zone. */
  expiresAt?: Date | string;
  /** Then: `kill` (the default) tears the run down with what waits for it, `resume` answers with `EXPIRED`. */
  onExpiry?: "kill" | "resume";
  /** `caller`, unless set: the ask parks on the subject of the outermost run. `user`: it goes to `herd.inbox`. */
  to?: "caller" | "user";
  /** Names it in the journal, so that its text may be reworded while it is open. */
  name?: string;
  /** `false`: be refused at once instead of waiting for children, another question or an unread request. */
  wait?: boolean;
}

/** What a worker's function is given: its task's surroundings, and everything that is kept over a crash. */
export interface Worker {
  /**
   * Asks the direct owner and resolves to the raw answer.
   *
   * What can happen twice: nothing; asked once, answered once, whatever dies in between. Waits while the only
   * reasons against are direct-child work, an open question or an unacknowledged request, first come first asked.
   * @throws HerdError with the reason, for every other reason or with `wait: false`.
   */
  askOwner(request: AskOwnerRequest): Promise<string>;
  /**
   * Parks a question on the subject of the outermost run and resolves to the answer, checked by its format: text to a
   * string, `confirm` to a boolean, `select` to the chosen value, `form` to the object, `free` to any JSON.
   *
   * What can happen twice: nothing; asked once, answered once, whatever dies in between. Several of one `groupId` may be
   * asked at once; others wait their turn, and while any is open every other call of the worker waits.
   * @throws HerdError `invalid_field` before anything is stored, `limit` when there are too many, or the reason why not.
   */
  ask(request: ParkedAskRequest): Promise<any>;
  /**
   * Starts a child and resolves to its handle. `onQuestion` answers what the child asks; without it reading the
   * result of an asking child rejects with `question_waiting`.
   *
   * What can happen twice: nothing; a re-run gets the same child.
   */
  assign(
    request: AssignRequest<string> & { name?: string; onQuestion?: (question: Question) => unknown },
  ): Promise<Assignment>;
  /** Asks a child's question on the worker's own edge and hands the answer down. */
  escalate(question: Question): Promise<void>;
  /**
   * Runs `fn` and journals what it returns (JSON up to 1 MiB); a re-run gets the value instead of running it.
   *
   * What can happen twice: `fn` itself, when the process ends between its effect and the journal. Give it an
   * idempotency key of its own. A throw is not journalled.
   * @param options.attempts how often a throwing `fn` is tried in all; 1 unless set.
   * @param options.backoffMs the pause after the first failure, doubling; 250 ms unless set.
   */
  step<T extends Json | void>(
    name: string,
    fn: () => T | Promise<T>,
    options?: { attempts?: number; backoffMs?: number },
  ): Promise<T>;
  /** What the owner sent since the last call. A re-run gets all of it again, under the same ids. */
  steers(): { id: string; message: string; files: Evidence[] }[];
  /** Progress for whoever watches: coalesced and not durable. Usage adds up into the result. */
  report(note: string, usage?: Usage): void;
  /**
   * The model-facing `ask_owner`: snake_case JSON. `batch` names all tool calls of the turn.
   * @throws StopReason alone, while the herd closes: the question, and the run, go on at the next start.
   */
  askOwnerTool(input: unknown, options: { batch: string[] }): Promise<AskOwnerAnswer | ToolRefusal>;
  /** The model-facing `subagent` for a worker that may delegate: snake_case JSON, nothing thrown. */
  subagent(input: unknown): Promise<any>;
  /**
   * One call of `list_parked`, `resume_parked` or `cancel_parked` on the subject of the outermost run: snake_case JSON,
   * nothing thrown.
   *
   * What can happen twice: nothing; a re-run gets what the first call came to.
   */
  parkedTool(name: ParkedToolName, input: unknown): Promise<any>;
  /** The handle of a worker of its own by the `request_id` that `subagent` gave, to await its result. */
  assignment(requestId: string, options?: { onQuestion?: (question: Question) => unknown }): Promise<Assignment>;
  /** Its workers and its agents as they are now: not journalled, so a re-run may see something else. */
  list(): Promise<Listing>;
  /** Journalled with its receipt; the child may hear it twice when the process dies in between. */
  steer(request: { label: string; message: string; files?: string[] }): Promise<SteerReceipt>;
  /**
   * Answers a child's question. By label it is journalled: in `onQuestion` use the question's own `reply`.
   *
   * What can happen twice: nothing. By `askId` a second reply is refused with `already_answered`, unless it has the
   * same `id`; by label a re-run gets the receipt of the first.
   */
  reply(
    request: ({ askId: string } | { label: string }) & { message: Json; files?: string[]; id?: string },
  ): Promise<ReplyReceipt>;
  /** Journalled with its receipt. */
  close(request: { label: string }): Promise<CloseReceipt>;
  /**
   * The assignment that this run is of. The same in every run of it, so it is what an idempotency key for the outside
   * world is made of.
   */
  readonly requestId: string;
  /** Where the worker works: the owner's, or its parent's, directory. The engine never changes the process's. */
  readonly cwd: string;
  /** The evidence given with the task. */
  readonly files: Evidence[];
  /** What a visit or a door started it with, if it was given any. */
  readonly input?: Json;
  /** What a visit gave beside the input: the keys that its definition declares, or fewer. */
  readonly extras: Readonly<Record<string, Json>>;
  /** Lines of an earlier assignment that this one continues. */
  readonly history: readonly object[];
  /**
   * Aborts when this run must stop; `reason.code` is `closed`, `deadline_exceeded`, `herd_closing`, `parked` or
   * `fenced`. After the last three the work is not over: it goes on at the next start or answer.
   */
  readonly signal: AbortSignal;
}

/** Why a worker's signal aborted. */
export class StopReason extends Error {
  override readonly name = "StopReason";
  readonly code: "closed" | "deadline_exceeded" | "herd_closing" | "parked" | "fenced";

  constructor(code: StopReason["code"], message: string) {
    super(message);
    this.code = code;
  }
}
