import { z } from "zod";
import type { Json } from "../../machines/vocabulary.ts";
import { invalidRequest, withoutUndefined } from "../errors.ts";
import { ownerRef, type Subject } from "../owners.ts";
import { json, parseRequest } from "../request.ts";
import { CONTRACT_FIELDS, type ContractField, type DoorContract } from "./contract.ts";
import type { DoorKind, DoorRequest } from "./shapes.ts";

const OPERATION = "door";

const nonBlank = z.string().regex(/\S/, "must not be blank");
const name = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "must match ^[a-z0-9][a-z0-9_-]{0,63}$");
const Target = z.strictObject({ agent: nonBlank, task: nonBlank.optional() });
const common = {
  subject: z.custom<Subject | string>((value) => typeof value === "string" || isObject(value), {
    error: "must be { scope, keys } or a jq program",
  }),
  target: z
    .custom<string | object>((value) => typeof value === "string" || isObject(value), {
      error: "must be an agent, or { agent, task }",
    })
    .transform((target, context): DoorDocument["target"] => {
      const parsed = Target.safeParse(typeof target === "string" ? { agent: target } : target);
      if (parsed.success) return parsed.data as DoorDocument["target"];
      for (const { path, message } of parsed.error.issues) context.addIssue(`${[...path, message].join(": ")}`);
      return z.NEVER;
    }),
  defaults: json.optional(),
  contract: z.custom<DoorContract>(isObject, "must be an object of expressions").optional(),
};

const KINDS = {
  program: z.strictObject({ ...common, kind: z.literal("program").optional(), name: name.optional() }),
  route: z.strictObject({ ...common, kind: z.literal("route"), name }),
  submit: z.strictObject({ ...common, kind: z.literal("submit"), name }),
  webhook: z.strictObject({
    ...common,
    kind: z.literal("webhook"),
    name,
    secret: z.string(),
    port: z.int().min(0).max(65_535).optional(),
  }),
  schedule: z.strictObject({
    ...common,
    kind: z.literal("schedule"),
    name,
    cron: nonBlank,
    timezone: nonBlank.optional(),
    overlap: z.enum(["skip", "start"], "must be skip or start").optional(),
  }),
} satisfies Record<DoorKind, z.ZodType>;

/** A door as this process has it: its expressions may be functions. */
export interface DoorDocument {
  name?: string;
  kind: DoorKind;
  subject: Subject | string;
  target: { agent: string; task?: string };
  defaults?: Json;
  contract: DoorContract;
  secret?: string;
  port?: number;
  cron?: string;
  timezone?: string;
  overlap?: "skip" | "start";
}

/** A saved door, with the names of the public contract. An expression that is a function stands as `{ function: true }`. */
export type SavedDoor = Omit<DoorDocument, "contract"> & { contract: Record<string, string | { function: true }> };

/**
 * Reads what a door is to be.
 * @throws HerdError `unknown_field`, `invalid_field` or `bad_owner`, naming the field and the rule.
 */
export function doorDocument(request: unknown): DoorDocument {
  const kind = ((request ?? {}) as { kind?: unknown }).kind ?? "program";
  const schema = typeof kind === "string" && Object.hasOwn(KINDS, kind) ? KINDS[kind as DoorKind] : undefined;
  if (schema === undefined) {
    throw invalidRequest(
      OPERATION,
      "invalid_field",
      `kind: must be one of ${Object.keys(KINDS).join(", ")}`,
      "correct kind",
      { field: "kind" },
    );
  }
  const { contract = {}, ...fields } = parseRequest(OPERATION, schema as z.ZodType<DoorRequest>, request);
  if (typeof fields.subject !== "string") ownerRef(fields.subject);
  return withoutUndefined({ ...fields, kind: kind as DoorKind, contract: withoutUndefined(contract) }) as DoorDocument;
}

const SAVED_FIELDS: Record<ContractField, string> = {
  cancelExpr: "cancel_expr",
  resumeExpr: "resume_expr",
  startExpr: "start_expr",
  extrasExpr: "extras_expr",
};

/** The door as it is stored. */
export function savedDoor({ contract, ...door }: DoorDocument): SavedDoor {
  const saved: SavedDoor["contract"] = {};
  for (const field of CONTRACT_FIELDS) {
    const expression = contract[field];
    if (expression === undefined) continue;
    saved[SAVED_FIELDS[field]] = typeof expression === "string" ? expression : { function: true };
  }
  return { ...door, contract: saved };
}

/** A stored door; undefined in place of the contract while functions of it have to be registered again. */
export function storedDoor({ contract, ...door }: SavedDoor): Omit<DoorDocument, "contract"> & {
  contract: DoorContract | undefined;
} {
  const expressions: DoorContract = {};
  for (const field of CONTRACT_FIELDS) {
    const expression = contract[SAVED_FIELDS[field]];
    if (typeof expression === "object") return { ...door, contract: undefined };
    if (expression !== undefined) expressions[field] = expression;
  }
  return { ...door, contract: expressions };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
