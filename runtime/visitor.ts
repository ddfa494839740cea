/**
 * What a program needs that looks into a herd which another one has open, and nothing of the engine: what a thin client
 * needs, with the whole interface of a herd over the socket. For the project's own adapters; programs have it from
 * `index.ts`.
 */
export * from "./client.ts";
export { connectHerd } from "./control/client.ts";
export { outcomeJson, parkedJson } from "./asks/seed-json.ts";
export { columnsOf, fit } from "./text/columns.ts";
