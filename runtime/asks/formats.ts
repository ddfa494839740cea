import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { AnswerFormat, Json } from "../../machines/vocabulary.ts";
import { invalidRequest, messageOf, withoutUndefined, type HerdError } from "../errors.ts";
import { parseRequest } from "../request.ts";
import { visiblePart, visibleSchema } from "./form.ts";
import { brief, isObject, JSON_LIMIT, readJson, type Fault, type JsonObject } from "./json.ts";
import { compileSchema, type Check } from "./schema.ts";

/** What `worker.ask` resolves to when its deadline passed with `onExpiry: "resume"`. No answer may equal it. */
export const EXPIRED: { readonly "pi-herd:expired": true } = Object.freeze({ "pi-herd:expired": true });

const FORMATS = ["text", "confirm", "select", "form", "free"] as const satisfies AnswerFormat[];

/** The longest question, in characters. */
const QUESTION_LIMIT = 8192;

/** What an ask says, checked, with its defaults, in a copy of its own. What is unset is absent. */
export interface AskFields {
  /** Blank only beside a payload. */
  question: string;
  /** `text` unless it was given. */
  answerFormat: AnswerFormat;
  payload?: Json;
  /** With `select` the possible answers, with `text` suggestions. */
  options?: Json[];
  /** With `form` and `free`: what the answer must be. */
  schema?: JsonObject;
  groupId?: string;
  /** UTC milliseconds; may be past. */
  expiresAt?: number;
  /** `kill` unless it was given. */
  onExpiry: "kill" | "resume";
  /** `caller` unless it was given. */
  to: "caller" | "user";
  name?: string;
  /** `true` unless it was given. */
  wait: boolean;
}

const text = z.string("must be text");
const shortText = text.regex(/\S/, "must not be blank").max(512, "must be at most 512 characters");

const json = z.unknown().transform((value, context): Json => {
  const read = readJson(value);
  if ("json" in read) return read.json;
  const { path, message } = read.fault;
  context.addIssue(path === undefined ? message : `${path} ${message}`);
  return z.NEVER;
});

const instant = z.unknown().transform((value, context): number => {
  const at = instantOf(value);
  if (at !== undefined) return at;
  context.addIssue("must be a valid Date, or an ISO 8601 date and time with Z or an offset");
  return z.NEVER;
});

/** What an ask may say. The rules between its fields are in `faultsOf`. */
const AskInput = z.strictObject({
  question: text.max(QUESTION_LIMIT, `must be at most ${QUESTION_LIMIT} characters`).default(""),
  answerFormat: z
    .enum(FORMATS, {
      error: ({ input }) =>
        `must be one of ${FORMATS.join(", ")}${typeof input === "string" ? `, not ${brief(input)}` : ""}`,
    })
    .default("text"),
  payload: json.optional(),
  options: json.refine((value) => Array.isArray(value), { error: "must be a list", abort: true }).optional(),
  schema: json.refine((value) => isObject(value), { error: "must be a JSON Schema object", abort: true }).optional(),
  groupId: shortText.optional(),
  expiresAt: instant.optional(),
  onExpiry: z.enum(["kill", "resume"], "must be kill or resume").default("kill"),
  to: z.enum(["caller", "user"], "must be caller or user").default("caller"),
  name: shortText.optional(),
  wait: z.boolean("must be true or false").default(true),
});

/**
 * What an ask says, before anything of it is written: whom it asks, until when, and for which answer.
 *
 * @param request the fields of `worker.ask`, and `to`; `expiresAt` as a Date or as ISO 8601 with an offset.
 * @throws HerdError `invalid_request`, `unknown_field` or `invalid_field`, naming the fields and their rules; `schema` also
 * when it does not compile.
 */
export async function askFields(request: unknown, operation = "ask"): Promise<AskFields> {
  const fields = withoutUndefined(parseRequest(operation, AskInput, request)) as AskFields;
  const faults = [...faultsOf(fields)];
  if (faults.length > 0) {
    const names = [...new Set(faults.map(([field]) => field))].join(", ");
    throw invalidField(operation, names, faults.map((fault) => fault.join(": ")).join("; "));
  }
  if (fields.schema !== undefined) {
    try {
      await checkOf(fields.answerFormat, fields.schema);
    } catch (error) {
      throw invalidField(operation, "schema", `schema: must be a JSON Schema that can be used: ${messageOf(error)}`);
    }
  }
  return fields;
}

/** Every rule between the fields that an ask breaks, as a field and what holds for it: whom it asks first, then its format. */
function* faultsOf(ask: AskFields): Generator<[field: string, rule: string]> {
  const { question, answerFormat, payload, options, schema, to } = ask;
  const blank = !/\S/.test(question);
  if (to === "caller" && blank && payload === undefined) {
    yield ["question", "must contain non-whitespace text unless there is a payload"];
  }
  if (to === "user") {
    if (blank) yield ["question", "must contain non-whitespace text"];
    if (payload !== undefined) yield ["payload", "is only for a question to the caller"];
    if (answerFormat === "free") yield ["answerFormat", "free is only for a question to the caller"];
  }
  if (options === undefined) {
    if (answerFormat === "select") yield ["options", "must be given with select"];
  } else {
    const rule = optionsRule(answerFormat, options);
    if (rule !== undefined) yield ["options", rule];
  }
  const takesSchema = answerFormat === "form" || answerFormat === "free";
  if (answerFormat === "form" && schema === undefined) yield ["schema", "must be given with form"];
  if (schema !== undefined && !takesSchema) yield ["schema", "is only for form and free"];
  const large = Object.entries({ payload, options, schema }).filter(([, value]) => value !== undefined);
  const bytes = large.reduce((sum, [, value]) => sum + Buffer.byteLength(JSON.stringify(value)), 0);
  if (bytes > JSON_LIMIT) {
    yield [
      large.map(([name]) => name).join(", "),
      `must be at most ${JSON_LIMIT} bytes of JSON together, not ${bytes}`,
    ];
  }
}

function optionsRule(answerFormat: AnswerFormat, options: readonly Json[]): string | undefined {
  if (answerFormat !== "select" && answerFormat !== "text") return "are only for select and text";
  if (options.length === 0) return "must not be empty";
  if (options.some(isReserved)) return `must not hold ${brief(EXPIRED)}, which says that a question expired`;
  const areTexts = options.every((option) => typeof option === "string" && option !== "");
  return answerFormat === "text" && !areTexts ? "must be texts that are not empty, with text" : undefined;
}

function instantOf(value: unknown): number | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.getTime();
  const isIso = ISO.some((format) => format.safeParse(value).success);
  return isIso ? Date.parse(value as string) : undefined;
}

/** With seconds and without. Unlike `Date.parse` they know how long a month is. */
const ISO = [z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })];

/** What an answer is checked against. */
export interface Answerable {
  answerFormat: AnswerFormat;
  options?: readonly Json[];
  schema?: object;
}

type Finding = { json: Json } | { fault: Fault };

/**
 * Checks an answer, whichever way it came.
 *
 * @returns what counts as the answer, in a copy: with `confirm` always a boolean, with `form` without the properties that
 * do not show.
 * @throws HerdError `answer_mismatch`. Its `field` is the place inside the answer; it is absent when the answer as a whole
 * does not fit, and when the question's own schema is broken.
 */
export async function checkAnswer(
  question: Answerable,
  answer: unknown,
  { operation }: { operation: string },
): Promise<Json> {
  const read = unreserved(readJson(answer));
  // Also what is left of a form may come to say that the question expired.
  const found = "json" in read ? unreserved(await answerOf(question, read.json)) : read;
  if ("json" in found) return found.json;
  throw mismatch(operation, question.answerFormat, found.fault);
}

async function answerOf({ answerFormat, options = [], schema }: Answerable, json: Json): Promise<Finding> {
  switch (answerFormat) {
    case "text":
      return typeof json === "string" ? { json } : wrong("must be a string");
    case "confirm": {
      const confirmed = confirmation(json);
      if (confirmed !== undefined) return { json: confirmed };
      return wrong('must be a boolean, or { "answer": … } with true, false, "yes" or "no"');
    }
    case "select":
      if (options.some((option) => isDeepStrictEqual(option, json))) return { json };
      return wrong(`must be one of ${brief([...options])}`);
    case "form":
      if (schema === undefined) return wrong("cannot be checked: the question has no schema");
      if (!isObject(json)) return wrong("must be an object");
      return conforming(answerFormat, schema, json);
    case "free":
      return schema === undefined ? { json } : conforming(answerFormat, schema, json);
  }
}

function confirmation(json: Json): boolean | undefined {
  if (typeof json === "boolean") return json;
  if (!isObject(json) || Object.keys(json).join() !== "answer") return undefined;
  const { answer } = json;
  if (answer === "yes" || answer === "no") return answer === "yes";
  return typeof answer === "boolean" ? answer : undefined;
}

/** What of a value a schema speaks about, when it fits. A schema that cannot be used is a fault without a place. */
async function conforming(answerFormat: AnswerFormat, schema: object, json: Json): Promise<Finding> {
  try {
    const check = await checkOf(answerFormat, schema);
    const part = answerFormat === "form" ? visiblePart(schema as JsonObject, json) : json;
    const fault = check(part);
    return fault ? { fault } : { json: part };
  } catch (error) {
    return wrong(`cannot be checked, because its schema cannot be used: ${messageOf(error)}`);
  }
}

async function checkOf(answerFormat: AnswerFormat, schema: object): Promise<Check> {
  return compileSchema(answerFormat === "form" ? (visibleSchema(schema as JsonObject) as JsonObject) : schema);
}

function isReserved(json: Json): boolean {
  return isDeepStrictEqual(json, EXPIRED);
}

function unreserved(found: Finding): Finding {
  if (!("json" in found) || !isReserved(found.json)) return found;
  return wrong(`must not be ${brief(EXPIRED)}, which says that a question expired`);
}

function wrong(message: string): { fault: Fault } {
  return { fault: { path: undefined, message } };
}

const WANTED: Record<AnswerFormat, string> = {
  text: "answer with a text",
  confirm: "answer with true or false",
  select: "answer with one of the question's options, exactly as it stands there",
  form: "answer with an object that the question's schema accepts",
  free: "answer with JSON that the question accepts",
};

function mismatch(operation: string, answerFormat: AnswerFormat, { path, message }: Fault): HerdError {
  const where = path === undefined ? "The answer" : `The answer's ${path}`;
  return invalidRequest(operation, "answer_mismatch", `${where} ${message}`, WANTED[answerFormat], {
    rule: message,
    ...(path !== undefined && { field: path }),
  });
}

/**
 * Checks what an agent is started with against the `input` schema of its definition.
 *
 * @param options `field` is the name under which the value was given, `input` unless it is set.
 * @returns a copy of the value.
 * @throws HerdError `invalid_field` whose `field` is that name and the place inside the value: `input.a.b`.
 */
export async function checkInput(
  schema: object,
  value: unknown,
  { operation, field = "input" }: { operation: string; field?: string },
): Promise<Json> {
  const read = readJson(value);
  const found = "json" in read ? await conforming("free", schema, read.json) : read;
  if ("json" in found) return found.json;
  const { path, message } = found.fault;
  const place = path === undefined ? field : `${field}.${path}`;
  throw invalidField(operation, place, `${place}: ${message}`);
}

/** As `parseRequest` refuses: the rules are named with their fields. */
function invalidField(operation: string, field: string, rule: string): HerdError {
  return invalidRequest(operation, "invalid_field", rule, `correct ${field}`, { field, rule });
}
