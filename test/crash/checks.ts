import { keys } from "../../runtime/store/keys.ts";
import { openAsks } from "../../machines/projection.ts";
import { ownerKeyOf } from "../../runtime/owners.ts";
import type { OutcomeRecord } from "../../runtime/kernel/records.ts";
import type { AssignEntry, StepEntry } from "../../runtime/functions/journal.ts";
import { digest } from "./facts.ts";
import type { History } from "./history.ts";
import { ParkedCheck } from "./parked-checks.ts";
import type { Accepted, Rows, StoredWorker } from "./rows.ts";
import { expectedText, placed, policyFor, saidOf, throws } from "./work.ts";

/**
 * What a ledger says against the rows of a store that nobody has open.
 * @param ended everything was answered and acknowledged: nothing may be left over.
 * @returns every violated invariant as a sentence, the ledger's own contradictions first.
 */
export function checkRows(history: History, rows: Rows, { ended = false } = {}): string[] {
  const check = new Check(history, rows);
  check.assignments();
  check.replies();
  check.steps();
  for (const request of rows.requests.values()) check.outcome(request);
  check.deliveries();
  check.waysOn();
  check.labels();
  check.parked.visits();
  check.parked.chains();
  check.parked.lists();
  if (ended) check.nothingLeft();
  return [...history.violations, ...check.violations];
}

class Check {
  readonly violations: string[] = [];
  readonly parked: ParkedCheck;
  readonly #history: History;
  readonly #rows: Rows;
  readonly #byName = new Map<string, Accepted>();

  constructor(history: History, rows: Rows) {
    this.#history = history;
    this.#rows = rows;
    this.parked = new ParkedCheck(history, rows, (message) => this.#violate(message));
    for (const request of rows.requests.values()) {
      const twin = this.#byName.get(request.work.name);
      if (twin) this.#violate(`${request.work.name} was assigned twice: ${twin.requestId} and ${request.requestId}`);
      this.#byName.set(request.work.name, request);
    }
  }

  /** No accepted assignment is lost or changed, and none exists that nobody asked for. */
  assignments(): void {
    for (const { work, requestId, acceptedLabel, agent, id, owner, closed } of this.#history.works.values()) {
      if (requestId === undefined) continue;
      const stored = this.#rows.requests.get(requestId);
      if (stored === undefined) {
        this.#violate(`assignment ${work.name} (${requestId}) was accepted and is not in the store`);
        continue;
      }
      if (stored.work.name !== work.name || stored.label !== acceptedLabel || stored.agent !== agent) {
        this.#violate(`assignment ${work.name} (${requestId}) was accepted and stands in the store as another one`);
      }
      if (id !== undefined && this.#rows.callerIds.get(keys.callerId(treeOf(owner), id))?.requestId !== requestId) {
        this.#violate(`assignment ${work.name} was accepted under id ${id}, which the store does not know`);
      }
      if (closed && !this.#rows.outcomes.has(requestId)) {
        this.#violate(`the close of ${work.name} (${requestId}) was accepted and it has not ended`);
      }
    }
    for (const { parentRunId, work, requestId, sessionId } of this.#rows.requests.values()) {
      if (this.#rows.sessions.get(requestId) !== sessionId) {
        this.#violate(`assignment ${work.name} (${requestId}) does not belong to its session ${sessionId}`);
      }
      const { works, visits } = this.#history;
      if (parentRunId === undefined && !works.has(work.name) && !visits.started.has(work.name)) {
        this.#violate(`nobody assigned ${work.name} (${requestId})`);
      }
    }
  }

  /** No accepted reply is lost, and every answer is one that somebody gave to that question. */
  replies(): void {
    for (const { askId, accepted } of this.#history.asks.values()) {
      if (accepted === undefined) continue;
      const answer = this.#rows.asks.get(askId)?.answer;
      if (answer === undefined) {
        this.#violate(`the reply ${accepted.message} to ${askId} was accepted and is not in the store`);
      } else if (answer.message !== accepted.message || answer.replyId !== accepted.id) {
        this.#violate(`the reply ${accepted.message} to ${askId} was accepted, the store has ${answer.message}`);
      }
    }
    for (const ask of this.#rows.asks.values()) {
      const { askId, requestId, question, answer } = ask;
      const request = this.#rows.requests.get(requestId);
      if (answer === undefined || request === undefined) continue;
      if (ask.parked) this.parked.answer(ask);
      else if (request.parentRunId === undefined) {
        const attempt = this.#history.attempts.get(String(answer.message));
        if (attempt === undefined || (attempt.askId ?? askId) !== askId) {
          this.#violate(`the answer ${answer.message} to ${askId} is none that anybody gave`);
        }
      } else if (answer.message !== this.#answerFromParent(request.parentRunId, question)) {
        this.#violate(`the child's question ${question} was answered ${answer.message}, which its parent did not say`);
      }
    }
  }

  /** What a parent says to a child: what its owner answered when it asked upwards, else what its policy says. */
  #answerFromParent(parentRunId: string, question: string): string | undefined {
    const parent = this.#rows.requestOfRun(parentRunId);
    if (parent === undefined) return undefined;
    const name = question.slice(0, question.lastIndexOf("?"));
    const act = [...placed(parent.work.acts)].find(([, each]) => each.act === "child" && each.work.name === name)?.[1];
    if (act?.act !== "child") return undefined;
    return act.escalate
      ? this.#rows.asksOf(parent.requestId).get(question)?.answer?.message?.toString()
      : policyFor(question);
  }

  /** What a step gave stays what it gave. */
  steps(): void {
    for (const [key, { journalled }] of this.#history.steps) {
      if (journalled === undefined) continue;
      const [name = "", at = ""] = key.split("#");
      const stored = this.#step(this.#byName.get(name)?.requestId ?? "", at);
      if (stored !== journalled) {
        this.#violate(`step ${at} of ${name} was journalled as ${journalled}, the store has ${stored ?? "nothing"}`);
      }
    }
    for (const { requestId, work } of this.#rows.requests.values()) {
      for (const [at, { act }] of placed(work.acts)) {
        const stored = act === "step" ? this.#step(requestId, at) : undefined;
        const last = this.#history.steps.get(`${work.name}#${at}`)?.effects.at(-1)?.value;
        if (stored !== undefined && stored !== last) {
          this.#violate(`step ${at} of ${work.name} stands as ${stored}, its last effect was ${last ?? "none"}`);
        }
      }
    }
  }

  #step(requestId: string, at: string): string | undefined {
    const entry = this.#rows.journal(requestId).get(`step-${at}#1`) as StepEntry | undefined;
    return entry?.value as string | undefined;
  }

  /** An assignment that ended did so once, as its readers saw it, and as its answers imply. */
  outcome(request: Accepted): void {
    const { requestId, work, parentRunId, deadlineMs } = request;
    const stored = this.#rows.outcomes.get(requestId);
    const seen = this.#history.endings.get(requestId);
    const what = `the result of ${work.name} (${requestId})`;
    if (stored === undefined) {
      if (seen) this.#violate(`${what} was told as ${JSON.stringify(seen)} and is not in the store`);
      return;
    }
    const { outcome } = stored;
    if (seen && seen.status !== outcome.status) this.#violate(`${what} was told as ${seen.status}: ${show(stored)}`);
    if (outcome.status === "completed") {
      if (seen && seen.text !== digest(outcome.text))
        this.#violate(`${what} was told as ${seen.text}: ${show(stored)}`);
      const expected = throws(work) ? "a failure" : this.#expected(requestId, work);
      if (outcome.text !== expected)
        this.#violate(`${what} is ${digest(outcome.text)}, it must be ${digest(expected)}`);
      return;
    }
    const { code } = outcome.error;
    if (seen && seen.code !== code) this.#violate(`${what} was told as ${seen.code}: ${show(stored)}`);
    const parent = parentRunId === undefined ? undefined : this.#rows.requestOfRun(parentRunId);
    const permitted: Record<string, boolean> = {
      worker_error: throws(work) && outcome.error.message === `${work.name} throws`,
      deadline_exceeded: deadlineMs !== undefined,
      closed: this.#history.works.get(work.name)?.closing === true,
      ...this.parked.permitted(request),
      parent_closed: parent !== undefined && this.#rows.outcomes.get(parent.requestId)?.outcome.status !== "completed",
    };
    if (permitted[code] !== true) this.#violate(`${what} has no reason: ${show(stored)}`);
  }

  #expected(requestId: string, work: Accepted["work"]): string {
    const asks = this.#rows.asksOf(requestId);
    return expectedText(work, {
      answer: (question) => saidOf(asks.get(question)?.answer?.message ?? "an answer that is missing"),
      step: (at) => this.#step(requestId, at) ?? "a step that is missing",
      child: (_, name) => this.#childEnding(requestId, name),
    });
  }

  #childEnding(parentId: string, name: string): { text: string } | { code: string } {
    const child = this.#byName.get(name);
    const stored = child && this.#rows.outcomes.get(child.requestId);
    if (child === undefined || stored === undefined) return { code: "a child that has not ended" };
    const entries = [...this.#rows.journal(parentId).values()];
    const entry = entries.find(
      (each): each is AssignEntry => "requestId" in each && each.requestId === child.requestId,
    );
    if (entry?.outcome === undefined || show(entry.outcome) !== show(stored)) {
      this.#violate(
        `the end of child ${name} stands in its parent's journal as ${show(entry?.outcome)}: ${show(stored)}`,
      );
    }
    const { outcome } = stored;
    return outcome.status === "completed" ? { text: outcome.text } : { code: outcome.error.code };
  }

  /** A delivery goes only when its owner got it, and what stands points at something that is open. */
  deliveries(): void {
    for (const stored of this.#rows.outcomes.values()) {
      const { requestId, deliveryId } = stored;
      const request = this.#rows.requests.get(requestId);
      const isVisited = request !== undefined && this.#history.visits.started.has(request.work.name);
      if (isVisited && this.parked.received(request, stored)) continue;
      if (deliveryId === undefined || request === undefined || this.#rows.deliveries.has(deliveryId)) continue;
      if (request.parentRunId !== undefined) continue; // its parent's journal shows it
      if (this.#history.endings.has(requestId) || this.#history.maybeTaken.has(requestId)) continue;
      this.#violate(
        `the result of ${request.work.name} (${requestId}) is lost: nobody got it and its delivery is gone`,
      );
    }
    for (const { askId, deliveryId, answer, abandoned, requestId, parked } of this.#rows.asks.values()) {
      if (answer || abandoned || this.#rows.deliveries.has(deliveryId)) continue;
      const toOwner = parked !== undefined || this.#rows.requests.get(requestId)?.parentRunId === undefined;
      if (toOwner && this.#history.asks.get(askId)?.handed !== true) {
        this.#violate(`the question ${askId} is lost: no receiver got it and its delivery is gone`);
      }
    }
    for (const [deliveryId, handed] of this.#history.deliveries) {
      if (handed.certain && this.#rows.deliveries.has(deliveryId)) {
        this.#violate(`delivery ${deliveryId} was acknowledged and stands in the store again`);
      }
    }
    for (const { deliveryId, kind, requestId, askId } of this.#rows.deliveries.values()) {
      const ask = this.#rows.asks.get(askId ?? "");
      const open = kind === "result" ? this.#rows.outcomes.has(requestId) : ask && !ask.answer && !ask.abandoned;
      if (!open) this.#violate(`delivery ${deliveryId} stands for a ${kind} of ${requestId} that is not open`);
    }
  }

  /** Whatever has not ended has a worker, and something that moves it on. */
  waysOn(): void {
    const ordered = new Set(this.#rows.orders.map(({ runId }) => runId));
    const parents = new Set([...this.#rows.workers.values()].filter(isLive).map(({ path }) => path.split("/").at(-2)));
    for (const { requestId, runId, work } of this.#rows.requests.values()) {
      if (this.#rows.outcomes.has(requestId)) continue;
      const worker = this.#rows.workers.get(runId);
      const asks = openAsks(worker?.context.ask ?? null).flatMap((askId) => this.#rows.asks.get(askId) ?? []);
      const waits = worker?.state === "blocked.onOwner" && asks.some((ask) => !ask.answer && !ask.abandoned);
      const onChildren = worker?.state === "blocked.onChildren" && parents.has(runId);
      if (worker && (ordered.has(runId) || waits || onChildren)) continue;
      this.#violate(`worker ${work.name} (${requestId}) has no way on: ${worker?.state ?? "it has no row"}`);
    }
    for (const runId of ordered) {
      if (!this.#rows.workers.has(runId)) this.#violate(`an order stands for run ${runId}, which has no worker`);
    }
    for (const { state, context } of this.#rows.workers.values()) {
      const request = context.assignment?.requestId ?? "";
      const delivery = this.#rows.outcomes.get(request)?.deliveryId ?? "";
      if (state === "settling.undelivered" && !this.#rows.deliveries.has(delivery)) {
        this.#violate(`worker ${context.label} (${request}) waits for the acknowledgement of a delivery that is gone`);
      }
    }
  }

  /** A label belongs to one worker, and every worker has its own. */
  labels(): void {
    for (const [key, { runId }] of this.#rows.labels) {
      const worker = this.#rows.workers.get(runId);
      if (worker === undefined) this.#violate(`label ${key} belongs to run ${runId}, which has no worker`);
    }
    for (const [key, runId] of this.#rows.claims) {
      if (!this.#rows.workers.has(runId)) this.#violate(`${key} stands for run ${runId}, which has no worker`);
    }
    for (const { context } of this.#rows.workers.values()) {
      const holder = this.#rows.labels.get(keys.label(context.workspace, context.label))?.runId;
      if (holder !== context.runId) {
        this.#violate(`worker ${context.runId} is labelled ${context.label}, which belongs to ${holder ?? "nobody"}`);
      }
    }
    for (const requestId of [...this.#rows.deadlines, ...this.#rows.due]) {
      if (this.#rows.outcomes.has(requestId)) this.#violate(`a deadline stands for ${requestId}, which has ended`);
    }
  }

  /** Everything was answered and acknowledged: all ended, all delivered, nothing stands any more. */
  nothingLeft(): void {
    for (const { requestId, work } of this.#rows.requests.values()) {
      if (!this.#rows.outcomes.has(requestId)) this.#violate(`${work.name} (${requestId}) has not ended`);
    }
    const left = {
      workers: [...this.#rows.workers.keys()],
      deliveries: [...this.#rows.deliveries.keys()],
      orders: this.#rows.orders.map(({ runId }) => runId),
      labels: [...this.#rows.labels.keys()],
      deadlines: [...this.#rows.deadlines, ...this.#rows.due, ...this.#rows.expiries],
      lists: [...this.#rows.parked.keys()],
      counts: [...this.#rows.counted],
      trees: [...this.#rows.visited],
      questions: [...this.#rows.asks.values()].flatMap((ask) => (ask.answer || ask.abandoned ? [] : [ask.askId])),
    };
    for (const [kind, ids] of Object.entries(left)) {
      if (ids.length > 0)
        this.#violate(`${ids.length} ${kind} are left when all is done: ${ids.slice(0, 5).join(", ")}`);
    }
  }

  #violate(message: string): void {
    this.violations.push(message);
  }
}

const treeOf = (owner: string): string => ownerKeyOf({ id: owner });
const isLive = ({ path, state }: StoredWorker): boolean => path.includes("/") && state !== "settling.undelivered";
const show = (stored: OutcomeRecord | undefined): string =>
  stored === undefined ? "nothing" : digest(JSON.stringify(stored));
