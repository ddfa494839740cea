/** What a host's clients say beside what every herd is told, and what they hear. */

/** How a root session would start Pi, which is how its workers are started. */
export interface PiCommand {
  /** The Node that runs Pi, absolute. */
  node: string;
  /** Pi's own program, absolute. */
  cli: string;
}

/** A dialog that an extension opened in a worker, as Pi describes it. */
export interface Dialog {
  /** Unique among those of this host. */
  id: string;
  runId: string;
  /** The worker's label. */
  label: string;
  method: "select" | "confirm" | "input" | "editor";
  title: string;
  message?: string;
  /** What can be chosen. */
  options?: string[];
  placeholder?: string;
  prefill?: string;
}

/** What a root session says of itself, once and whenever it changes: `root/here`. */
export interface RootSays {
  cwd: string;
  /** The user trusts the project in this folder. */
  trusted: boolean;
  /** What its workers start with unless their definition says otherwise. */
  model?: string;
  thinking?: string;
  pi: PiCommand;
  /** Its environment, which its workers get, as children of it would. */
  env: Record<string, string>;
  dialogs: "ask" | "deny";
  /** Dialogs can be shown to a person there. */
  hasUI: boolean;
  /** A session's file, for others to say how it is opened again. */
  sessionFile?: string;
}

/** Workers of another session that work in the same folder. */
export interface Elsewhere {
  session: string;
  sessionFile?: string;
  /** A Pi has that session open. */
  isOpen: boolean;
  labels: string[];
}

export interface RootHears {
  pid: number;
  version: string;
  elsewhere: Elsewhere[];
  /** The worker whose process has this very session, where one does. */
  worker?: string;
  /** Nobody was told yet that there is a background process. */
  isNews: boolean;
}

/** A worker of this session was closed, by whomever; its task ends without a result: `worker/closed`. */
export interface ClosedWorker {
  requestId: string;
  label: string;
  agent: string;
}

/** A worker has the session that is open here: `session/inUse`. */
export interface InUse {
  label: string;
}

/** A worker that is at work gives no sign of life; its direct owner is told: `worker/silent`. */
export interface Silence {
  runId: string;
  requestId: string;
  label: string;
  agent: string;
  /** ISO 8601, UTC: with the other ids what tells one silence from the next. */
  lastActivityAt: string;
  inactiveMs: number;
}

/** What a worker's process says first: `worker/hello`. */
export interface WorkerSays {
  sessionId: string;
  sessionFile?: string;
  pid: number;
  model?: string;
  thinking?: string;
  /** Why its model cannot be called, where that is known. */
  problem?: string;
}

/** What a worker's process tells of its turns: `worker/report`. */
export type Told =
  | { type: "turn.started" | "turn.ended" | "activity" }
  /** Its turn waits for a person; `turn.started` ends that. */
  | { type: "blocked"; diagnostic: string }
  | { type: "delivered"; orderId: string }
  | { type: "settled"; outcome: ToldOutcome };

export interface WorkerTells {
  told: Told;
  /** The assignment that it is about. */
  requestId?: string;
  /** The order that began the turn. */
  orderId?: string;
}

/** `worker/ask`: its model calls `ask_owner`. */
export interface WorkerAsks {
  /** Made again under the same id because its connection broke, it is the same call. */
  id: string;
  request: unknown;
  /** The names of all tool calls of that message. */
  batch: string[];
  requestId?: string;
}

/** `worker/subagent`: its model calls `subagent`; the same of its id. */
export interface WorkerDelegates {
  id: string;
  request: unknown;
}

/** How an assignment ended there. */
export type ToldOutcome = (
  | { status: "completed"; text: string }
  | { status: "failed"; error: { code: string; message: string } }
) & {
  usage?: { inputTokens?: number; outputTokens?: number; costUsd?: number };
  contextUsage?: { tokens: number; contextWindow: number; percent: number | null };
};

/** What a worker's process is told: `worker/order`. */
export interface ToldOrder {
  orderId: string;
  kind: "task" | "answer" | "resume" | "steer" | "question" | "result";
  /** What its model reads. */
  text: string;
  requestId?: string;
  askId?: string;
  /** Of a question: whose. */
  label?: string;
  /** Of `resume`, in case that its session does not hold it: the task, and the answer to the last question. */
  task?: string;
  answer?: { askId: string; text: string };
}

/** What a host says of itself: `host/status`. */
export interface HostStatus {
  pid: number;
  version: string;
  directory: string;
  /** ISO 8601, UTC. */
  since: string;
  /** Connections, this one included. */
  clients: number;
  /** Pi sessions that are open. */
  roots: number;
  /** Worker processes that live. */
  workers: number;
  dialogs: Dialog[];
  /** A newer version waits until no turn runs. */
  replacing: boolean;
}
