import { whyNot, rules } from "../../machines/eligibility.ts";
import type { Json } from "../../machines/vocabulary.ts";
import { paneIdOf } from "../backend.ts";
import { AskOwnerInput } from "../asks/ask.ts";
import { isExpired } from "../asks/expiry.ts";
import { parkedTool } from "../asks/tools.ts";
import { askFields, EXPIRED } from "../asks/formats.ts";
import type { Question } from "../asks/question.ts";
import { reply, replyFields } from "../asks/reply.ts";
import { HerdError, internalFailure, invalidRequest, withoutUndefined } from "../errors.ts";
import { idFrom } from "../ids.ts";
import type { RequestRecord } from "../kernel/records.ts";
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
import { Asking } from "./asking.ts";
import type { Execution } from "./execution.ts";
import type { AssignEntry, StepEntry, Wanted } from "./journal.ts";
import { attempt, checkStep, jsonOf } from "./step.ts";
import { StopReason, type AskOwnerRequest, type ParkedAskRequest, type Worker } from "./worker.ts";

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

  const asking = new Asking(execution);

  /** Refuses what only a worker with subagents may do. */
  const assertDelegates = (operation: string): void => {
    if ((engine.agents.find(request.agent)?.subagents?.length ?? 0) > 0 && request.parentRunId === undefined) return;
    throw notController(request.label, operation);
  };

  async function claimAsk({ name, question }: AskOwnerRequest) {
    await execution.live();
    return execution.claim({ kind: "ask", name, base: "ask", text: question, asks: "owner" });
  }

  async function askAsTool(claim: { type: string; key: string }, asked: AskOwnerRequest, batch: string[]) {
    try {
      const { askId, requestId, answer } = await asking.ask(claim, asking.ofOwner(asked, batch));
      return { ok: true as const, askId, assignmentRequestId: requestId, answer: answer.message as string };
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
    ...(request.input !== undefined && { input: request.input }),
    extras: request.extras ?? {},
    history: execution.history,
    get signal() {
      return execution.signal;
    },

    async askOwner(asked) {
      return asking.placed(asked.wait ?? true, undefined, async (place) => {
        const claim = await claimAsk(asked);
        return (await asking.ask(claim, asking.ofOwner(asked, ["ask_owner"]), place)).answer.message as string;
      });
    },

    async ask(given: ParkedAskRequest) {
      const { wait = true, groupId } = (given ?? {}) as ParkedAskRequest;
      return asking.placed(wait !== false, groupId, async (place) => {
        const fields = await askFields(given);
        await execution.live();
        const { name, question: text, to: asks } = fields;
        const claim = await execution.claim({ kind: "ask", name, base: "ask", text, asks });
        const { message } = (await asking.ask(claim, asking.parked(fields), place)).answer;
        return isExpired(message) ? EXPIRED : message;
      });
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
            (await told(() =>
              subagent(engine, controller(), input, { replyId: idFrom(`${request.requestId}/${key}`) }),
            )) as Json;
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

    async parkedTool(tool, input) {
      // What waits on the subject of the outermost run, as it is when this is called for the first time.
      const { owner } = await engine.kernel.tree(treeId);
      return journalled(
        `parked:${tool}`,
        async (key) => {
          const worker = { visitor: runId, id: idFrom(`${request.requestId}/${key}`) };
          const caller = { worker, signal: execution.signal };
          const call = () => execution.visiting(parkedTool(engine, owner, tool, input, caller)) as Promise<object>;
          return (await told(call)) as unknown as Json;
        },
        {},
      );
    },

    async list() {
      assertDelegates("list");
      return list(engine, { ...place, cwd: request.cwd });
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
