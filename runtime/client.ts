/**
 * What a thin client needs of the control socket, and nothing of the engine: it is loaded in a tenth of the time. For the
 * project's own adapters; programs use `connectHerd`.
 */
export { Connection, type CallOptions } from "./control/connection.ts";
export { HerdError, messageOf } from "./errors.ts";
export { Repeats } from "./repeats.ts";
export { tools, type ToolDefinition } from "./subagent/tool-definitions.ts";
export { toolText } from "./subagent/text.ts";
export { isAlive, readHolder } from "./store/holder.ts";
export { visible } from "./text/safe.ts";
