import { invalidRequest } from "./errors.ts";
import type { OwnerRef } from "./kernel/records.ts";
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

/** A scope as `receive` takes it. @throws HerdError `bad_owner`. */
export function checkedScope(scope: unknown): string {
  if (typeof scope !== "string" || scope.trim() === "") throw badOwner("scope", "a scope is a non-blank string");
  return scope;
}

/** The key of an owner's tree. An owner id never meets a subject that spells the same. */
export function treeIdOf(owner: OwnerRef): string {
  return hashed(`${owner.scope === undefined ? "id" : "subject"}:${owner.id}`);
}

function checkedId(id: string): string {
  if (typeof id !== "string" || id.trim() === "" || id.length > 512) {
    throw badOwner("id", "an owner id is a non-blank string of at most 512 characters");
  }
  return id;
}

function badOwner(field: string, rule: string) {
  return invalidRequest("owner", "bad_owner", `The owner's ${field} is not valid: ${rule}`, `correct ${field}`, {
    field,
    rule,
  });
}
