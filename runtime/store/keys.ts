import { createHash } from "node:crypto";

/**
 * The rows of a store. A letter names the kind, `!` separates the parts; ids hold neither `!` nor `/`.
 *
 * | row | key | what it holds |
 * | --- | --- | --- |
 * | meta | `m!name` | format and epoch |
 * | sequence | `s!slot` | the number of the batch that wrote the slot last |
 * | actor | `a!tree!path` | one actor's snapshot, without its children |
 * | request | `q!requestId` | an accepted task; never changes |
 * | outcome | `u!requestId` | how it ended |
 * | ask | `k!askId` | a question, and its answer once there is one |
 * | journal | `j!requestId!name` | what a function worker did and got |
 * | steer | `v!requestId!number` | what the owner said while the worker was at work |
 * | delivery | `d!owner!number` | an ask or a result that its owner has not acknowledged |
 * | order | `o!runId!orderId` | what a backend still has to do |
 * | launch | `w!runId` | how a worker in a process was launched, or is being |
 * | session | `n!sessionId!number` | an assignment of a session, or what a fork began with |
 * | lease | `x!session` | which run has a saved session, by its id or its path |
 * | label | `l!workspace!label` | which worker holds the label |
 * | caller id | `i!owner!id` | what an owner asked for under an id of its own |
 * | deadline | `e!requestId` | an assignment's clock |
 * | due | `t!time!kind!id` | what happens at a time |
 * | parked | `p!owner!requestId` | the questions of an assignment that its owner finds in its list |
 * | counted | `c!kind!id` | an entry that counts under a cap |
 * | inbox | `h!askId` | a question that waits for a person |
 * | visited | `r!owner!tree` | a tree of a run that a visit started for an owner |
 * | door | `y!name` | a saved door |
 * | schedule | `f!name` | when a schedule fires next, and its last run |
 * | fired | `g!door!delivery` | what a delivery of a webhook came to |
 * | run | `z!runId` | the record of a submitted run |
 * | submitted | `S!requestId` | which record an assignment ends |
 * | subject | `b!scope!key!owner` | an owner that is a subject with this key in this scope |
 */
export const keys = {
  meta: (name: string) => `m!${name}`,
  sequence: (slot: number) => `s!${String(slot).padStart(5, "0")}`,
  actor: (tree: string, path: string) => `a!${tree}!${path}`,
  request: (requestId: string) => `q!${requestId}`,
  outcome: (requestId: string) => `u!${requestId}`,
  ask: (askId: string) => `k!${askId}`,
  journal: (requestId: string, name: string) => `j!${requestId}!${name}`,
  steer: (requestId: string, number: string) => `v!${requestId}!${number}`,
  delivery: (owner: string, number: string) => `d!${owner}!${number}`,
  order: (runId: string, orderId: string) => `o!${runId}!${orderId}`,
  launch: (runId: string) => `w!${runId}`,
  session: (sessionId: string, number: string) => `n!${sessionId}!${number}`,
  lease: (kind: "id" | "path", session: string) => `x!${kind}:${hashed(session)}`,
  label: (workspace: string, label: string) => `l!${hashed(workspace)}!${label}`,
  callerId: (owner: string, id: string) => `i!${owner}!${hashed(id)}`,
  deadline: (requestId: string) => `e!${requestId}`,
  parked: (owner: string, requestId: string) => `p!${owner}!${requestId}`,
  counted: (kind: string, id: string) => `c!${kind}!${id}`,
  inbox: (askId: string) => `h!${askId}`,
  visited: (owner: string, tree: string) => `r!${owner}!${tree}`,
  door: (name: string) => `y!${name}`,
  schedule: (name: string) => `f!${name}`,
  fired: (door: string, delivery: string) => `g!${door}!${hashed(delivery)}`,
  run: (runId: string) => `z!${runId}`,
  submitted: (requestId: string) => `S!${requestId}`,
  scope: (scope: string) => `b!${hashed(scope)}!`,
  subject: (scope: string, name: string, value: string, owner: string) =>
    `b!${hashed(scope)}!${hashed(JSON.stringify([name, value]))}!${owner}`,
  due: (at: number, kind: string, id: string) => `t!${timeKey(at)}!${kind}!${id}`,
};

/** The bounds of all keys that begin with a prefix. */
export function prefixed(prefix: string): { gte: string; lt: string } {
  return { gte: prefix, lt: `${prefix}\u{10ffff}` };
}

/** Numbers every question of an assignment, so that all of them are one range of keys. */
export function askIdOf(requestId: string, number: number): string {
  return `${requestId}.${String(number).padStart(4, "0")}`;
}

/** The range of an assignment's questions. */
export function asksOf(requestId: string): { gte: string; lt: string } {
  return prefixed(`k!${requestId}.`);
}

const remembered = new Map<string, string>();
const REMEMBERED = 4_096;

/** Anything as a key part of fixed length: people's ids may hold any character and be long. */
export function hashed(text: string): string {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(text).digest("base64url").slice(0, 22);
  if (text.length <= 1_024) {
    if (remembered.size >= REMEMBERED) remembered.clear();
    remembered.set(text, hash);
  }
  return hash;
}

/** UTC milliseconds so that keys order as times do. */
export function timeKey(at: number): string {
  return String(Math.max(0, Math.trunc(at))).padStart(15, "0");
}
