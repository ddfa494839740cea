import { whyNot, rules } from "../../machines/eligibility.ts";
import type { Json } from "../../machines/vocabulary.ts";
import { paneIdOf } from "../backend.ts";
import { askOwner, AskOwnerInput } from "../asks/ask.ts";
import type { Question } from "../asks/question.ts";
import { reply, replyFields } from "../asks/reply.ts";
import { HerdError, internalFailure, invalidRequest, withoutUndefined } from "../errors.ts";
import { idFrom } from "../ids.ts";
import type { AskRecord, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { parseRequest } from "../request.ts";
import type { Controller } from "../subagent/acceptance.ts";
import { assign } from "../subagent/assign.ts";
import { close, closeFields } from "../subagent/close.ts";
import { list } from "../subagent/list.ts";
import { notController } from "../subagent/parent.ts";
import { steer } from "../subagent/steer.ts";
import type { ToolRefusal } from "../subagent/shapes.ts";
import { subagent } from "../subagent/tools.ts";
import { keys } from "../store/keys.ts";
import type { Execution } from "./execution.ts";
import type { AskEntry, AssignEntry, StepEntry, Wanted } from "./journal.ts";
import { attempt, checkStep, jsonOf } from "./step.ts";
import { StopReason, type AskOwnerRequest, type Worker } from "./worker.ts";

/** Reasons that pass by themselves: the typed call waits for them. */
const PASSING = new Set(["already_waiting", "request_unacknowledged", "child_work_active"]);

type ChildRequest = Parameters<Worker["assign"]>[0];

/** The worker object that a function gets. */
export function workerFace(execution: Execution): Worker {
  const { engine, treeId, runId, request } = execution;
  const place = { treeId, path: request.path, workspace: request.workspace };

  const controller = (child?: { key: string; whose: string }): Controller => ({
    ...place,
    owner: { id: request.sessionId },
    cwd: request.cwd,
    parent: {
      runId,
      sessionId: request.sessionId,
      allowed: engine.agents.find(request.agent)?.subagents ?? [],
      ...(child && { call: callOf(child) }),
    },
  });

  const callOf = ({ key, whose }: { key: string; whose: string }) => ({
    requestId: idFrom(`${request.requestId}/${key}`),
    journal: (step: Step, { requestId, runId: childRunId, task }: RequestRecord) => {
      const entry: AssignEntry = { kind: "assign", agent: whose, task, requestId, runId: childRunId };
      step.put(keys.journal(request.requestId, key), entry);
      step.after(() => execution.journal.set(key, entry));
    },
  });

  /** Refuses what only a worker with subagents may do. */
  const assertDelegates = (operation: string): void => {
    if ((engine.agents.find(request.agent)?.subagents?.length ?? 0) > 0 && request.parentRunId === undefined) return;
    throw notController(request.label, operation);
  };

  /** Opens the question under its key, waiting while what speaks against it passes by itself. */
  async function open(
    key: string,
    { question, files }: AskOwnerRequest,
    calls: string[],
    wait: boolean,
  ): Promise<void> {
    for (;;) {
      const seen = execution.changes;
      try {
        await execution.during("running", () =>
          askOwner(engine, {
            treeId,
            runId,
            request: { question, ...(files && { files }) },
            calls,
            journalKey: key,
          }),
        );
        return;
      } catch (error) {
        if (!wait || !(error instanceof HerdError) || !PASSING.has(error.reason)) throw error;
        execution.functions.noteWait(runId, whyItWaits(execution));
        await execution.news("turn", seen);
        execution.functions.noteWait(runId, undefined);
        await execution.live();
      }
    }
  }

  /** Waits for the answer in the journal. */
  async function answerOf(key: string): Promise<AskRecord & { answer: NonNullable<AskRecord["answer"]> }> {
    for (;;) {
      const ask = (execution.journal.get(key) as AskEntry | undefined)?.ask;
      if (ask?.answer) {
        await execution.proceed();
        return { ...ask, answer: ask.answer };
      }
      await execution.news("answer");
    }
  }

  async function claimAsk({ name, question }: AskOwnerRequest) {
    await execution.live();
    return execution.claim({ kind: "ask", name, base: "ask", text: question });
  }

  async function ask(claim: { type: string; key: string }, asked: AskOwnerRequest, calls: string[], wait: boolean) {
    if (claim.type === "recorded") return answerOf(claim.key);
    const once = async () => {
      await open(claim.key, asked, calls, wait);
      return answerOf(claim.key);
    };
    return wait ? execution.inTurn(once) : once();
  }

  async function askAsTool(claim: { type: string; key: string }, asked: AskOwnerRequest, batch: string[]) {
    try {
      const { askId, requestId, answer } = await ask(claim, asked, batch, false);
      return { ok: true as const, askId, assignmentRequestId: requestId, answer: answer.message };
    } catch (error) {
      return refusalOf("ask_owner", error);
    }
  }

  async function journalled<T extends Json | void>(
    name: string,
    fn: (key: string) => T | Promise<T>,
    options: { attempts?: number; backoffMs?: number },
  ): Promise<T> {
    await execution.gate();
    const claim = await execution.claim({ kind: "step", name, base: "step" });
    if (claim.type === "recorded") return (claim.entry as StepEntry).value as T;
    return execution.during("steps", async () => {
      const value = await attempt(execution, () => fn(claim.key), options);
      const entry: StepEntry = { kind: "step", ...(value !== undefined && { value: jsonOf(name, value) }) };
      await record(claim.key, entry);
      return entry.value as T;
    });
  }

  /** A command to a child stands in the journal with its receipt: by the time of a re-run the child may be gone. */
  async function once<T extends object>(name: string, command: (key: string) => Promise<T>): Promise<T> {
    return (await journalled(name, async (key) => (await command(key)) as unknown as Json, {})) as unknown as T;
  }

  async function record(key: string, entry: StepEntry): Promise<void> {
    await execution.record("step", (step) => {
      step.put(keys.journal(request.requestId, key), entry);
      step.send(runId, { type: "activity", at: step.now });
    });
    execution.journal.set(key, entry);
  }

  /** A refusal because the herd closes is no answer: the call is made again at the next start. */
  async function told<T extends object>(fn: () => Promise<T>): Promise<T> {
    const answer = await fn();
    if (isRefusal(answer)) await execution.live();
    return answer;
  }

  /**
   * What a model was refused stands in the journal like what it was given: a re-run would else show it another
   * conversation.
   */
  async function refusable<T extends object>(
    key: string,
    fn: () => Promise<T | ToolRefusal>,
  ): Promise<T | ToolRefusal> {
    const refusedKey = `${key}~refused`;
    const before = execution.journal.get(refusedKey) as StepEntry | undefined;
    if (before) return before.value as unknown as ToolRefusal;
    const answer = await told(fn);
    if (isRefusal(answer)) await record(refusedKey, { kind: "step", value: answer as unknown as Json });
    return answer;
  }

  /** A command that an open question of another branch refuses: that may have come between the gate and the step. */
  async function unasked<T>(command: () => Promise<T>): Promise<T> {
    for (;;) {
      await execution.gate();
      try {
        return await execution.during("running", command);
      } catch (error) {
        if (!(error instanceof HerdError) || error.reason !== "already_waiting") throw error;
      }
    }
  }

  const face: Worker = {
    requestId: request.requestId,
    cwd: request.cwd,
    files: request.files,
    extras: {},
    history: execution.history,
    get signal() {
      return execution.signal;
    },

    async askOwner(asked) {
      return (await ask(await claimAsk(asked), asked, ["ask_owner"], asked.wait ?? true)).answer.message;
    },

    async askOwnerTool(input, { batch }) {
      try {
        if (execution.pendingSteps > 0) throw notSole();
        const asked = withoutUndefined(parseRequest("ask_owner", AskOwnerInput, input)) as AskOwnerRequest;
        const claim = await claimAsk(asked);
        return await refusable(claim.key, () => askAsTool(claim, asked, batch));
      } catch (error) {
        return refusalOf("ask_owner", error);
      }
    },

    async step<T extends Json | void>(
      name: string,
      fn: () => T | Promise<T>,
      options: { attempts?: number; backoffMs?: number } = {},
    ): Promise<T> {
      checkStep(name, options);
      execution.pendingSteps++;
      try {
        return await journalled(name, fn, options);
      } finally {
        execution.pendingSteps--;
      }
    },

    async assign(given: ChildRequest) {
      await execution.gate();
      assertDelegates("assign");
      const { name, onQuestion, ...rest } = given;
      const wanted = assignOf(rest, name);
      const claim = await execution.claim(wanted);
      if (claim.type === "new") {
        await unasked(() => assign(engine, controller({ key: claim.key, whose: wanted.agent }), rest));
      }
      return execution.children.handle(claim.key, execution.journal.get(claim.key) as AssignEntry, onQuestion);
    },

    async escalate(question: Question) {
      const answer = await face.askOwner({
        name: `escalate:${question.askId}`,
        question: question.question,
        ...(question.files.length > 0 && { files: question.files.map((file) => file.path) }),
      });
      await question.reply(answer);
    },

    steers: () => execution.steers.take().map(({ steerId, message, files }) => ({ id: steerId, message, files })),

    report(note, usage) {
      execution.report(note, usage);
    },

    async subagent(input) {
      await execution.gate();
      try {
        assertDelegates("delegate");
        const given = (input ?? {}) as Record<string, unknown>;
        const { action, task } = given;
        if (action !== "assign" || typeof task !== "string") {
          const name = `subagent:${String(action)}:${String(given["label"])}`;
          const call = async (key: string) =>
            (await told(() => subagent(engine, controller(), input, idFrom(`${request.requestId}/${key}`)))) as Json;
          return await journalled(name, call, {});
        }
        const wanted = assignOf(given as { task: string }, undefined);
        const claim = await execution.claim(wanted);
        if (claim.type === "recorded") return accepted(execution, claim.entry as AssignEntry);
        const by = controller({ key: claim.key, whose: wanted.agent });
        return await refusable(claim.key, () => execution.during("running", () => subagent(engine, by, input)));
      } catch (error) {
        return refusalOf("subagent", error);
      }
    },

    async assignment(requestId, { onQuestion } = {}) {
      await execution.live();
      assertDelegates("read assignments");
      for (const [key, entry] of execution.journal.entries()) {
        if (entry.kind === "assign" && entry.requestId === requestId) {
          return execution.children.handle(key, entry, onQuestion);
        }
      }
      throw new HerdError({
        category: "target_not_found",
        reason: "target_not_found",
        message: `"${request.label}" has assigned nothing under ${JSON.stringify(requestId)}`,
        nextAction: "use the request_id that assign gave",
        operation: "assignment",
      });
    },

    async list() {
      assertDelegates("list");
      return list(engine, place);
    },

    async reply(given) {
      await execution.gate();
      assertDelegates("reply");
      const { askId, message, id } = given as { askId?: string; message: Json; id?: string };
      const before = askId !== undefined && id === undefined && execution.children.answeredBefore(askId, message);
      if (before) return before;
      const command = { ...replyFields(given), owner: runId, cwd: request.cwd, operation: "reply", ...place };
      if (askId !== undefined) return execution.during("running", () => reply(engine, command));
      // What a label means is the question of the moment: a re-run would mean another one.
      return once(`reply:${command.label}`, (key) =>
        reply(engine, { ...command, id: id ?? idFrom(`${request.requestId}/${key}`) }),
      );
    },

    async steer(given) {
      await execution.gate();
      assertDelegates("steer");
      return once(`steer:${given?.label}`, () => steer(engine, { ...place, cwd: request.cwd }, given));
    },

    async close(given) {
      await execution.gate();
      assertDelegates("close");
      const closing = { ...place, ...closeFields(given), operation: "close" };
      return once(`close:${closing.label}`, () => close(engine, closing));
    },
  };
  return face;

  function notSole(): HerdError {
    const rule = rules.askOwner[0] as NonNullable<ReturnType<typeof whyNot>>;
    return invalidRequest(
      "ask_owner",
      rule.reason,
      `The worker cannot ask its owner: ${rule.message}`,
      rule.nextAction,
    );
  }
}

/** What keeps a question back that nothing moves on by itself: a result that the function has not read yet. */
function whyItWaits({ engine, treeId, runId }: Execution): string | undefined {
  const tree = engine.kernel.loaded(treeId);
  const worker = tree?.worker(runId);
  if (tree === undefined || worker === undefined) return undefined;
  const { active, undelivered } = worker.context.children;
  if (active > 0 || undelivered === 0) return undefined;
  const unread = [...tree.resting.values()].filter(({ path }) => path.startsWith(`${worker.path}/`));
  const labels = unread.map(({ context }) => `"${context.label}"`).join(", ");
  return `It has a question for its owner and waits until it has read the result of ${labels}: await its result().`;
}

/** How an assignment is told apart in the journal: by agent, session or label, whichever names its worker. */
function assignOf(
  { agent, session, label, task }: { agent?: string; session?: string; label?: string; task: string },
  name: string | undefined,
): Wanted & { agent: string } {
  const whose = agent ?? (session === undefined ? `label ${label}` : `session ${session}`);
  return { kind: "assign", name, base: `assign:${whose}`, agent: whose, text: task };
}

function accepted({ engine }: Execution, { requestId }: AssignEntry): object {
  const child = engine.request(requestId);
  const place = child && engine.kernel.loaded(child.tree)?.worker(child.runId)?.context.place;
  return {
    ok: true,
    action: "assign",
    label: child?.label,
    pane_id: child && paneIdOf(child, place),
    session_id: child?.sessionId,
    request_id: requestId,
  };
}

function isRefusal(answer: object): boolean {
  return (answer as { ok?: unknown }).ok === false;
}

/**
 * A failure as a model reads it.
 * @throws StopReason: no answer for a model, which would go on with it; the work goes on at the next start.
 */
function refusalOf(operation: string, error: unknown): ToolRefusal {
  if (error instanceof StopReason) throw error;
  const failure = error instanceof HerdError ? error : internalFailure(operation, error);
  return { ok: false, error: failure.toJSON() as ToolRefusal["error"] };
}
