import { questionText } from "../asks/question.ts";
import { activeRequest, isSteerable, shownState } from "../../machines/projection.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import { paneIdOf } from "../backend.ts";
import { withoutUndefined } from "../errors.ts";
import type { Engine } from "../engine.ts";
import type { AskRecord, RequestRecord } from "../kernel/records.ts";
import { parentPath, runIdOf, type Tree, type UnknownWorker } from "../kernel/tree.ts";
import { keys } from "../store/keys.ts";
import type { Listing, WorkerRow } from "./shapes.ts";
import { isOrphan } from "./target.ts";
import { visitedPlaces, type Place } from "./visited.ts";

/** Working without a sign of life for this long is shown as stale. Source: specification of the stale advisory. */
const STALE_MS = 600_000;
const LOST =
  "Its process is gone, and without an assignment it is not started again. Close it, then assign its session.";
/** Characters of a task in a row. */
const TASK_LENGTH = 200;
/** Workers whose records cannot be believed, at most. */
const UNKNOWN_ROWS = 64;

/**
 * What an owner sees: the root its whole tree and the runs that visits started for it, a parent worker its own children. Shows only what is on disk and
 * changes nothing.
 */
export async function list(engine: Engine, by: Place & { cwd: string }): Promise<Listing> {
  const { path, cwd } = by;
  const current = engine.roster.current(cwd);
  // A command without an effect: it comes after those before it and waits for what it shows to be on disk.
  const shownOf = ({ treeId, workspace }: Place) =>
    engine.kernel.run(treeId, ({ tree }) => listingOf(engine, tree, path, workspace), { operation: "list" });
  const shown = shownOf(by);
  const visited = visitedPlaces(engine, by).then((places) => Promise.all(places.map(shownOf)));
  const [own, others, roster] = await Promise.all([shown, visited, current]);
  const { allowed } = own;
  const workers = [own, ...others].flatMap((each) => each.workers);
  const cleanupErrors = Object.assign({}, ...[own, ...others].map((each) => each.cleanupErrors)) as Record<
    string,
    string
  >;
  return withoutUndefined({
    workers,
    agentDefinitions: roster.rows(allowed),
    cleanupErrors: Object.keys(cleanupErrors).length > 0 ? cleanupErrors : undefined,
    findings: path === "" && roster.findings.length > 0 ? [...roster.findings] : undefined,
  }) as Listing;
}

function listingOf(engine: Engine, tree: Tree, path: string, workspace: string) {
  const workers: WorkerRow[] = [];
  for (const worker of tree.workers()) {
    if (worker.context.workspace === workspace && visible(worker.path, path))
      workers.push(rowOf(engine, tree, worker.path, worker.state, worker.context));
  }
  for (const resting of tree.resting.values()) {
    if (resting.context.workspace !== workspace || !visible(resting.path, path)) continue;
    workers.push(rowOf(engine, tree, resting.path, "settling.undelivered", resting.context));
  }
  if (path === "") {
    for (const row of tree.unknown.slice(0, UNKNOWN_ROWS)) {
      if (row.context && row.context.workspace !== workspace) continue;
      workers.push(unknownRow(row));
    }
  }
  const parent = path === "" ? undefined : tree.worker(runIdOf(path));
  return {
    workers,
    cleanupErrors: path === "" ? engine.backends.stops.errorsIn(tree.id) : {},
    // A parent sees what it may start, and nothing once it is gone.
    allowed: path === "" ? undefined : parent ? engine.subagentsOf(parent.context) : [],
  };
}

/** Nothing here can be acted on: a record that cannot be read, or one whose ancestry cannot be believed. */
function unknownRow({ path, label, diagnostic, context }: UnknownWorker): WorkerRow {
  const shown = { label: label ?? runIdOf(path), state: "unknown", steerable: false, agentDefinition: "", diagnostic };
  if (context === undefined) return { ...shown, unreadable: true };
  return withoutUndefined({
    ...shown,
    agentDefinition: context.agent,
    workspaceId: context.workspace,
    paneId: paneIdOf(context, context.place),
    cwd: context.cwd,
    piSessionId: context.sessionId,
    ownerSessionId: context.ownerSessionId,
    activeRequestId: context.assignment?.requestId,
    recoveryOnly: true as const,
  }) as WorkerRow;
}

function visible(worker: string, viewer: string): boolean {
  return viewer === "" ? true : parentPath(worker) === viewer;
}

function rowOf(engine: Engine, tree: Tree, path: string, state: string, context: WorkerContext): WorkerRow {
  const parent = parentPath(path);
  const ask = context.ask ? engine.kernel.read<AskRecord>(keys.ask(context.ask.askId)) : undefined;
  const lastActivityAt = engine.lastActivityAt(context);
  const inactiveMs = engine.kernel.now() - lastActivityAt;
  const top = shownState(state, context);
  const { place } = context;
  const request = activeRequest(state, context);
  const stale = top === "working" && request !== undefined && inactiveMs >= STALE_MS;
  return withoutUndefined({
    label: context.label,
    state: top,
    steerable: isSteerable(state, context),
    agentDefinition: context.agent,
    workspaceId: context.workspace,
    paneId: paneIdOf(context, place),
    tabId: place?.tabId,
    tabLabel: place?.tabLabel,
    model: place?.model,
    thinking: place?.thinking,
    cwd: context.cwd,
    piSessionId: context.sessionId,
    piSessionPath: place?.sessionPath ?? engine.sessions.pathFor(context),
    ownerSessionId: context.ownerSessionId,
    activeRequestId: request,
    task: taskOf(engine, context),
    lastActivityAt: new Date(lastActivityAt).toISOString(),
    ...(stale && { stale: true as const, inactiveMs }),
    parentLabel: parent === "" ? undefined : tree.worker(runIdOf(parent))?.context.label,
    orphan: isOrphan(tree, path) ? (true as const) : undefined,
    cleanupError:
      engine.backends.stops.errorOf(context.runId) ??
      engine.deliveries.errorOf(engine.ownerKey(tree, path), context.runId),
    resultError: context.resultError ?? undefined,
    diagnostic:
      context.unproven ??
      (context.lost && top === "unknown" ? LOST : undefined) ??
      context.diagnostic ??
      engine.functions.waitsFor(context.runId),
    queued: state === "settling.queued" ? true : undefined,
    question:
      ask && !ask.answer
        ? { askId: ask.askId, question: ask.question, envelope: questionText(context.label, ask) }
        : undefined,
  }) as WorkerRow;
}

/** What tells a worker from others for somebody who looks: of a task that is long, how it begins. */
function taskOf(engine: Engine, { assignment }: WorkerContext): string | undefined {
  if (assignment === null) return undefined;
  const { task = "" } = engine.kernel.read<RequestRecord>(keys.request(assignment.requestId)) ?? {};
  const [line = ""] = task.trimStart().split("\n", 1);
  return line.slice(0, TASK_LENGTH).trim().toWellFormed() || undefined;
}
