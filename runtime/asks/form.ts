import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../machines/vocabulary.ts";
import { isObject, own, type JsonObject } from "./json.ts";

/**
 * Forms with properties that only sometimes show. A property's schema may say
 * `visibleWhen: { otherProperty: value | [values] }`: it shows when every property named there, beside it, shows and has
 * (one of) the values. What does not show is no part of the answer and is not required. This holds in the form itself, in
 * the objects under its `properties` and in the lists of such; not behind a `$ref` or in `anyOf` and its like.
 */

/** The properties that decide whether another one shows, with the values that show it. */
type Condition = [other: string, wanted: Json[]][];

/**
 * A form's schema in the words of JSON Schema alone: what is required and does not always show is required where it does.
 * @throws Error when a `visibleWhen` makes no sense: it names no property beside it, no value, or goes in a circle.
 */
export function visibleSchema(schema: Json): Json {
  if (!isObject(schema)) return schema;
  const items = own(schema, "items");
  const plain = isObject(items) ? { ...schema, items: visibleSchema(items) } : schema;
  const properties = own(schema, "properties");
  if (!isObject(properties)) return plain;
  const conditions = conditionsOf(properties);
  refuseCircles(conditions);
  return requiredWhereVisible({ ...plain, properties: mapped(properties, visibleSchema) }, conditions);
}

/** An answer to a form without what does not show; what is no object where the schema wants one stays as it is. */
export function visiblePart(schema: Json | undefined, answer: Json): Json {
  if (!isObject(schema)) return answer;
  if (Array.isArray(answer)) return answer.map((item) => visiblePart(itemSchema(schema), item));
  const properties = own(schema, "properties");
  if (!isObject(answer) || !isObject(properties)) return answer;
  const parts = mapped(answer, (part, name) => visiblePart(own(properties, name), part));
  const conditions = conditionsOf(properties);
  const known = new Map<string, boolean>();
  const shows = (name: string): boolean => {
    const visible =
      known.get(name) ??
      (conditions.get(name) ?? []).every(
        ([other, wanted]) =>
          Object.hasOwn(parts, other) && wanted.some((value) => isDeepStrictEqual(value, parts[other])) && shows(other),
      );
    known.set(name, visible);
    return visible;
  };
  return Object.fromEntries(Object.entries(parts).filter(([name]) => shows(name)));
}

function itemSchema(schema: JsonObject): Json | undefined {
  const items = own(schema, "items");
  return isObject(items) ? items : undefined;
}

function conditionsOf(properties: JsonObject): Map<string, Condition> {
  const conditions = new Map<string, Condition>();
  for (const [name, property] of Object.entries(properties)) {
    const when = isObject(property) ? own(property, "visibleWhen") : undefined;
    if (when !== undefined) conditions.set(name, conditionOf(name, when, properties));
  }
  return conditions;
}

function conditionOf(name: string, when: Json, properties: JsonObject): Condition {
  if (!isObject(when)) throw new Error(`visibleWhen of ${name} must be an object of properties and their values`);
  return Object.entries(when).map(([other, value]) => {
    if (!Object.hasOwn(properties, other)) {
      throw new Error(`visibleWhen of ${name} names ${other}, which is no property beside it`);
    }
    const wanted = Array.isArray(value) ? value : [value];
    if (wanted.length === 0) throw new Error(`visibleWhen of ${name} has no value for ${other}`);
    return [other, wanted];
  });
}

function refuseCircles(conditions: Map<string, Condition>): void {
  const [above, settled] = [new Set<string>(), new Set<string>()];
  const follow = (name: string): void => {
    if (above.has(name)) throw new Error(`visibleWhen of ${name} depends on itself: ${[...above, name].join(", ")}`);
    if (settled.has(name)) return;
    above.add(name);
    for (const [other] of conditions.get(name) ?? []) follow(other);
    above.delete(name);
    settled.add(name);
  };
  for (const name of conditions.keys()) follow(name);
}

function requiredWhereVisible(schema: JsonObject, conditions: Map<string, Condition>): JsonObject {
  const [required, allOf = []] = [own(schema, "required"), own(schema, "allOf")];
  // What is malformed stays as it is: the check of the schema names it.
  if (!Array.isArray(required) || !Array.isArray(allOf)) return schema;
  const rules = required.flatMap((name) => {
    const condition = typeof name === "string" ? conditions.get(name) : undefined;
    return condition === undefined ? [] : [{ if: { not: holding(condition) }, else: { required: [name] } }];
  });
  if (rules.length === 0) return schema;
  const always = required.filter((name) => typeof name !== "string" || !conditions.has(name));
  return { ...schema, required: always, allOf: [...allOf, ...rules] };
}

/** What does not show has been dropped from the answer, so that whoever depends on it finds it absent. */
function holding(condition: Condition): JsonObject {
  return {
    required: condition.map(([other]) => other),
    properties: Object.fromEntries(condition.map(([other, wanted]) => [other, { enum: wanted }])),
  };
}

function mapped(object: JsonObject, change: (value: Json, name: string) => Json): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value, name)]));
}
