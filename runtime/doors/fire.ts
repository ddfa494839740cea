import type { Json } from "../../machines/vocabulary.ts";
import { parkedOn } from "../asks/parked.ts";
import { parkedJson } from "../asks/seed-json.ts";
import { refused } from "../asks/visit-request.ts";
import type { VisitRequest } from "../asks/visit-shapes.ts";
import type { Engine } from "../engine.ts";
import { ownerRef, type Subject } from "../owners.ts";
import { evaluateContract, type DoorContract, type Start } from "./contract.ts";
import type { DoorDocument } from "./document.ts";
import type { Jq } from "./jq.ts";
import { evaluateSubject } from "./subject.ts";

/** What an input is about. @throws HerdError `door_contract`. */
export async function subjectFor(jq: Jq, { subject }: Pick<DoorDocument, "subject">, input: Json): Promise<Subject> {
  return typeof subject === "string" ? evaluateSubject(jq, subject, input) : subject;
}

/**
 * Turns an input into the visit that a door makes of it: everything is evaluated over one look at what is parked, and
 * nothing is done.
 * @throws HerdError `door_contract`; of a route also `visit_request`, rule `asks_first`.
 */
export async function visitFor(
  engine: Engine,
  jq: Jq,
  door: Omit<DoorDocument, "contract"> & { contract: DoorContract },
  subject: Subject,
  input: Json,
): Promise<VisitRequest> {
  const { contract, kind } = door;
  // Nobody looks at what is parked where no expression can, and only a route minds it.
  const looks = kind === "route" || Object.keys(contract).length > 0;
  const entries = looks ? (await parkedOn(engine, ownerRef(subject))).map(({ entry }) => entry) : [];
  const parked = entries.map(parkedJson) as Json;
  const { cancel, resume, take, start, extras } = await evaluateContract(jq, contract, { input, parked });
  const acts = resume.length + take.length > 0;
  const begins = !acts && start.type !== "nothing";
  if (kind === "route" && begins) {
    const open = entries.find(({ id, status, to }) => status === "asking" && to !== "user" && !cancel.includes(id));
    if (open) throw asksFirst(open.id);
  }
  return {
    subject,
    cancel,
    resume: [...resume, ...take.map((id) => ({ id }))],
    ...(start.type !== "nothing" && { start: startOf(engine, door, start, input) }),
    extras,
  };
}

function startOf(
  engine: Engine,
  { target, defaults, kind }: DoorDocument,
  start: Exclude<Start, { type: "nothing" }>,
  given: Json,
): NonNullable<VisitRequest["start"]> {
  // A schedule has no input but the one that it stores.
  const input = start.type === "input" ? start.input : (defaults ?? (kind === "schedule" ? undefined : given));
  const hasTask = target.task !== undefined && start.type === "default" && defaults === undefined;
  // What is no function takes nothing beside a task that the door says itself.
  const isFunction = engine.agents.find(target.agent) !== undefined;
  return { ...target, ...(input !== undefined && input !== null && (isFunction || !hasTask) && { input }) };
}

function asksFirst(id: string) {
  return refused(
    "asks_first",
    "start",
    "The conversation has a run that asks, and starts no other one before that is answered",
    "resume it, or cancel it",
    id,
  );
}
