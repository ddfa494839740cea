import { invalidRequest, type HerdError } from "./errors.ts";
import type { OwnerRef, RequestRecord } from "./kernel/records.ts";
import { hashed } from "./store/keys.ts";

/** What a run is about, for owners that are not one person or program: a scope and keys in it. */
export interface Subject {
  scope: string;
  keys: Record<string, string>;
}

/**
 * The reference of an owner id (1 to 512 characters) or a subject. The id `"x"` and the subject
 * `{ scope: "owner", keys: { id: "x" } }` are the same owner.
 * @throws HerdError `invalid_request` naming the field and the rule.
 */
export function ownerRef(owner: string | Subject): OwnerRef {
  if (typeof owner === "string") return { id: checkedId(owner) };
  const { scope, keys } = owner;
  if (typeof scope !== "string" || scope.trim() === "") throw badOwner("scope", "a subject needs a non-blank scope");
  const names = Object.keys(keys ?? {}).toSorted();
  if (names.length === 0) throw badOwner("keys", "a subject needs at least one key");
  if (scope === "owner" && names.length === 1 && names[0] === "id") return { id: checkedId(keys["id"] as string) };
  const query = names.map((name) => `${encodeURIComponent(name)}=${encodeURIComponent(String(keys[name]))}`).join("&");
  return { id: `${encodeURIComponent(scope)}?${query}`, scope, keys: { ...keys } };
}

/** The subject of any owner: that of an owner id spells it. */
export function subjectOf({ id, scope, keys = {} }: OwnerRef): Subject {
  return scope === undefined ? { scope: "owner", keys: { id } } : { scope, keys };
}

/** Whether one owner sees what waits for another: it is the same, or a subject of the same scope that shares a key. */
export function sees(viewer: OwnerRef, owner: OwnerRef): boolean {
  if (viewer.scope === undefined || owner.scope === undefined) return ownerKeyOf(viewer) === ownerKeyOf(owner);
  const { keys: own = {} } = viewer;
  return viewer.scope === owner.scope && Object.entries(owner.keys ?? {}).some(([name, value]) => own[name] === value);
}

/** A scope as `receive` takes it. @throws HerdError `bad_owner`. */
export function checkedScope(scope: unknown): string {
  if (typeof scope !== "string" || scope.trim() === "") throw badOwner("scope", "a scope is a non-blank string");
  return scope;
}

/**
 * The key of an owner: what deliveries and parked entries are addressed to, and the id of the tree in which its assignments
 * live. Runs that a visit starts for it have trees of their own. An owner id never meets a subject that spells the same.
 */
export function ownerKeyOf(owner: OwnerRef): string {
  return hashed(`${owner.scope === undefined ? "id" : "subject"}:${owner.id}`);
}

/** Whom an assignment's own questions and its result are addressed to: a parent worker's run, or an owner. */
export function addressOf({ owner, parentRunId }: Pick<RequestRecord, "owner" | "parentRunId">): string {
  return parentRunId ?? ownerKeyOf(owner);
}

function checkedId(id: string): string {
  if (typeof id !== "string" || id.trim() === "" || id.length > 512) {
    throw badOwner("id", "an owner id is a non-blank string of at most 512 characters");
  }
  return id;
}

/** What an owner is named or set with is wrong. */
export function badOwner(field: string, rule: string): HerdError {
  return invalidRequest("owner", "bad_owner", `The owner's ${field} is not valid: ${rule}`, `correct ${field}`, {
    field,
    rule,
  });
}
