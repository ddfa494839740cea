import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { z } from "zod";
import { LABEL_PATTERN, type Evidence, type Json } from "../../machines/vocabulary.ts";
import { FUNCTIONS } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { invalidRequest } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import type { RequestRecord } from "../kernel/records.ts";
import { parseRequest } from "../request.ts";
import { findSession, linesOf, type Library, type SavedSession } from "../sessions/reference.ts";
import { checkProject, frozenPolicy, type Agent } from "../roster.ts";
import { checkMetadata, Common, limitsOf, nonBlank, type Controller } from "./acceptance.ts";
import { assignLive } from "./assign-live.ts";
import { chooseLabel } from "./label.ts";
import { launch, unlessKnown, type Plan } from "./launch.ts";
import { reuse } from "./representation.ts";

/** Bytes of JSON that a function's run may begin with. */
const HISTORY_LIMIT = 4 * 1024 * 1024;

const label = z.string().regex(LABEL_PATTERN, `must match ${LABEL_PATTERN.source}`).optional();
const timeoutMs = z
  .number()
  .int()
  .min(5_001, "must be 5001 to 300000")
  .max(300_000, "must be 5001 to 300000")
  .optional();

const Fresh = z.strictObject({
  agent: nonBlank,
  label,
  cwd: nonBlank.optional(),
  reusable: z.boolean().optional(),
  fork: nonBlank.optional(),
  timeoutMs,
  ...Common,
});

const Historical = z.strictObject({
  session: nonBlank,
  label,
  cwd: nonBlank.optional(),
  reusable: z.boolean().optional(),
  timeoutMs,
  ...Common,
});

/**
 * Assigns a task: to a fresh worker of an agent, to a saved session, or to a live reusable worker by its label. Resolves
 * when the task is accepted on disk.
 *
 * What can happen twice: nothing, when `id` is given: a repetition gets the same assignment. Without it every call
 * is a new one.
 * @throws HerdError; before acceptance nothing was changed, or what was started was rolled back.
 */
export function assign(engine: Engine, by: Controller, request: unknown): Promise<RequestRecord> {
  const { agent, session, label: named } = (request ?? {}) as Record<string, unknown>;
  if (agent !== undefined) return assignFresh(engine, by, request);
  if (session !== undefined) return assignHistorical(engine, by, request);
  return named === undefined ? assignFresh(engine, by, request) : assignLive(engine, by, request);
}

async function assignFresh(engine: Engine, by: Controller, request: unknown): Promise<RequestRecord> {
  const fields = parseRequest("assign", Fresh, request);
  checkMetadata(fields.metadata);
  const { agent, task, files = [], fork, id, signal } = fields;
  const identity = [agent, task, files, ...(fork === undefined ? [] : [fork])];
  const go = (plan: Plan) => launch(engine, by, plan);
  return unlessKnown(engine, by, { id, identity, signal }, () => startFresh(engine, by, fields, identity, go));
}

async function startFresh<T>(
  engine: Engine,
  by: Controller,
  fields: z.infer<typeof Fresh>,
  identity: readonly unknown[],
  go: (plan: Plan) => Promise<T>,
): Promise<T> {
  const { agent: name, fork } = fields;
  const current = engine.roster.current(by.cwd);
  const roster = current instanceof Promise ? await current : current;
  const agent = roster.known(name);
  checkAllowed(by, name);
  if (fields.cwd !== undefined) await checkCwd(by, fields.cwd);
  const source =
    fork === undefined ? undefined : await findSession(libraryOf(engine), fork, { cwd: by.cwd, field: "fork" });
  const saved = source && (await savedOf(engine, source, "forks", agent));
  roster.checkLaunchable(agent);
  const more = {
    cwd: fields.cwd === undefined ? by.cwd : resolve(by.cwd, fields.cwd),
    identity,
    ...(saved && { saved }),
  };
  return planned(engine, by, fields, agent, more, go);
}

/**
 * Everything that launching a fresh worker needs, looked at and not done.
 * @throws HerdError what an assign is refused for.
 */
export function planFresh(engine: Engine, by: Controller, request: object): Promise<Plan> {
  const fields = parseRequest("assign", Fresh, request);
  return startFresh(engine, by, fields, [], async (plan) => plan);
}

/** A saved session goes on: in the live worker that has it, else in a new run of its agent as that is defined now. */
async function assignHistorical(engine: Engine, by: Controller, request: unknown): Promise<RequestRecord> {
  const fields = parseRequest("assign", Historical, request);
  checkMetadata(fields.metadata);
  const { session: reference, task, files = [], id, signal } = fields;
  const session = await findSession(libraryOf(engine), reference, { cwd: by.cwd, field: "session" });
  const identity = [session.id, task, files];
  return unlessKnown(engine, by, { id, identity, signal }, () => goOn(engine, by, fields, session, identity));
}

async function goOn(
  engine: Engine,
  by: Controller,
  fields: z.infer<typeof Historical>,
  session: SavedSession,
  identity: readonly unknown[],
): Promise<RequestRecord> {
  if (session.agent === undefined) {
    throw invalidRequest(
      "assign",
      "bad_session",
      `The session "${fields.session}" was not made by a worker`,
      "use fork",
      {
        field: "session",
      },
    );
  }
  await checkSaved(by, session, fields.cwd);
  const live = await reuse(engine, by, session, fields);
  if (live) return assignLive(engine, by, live, identity);
  const roster = await engine.roster.current(by.cwd);
  const agent = roster.known(session.agent);
  checkAllowed(by, agent.name);
  roster.checkLaunchable(agent);
  const more = { cwd: session.cwd, identity, saved: await savedOf(engine, session, "continues", agent) };
  return planned(engine, by, fields, agent, more, (plan) => launch(engine, by, plan));
}

/**
 * What both forms have in common; files are read last, so that nothing else is found wrong after them. A plain launch
 * awaits nothing before its step: commands run in the order of their calls.
 * @param go what is done with the plan.
 */
async function planned<T>(
  engine: Engine,
  by: Controller,
  fields: Omit<z.infer<typeof Fresh>, "agent">,
  agent: Agent,
  more: Pick<Plan, "cwd" | "identity" | "saved">,
  go: (plan: Plan) => Promise<T>,
): Promise<T> {
  const { task, files = [], id, metadata, deadlineMs, signal, label: explicit, reusable = false } = fields;
  const backend = engine.backends.backendFor(agent);
  const preflight = engine.backends.preflight(backend);
  if (preflight) await preflight;
  const reading = { cwd: by.cwd, text: task, operation: "assign", limits: limitsOf(engine, by) };
  const { definition } = agent;
  if (definition) await checkProject(definition, more.cwd);
  let evidence: Evidence[];
  try {
    evidence = files.length === 0 ? noEvidence(reading) : await readEvidence(files, reading);
  } catch (error) {
    // A label that is not to be had comes first, whatever is wrong with the files.
    const wanted = { explicit, agent: agent.name, ceiling: engine.options.labelCeiling };
    await engine.kernel.run(by.treeId, (step) => chooseLabel(step, by.workspace, wanted), {
      operation: "assign",
      owner: by.owner,
    });
    throw error;
  }
  const frozen = { leaf: by.parent !== undefined, files: evidence };
  const policy = definition && (await frozenPolicy({ ...agent, definition }, frozen));
  return go({
    ...more,
    agent: agent.name,
    delegates: agent.delegates,
    backend,
    ...(policy !== undefined && { policy }),
    label: explicit,
    task,
    files: evidence,
    reusable,
    timeoutMs: fields.timeoutMs,
    id,
    metadata: metadata as Json | undefined,
    deadlineMs,
    signal,
  });
}

function libraryOf({ sessions, backends }: Engine): Library {
  return { sessions, folders: backends.sessionFolders };
}

/** A process reads a session's file itself; a function gets the lines, which the store keeps where they are not its own. */
async function savedOf(
  engine: Engine,
  session: SavedSession,
  how: "continues" | "forks",
  agent: Agent,
): Promise<NonNullable<Plan["saved"]>> {
  const { path, stored, id } = session;
  const field = how === "forks" ? "fork" : "session";
  const isProcess = engine.backends.backendFor(agent) !== FUNCTIONS;
  if (path === undefined && (isProcess || !stored)) {
    throw invalidRequest(
      "assign",
      `bad_${field}`,
      `No file of the session ${id} is known`,
      "wait until it is written, or give the path of its file",
      { field },
    );
  }
  if (isProcess || (how === "continues" && stored)) return { session, how, lines: [] };
  const lines = stored ? await engine.sessions.lines(id) : await linesOf(path as string, field);
  checkHistory(id, lines, field);
  return { session, how, lines: withoutManaged(lines) };
}

/** A function gets its history whole, in memory. @throws HerdError `session_too_large`. */
function checkHistory(id: string, lines: readonly object[], field: "session" | "fork"): void {
  const bytes = Buffer.byteLength(JSON.stringify(lines));
  if (bytes <= HISTORY_LIMIT) return;
  throw invalidRequest(
    "assign",
    "session_too_large",
    `The session ${id} has ${bytes} bytes, the limit for a function's history is ${HISTORY_LIMIT}`,
    "assign a fresh worker, and give it what matters of the session as a file",
    { field, details: { bytes, limit: HISTORY_LIMIT } },
  );
}

/** A copy belongs to the agent that it is made for. */
function withoutManaged(lines: readonly object[]): object[] {
  return lines.filter((line) => (line as { type?: unknown }).type !== "managed");
}

/** A parent worker starts only some agents. */
function checkAllowed(by: Controller, agent: string): void {
  if (by.parent === undefined || by.parent.allowed.includes(agent)) return;
  throw invalidRequest(
    "assign",
    "not_allowed",
    `This worker may not start "${agent}"`,
    by.parent.allowed.length > 0
      ? `assign one of its subagents: ${by.parent.allowed.join(", ")}`
      : "do the work in this worker, or ask its owner for another one",
    { field: "agent" },
  );
}

/** A worker works in a folder that is there; the children of a parent work where it works. */
async function checkCwd(by: Controller, cwd: string): Promise<void> {
  const folder = resolve(by.cwd, cwd);
  if (by.parent !== undefined && !(await sameFolder(by.cwd, folder))) {
    throw invalidRequest("assign", "other_cwd", "A child works in its parent's working directory", "leave cwd out", {
      field: "cwd",
    });
  }
  if (await isFolder(folder)) return;
  throw invalidRequest("assign", "no_cwd", `There is no folder "${folder}"`, "give a folder that is there as cwd", {
    field: "cwd",
  });
}

/** What a saved session itself speaks against. */
async function checkSaved(by: Controller, { id, cwd }: SavedSession, asserted: string | undefined): Promise<void> {
  if (cwd === "") {
    throw invalidRequest("assign", "bad_session", `The session ${id} does not say where it worked`, "use fork", {
      field: "session",
    });
  }
  if (id === (by.parent?.sessionId ?? by.owner.id)) {
    throw invalidRequest("assign", "own_session", "A session cannot be assigned to itself", "begin a copy with fork", {
      field: "session",
    });
  }
  if (!(await isFolder(cwd))) {
    throw invalidRequest(
      "assign",
      "no_cwd",
      `The session ${id} worked in "${cwd}", which is gone`,
      "make that folder again, or begin a copy with fork",
      { field: "session" },
    );
  }
  if (asserted !== undefined && !(await sameFolder(cwd, resolve(by.cwd, asserted)))) {
    throw invalidRequest("assign", "other_cwd", `The session ${id} works in "${cwd}"`, "leave cwd out", {
      field: "cwd",
    });
  }
  if (by.parent === undefined || (await sameFolder(by.cwd, cwd))) return;
  throw invalidRequest(
    "assign",
    "other_cwd",
    `A child works in its parent's working directory, and the session ${id} works in "${cwd}"`,
    "begin a copy with fork",
    { field: "session" },
  );
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

async function sameFolder(a: string, b: string): Promise<boolean> {
  if (resolve(a) === resolve(b)) return true;
  const [left, right] = await Promise.all([a, b].map((folder) => realpath(folder).catch(() => undefined)));
  return left !== undefined && left === right;
}
