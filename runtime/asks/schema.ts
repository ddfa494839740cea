import type { Ajv, ErrorObject, Options } from "ajv";
import type { Json } from "../../machines/vocabulary.ts";
import { messageOf } from "../errors.ts";
import { brief, cut, dotted, type Fault } from "./json.ts";

/** Checks one value: the first thing that is wrong with it, or nothing. @throws Error when it needs more stack than there is. */
export type Check = (value: Json) => Fault | undefined;

/** Compiled schemas that are remembered. Most programs ask with a handful of schemas, over and over. */
const REMEMBERED = 64;

/** A longer schema, in characters, is compiled each time instead of holding memory. */
const REMEMBERED_LENGTH = 64 * 1024;

const OPTIONS = {
  // Schemas are made for many validators: keywords and formats that only others know hinder nothing.
  strict: false,
  logger: false,
  allErrors: false,
  validateFormats: true,
  // Done before, by a validator that has its meta-schema compiled already.
  validateSchema: false,
  // Without it a required "constructor" would be found in every object.
  ownProperties: true,
} satisfies Options;

/** What `$schema` may name, without its scheme, and the class of `ajv` for it. Draft-07 reads draft-06. */
const CLASSES: Record<string, () => Promise<new (options: Options) => Ajv>> = {
  "json-schema.org/draft/2020-12/schema": async () => (await import("ajv/dist/2020.js")).Ajv2020,
  "json-schema.org/draft/2019-09/schema": async () => (await import("ajv/dist/2019.js")).Ajv2019,
  "json-schema.org/draft-07/schema": async () => (await import("ajv")).Ajv,
  "json-schema.org/draft-06/schema": async () => (await import("ajv")).Ajv,
};
const DEFAULT_DIALECT = "json-schema.org/draft/2020-12/schema";

interface Dialect {
  /** A validator that knows no schema yet: those of two questions may bear the same `$id`. */
  create: () => Ajv;
  /** Checks schemas themselves. */
  meta: Ajv;
}

const dialects = new Map<string, Dialect>();
const remembered = new Map<string, Check>();

/**
 * Compiles a JSON Schema: draft 2020-12, or the draft that its `$schema` names (2019-09, draft-07, draft-06). Formats are
 * asserted. `ajv` is loaded at the first use; nothing is ever fetched.
 *
 * @throws Error with a short message when the schema is broken: a keyword with a wrong value, a `$ref` that leads
 * nowhere, nesting that needs more stack than there is.
 */
export async function compileSchema(schema: object): Promise<Check> {
  // The text is also a copy, so that a check means what its schema said at first.
  const text = orBroken(() => JSON.stringify(schema));
  const known = remembered.get(text);
  if (known) remembered.delete(text);
  const check = known ?? (await compile(JSON.parse(text)));
  if (text.length <= REMEMBERED_LENGTH) remembered.set(text, check);
  // The order of a map is that of insertion: the first was not used for the longest time.
  for (const [oldest] of remembered) if (remembered.size > REMEMBERED) remembered.delete(oldest);
  return check;
}

async function compile({ $schema, ...schema }: Record<string, unknown>): Promise<Check> {
  const dialect = await dialectOf($schema);
  // It would have `ajv` answer with a promise; to every other validator it means nothing.
  delete schema["$async"];
  const validate = orBroken(() => {
    if (!dialect.meta.validateSchema(schema)) throw new Error(described(faultOf(dialect.meta.errors?.[0])));
    return dialect.create().compile(schema);
  });
  return (value) => {
    if (orBroken(() => validate(value))) return undefined;
    // The last error is the keyword that failed, those before it say why; but "if" only says that "then" did.
    return faultOf(validate.errors?.findLast(({ keyword }) => keyword !== "if"));
  };
}

async function dialectOf($schema: unknown): Promise<Dialect> {
  const name = typeof $schema === "string" ? $schema.replace(/^https?:\/\//, "").replace(/#$/, "") : DEFAULT_DIALECT;
  if (($schema !== undefined && typeof $schema !== "string") || !Object.hasOwn(CLASSES, name)) {
    throw new Error(`$schema must name draft 2020-12, 2019-09, draft-07 or draft-06, not ${brief($schema as Json)}`);
  }
  const known = dialects.get(name);
  if (known) return known;
  const [Validator, { default: formats }] = await Promise.all([
    (CLASSES[name] as (typeof CLASSES)[string])(),
    import("ajv-formats"),
  ]);
  const create = () => {
    const validator = new Validator(OPTIONS);
    formats.default(validator);
    // The time of day in a form is what the clock on the wall shows: unlike date-time it may come without an offset.
    return validator.addFormat("time", formats.default.get("iso-time"));
  };
  const dialect = { create, meta: create() };
  dialects.set(name, dialect);
  return dialect;
}

/** Whatever a schema does to its compiler or to its check is a plain error: it came with a request. */
function orBroken<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new Error(cut(error instanceof RangeError ? "nested too deeply, or without an end" : messageOf(error)), {
      cause: error,
    });
  }
}

function faultOf(error: ErrorObject | undefined): Fault {
  if (error === undefined) return { path: undefined, message: DOES_NOT_FIT };
  const { keyword, instancePath, params, message = DOES_NOT_FIT } = error;
  const above = instancePath.split("/").slice(1).map(unescaped);
  const path = dotted(above);
  if (keyword === "enum") return { path, message: `must be one of ${brief(params["allowedValues"] as Json)}` };
  if (keyword === "const") return { path, message: `must be ${brief(params["allowedValue"] as Json)}` };
  // These keywords speak about a property and tell the place of its object.
  for (const [name, rule] of Object.entries(OF_PROPERTIES)) {
    const property: unknown = params[name];
    if (typeof property === "string") return { path: dotted([...above, property]), message: rule };
  }
  return { path, message: cut(message) };
}

const DOES_NOT_FIT = "does not fit the schema";

/** What a keyword says of the property that its error names under this parameter. */
const OF_PROPERTIES = {
  missingProperty: "is required",
  additionalProperty: "must not be there",
  unevaluatedProperty: "must not be there",
  propertyName: "must not be called so",
};

/** A part of a JSON pointer as the name it stands for. */
function unescaped(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

function described({ path, message }: Fault): string {
  return path === undefined ? message : `${path} ${message}`;
}
