/** `pi-herd`: assign a task, answer its questions, get exactly one result, whatever dies in between. */
export { createHerd } from "./herd.ts";
export type { BackupReceipt, Herd, HerdStatus, Owner, OwnerOptions, OwnerRow } from "./api.ts";
export { connectHerd } from "./control/client.ts";
export type { ConnectOptions } from "./control/client.ts";
export type { ControlClient, ControlOptions, Grant } from "./control/grants.ts";
export type { HerdOptions } from "./options.ts";
export { verifyStore } from "./upkeep/verify.ts";
export type { Verification } from "./upkeep/verify.ts";
export type { Problem } from "./upkeep/inspection.ts";
export { HerdError } from "./errors.ts";
export type { ErrorCategory, HerdErrorOptions } from "./errors.ts";
export type { HerdEventName, HerdEvents } from "./events.ts";
export type { Subject } from "./owners.ts";
export type { ParkedEntry } from "./asks/entry.ts";
export { EXPIRED } from "./asks/formats.ts";
export type { HerdInbox, InboxEntry, InboxEvents } from "./asks/people.ts";
export { outcomeJson, parkedJson } from "./asks/seed-json.ts";
export type { ParkedToolName, Suspended, VisitOutcome, VisitRequest, VisitStart } from "./asks/visit-shapes.ts";
export type { OwnerRef } from "./kernel/records.ts";
export type { Question, ReplyReceipt } from "./asks/question.ts";
export type { Result } from "./deliveries/result.ts";
export type { ContractExpression, DoorContract } from "./doors/contract.ts";
export type {
  Door,
  DoorCommon,
  DoorKind,
  DoorRequest,
  DoorRun,
  DoorRunStatus,
  DoorVisitOptions,
  RouteOutcome,
} from "./doors/shapes.ts";
export { signDelivery } from "./doors/signature.ts";
export type { WebhookDelivery } from "./doors/signature.ts";
export type { Receiver } from "./deliveries/desk.ts";
export type { Assignment, AssignmentStatus, OwnerEvent } from "./deliveries/assignment.ts";
export type { AgentDefinition } from "./functions/agent.ts";
export type { DefinitionSource, DefinitionSources, Finding, Roster } from "./definitions/roster.ts";
export type { MessageLimits } from "./evidence/limits.ts";
export { bundledFolder, readDefinitions } from "./definitions/roster.ts";
export type { AgentRow, Definition, DefinitionRow, LaunchPolicy, Thinking } from "./definitions/definition.ts";
export { writeOverride } from "./definitions/override.ts";
export type { OverrideChange } from "./definitions/override.ts";
export type {
  Backend,
  BackendEvent,
  BackendFactory,
  BackendHost,
  Identity,
  Launch,
  Order,
  OwnersAnswer,
  Stage,
  StartFailure,
} from "./backend.ts";
export { orderText } from "./backends/order-text.ts";
export { StopReason } from "./functions/worker.ts";
export type { AskOwnerRequest, ParkedAskRequest, Worker } from "./functions/worker.ts";
export { tools } from "./subagent/tool-definitions.ts";
export type { ToolDefinition } from "./subagent/tool-definitions.ts";
export type { ToolCall } from "./subagent/shapes.ts";
export { toolText } from "./subagent/text.ts";
export type { ToolTextOptions } from "./subagent/text.ts";
export type {
  AskOwnerAnswer,
  AssignRequest,
  CloseReceipt,
  Listing,
  StartOptions,
  SteerReceipt,
  ToolRefusal,
  WorkerRow,
} from "./subagent/shapes.ts";
export type { AnswerFormat, ContextUsage, Evidence, Json, Outcome, Place, Usage } from "../machines/vocabulary.ts";
export type { Operation, Range, Row, Store } from "./store/store.ts";
export { levelStore } from "./store/level.ts";
export { columnsOf, fit } from "./text/columns.ts";
export { visible } from "./text/safe.ts";
