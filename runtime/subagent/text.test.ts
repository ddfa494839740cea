import { describe, expect, test } from "vitest";
import { HerdError, type AgentDefinition } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";
import { columnsOf } from "../text/columns.ts";
import { toolText } from "./text.ts";

const definitions = [
  { name: "implementer", description: "Implements\nan approved change", model: "a/b", subagents: ["tester", "scout"] },
  { name: "old", description: "Not used any more", enabled: false },
];

describe("a list as text", () => {
  test("has children below their parents, what cannot be placed apart, and everything counted", () => {
    const text = toolText({
      ok: true,
      workers: [
        { label: "two", state: "ready", steerable: false, parent_label: "one", pi_session_id: "s2", tokens: {} },
        {
          label: "one",
          state: "working",
          steerable: true,
          agent_definition: "implementer",
          active_request_id: "r1",
          model: "a/b",
          thinking: "high",
          stale: true,
          inactive_ms: 660_000,
          pi_session_id: "s1",
          pane_id: "p1",
          cwd: "/a b",
        },
        { label: "lost", state: "unknown", recovery_only: true, pane_id: "p9", diagnostic: "its parent is missing" },
        { label: "queue", state: "settling", queued: true, orphan: true, cleanup_error: "delivery failed, retrying" },
        {
          label: "asks",
          state: "blocked",
          parent_label: "two",
          question: { ask_id: "q1", question: "Which\nway?" },
          result_error: { code: "write_failure", message: "disk full", nextAction: "close it", retrySafe: false },
        },
        { state: "unknown", recovery_only: true, diagnostic: "unreadable" },
      ],
      agent_definitions: definitions,
      cleanup_errors: { gone: { category: "rollback_failure", message: "the pane is still there" } },
    });
    expect(text.split("\n")).toEqual([
      "Workers (6)",
      "- one: working, steerable, stale for 11 min, agent implementer, request r1, model a/b, thinking high",
      "    identity: pi session id s1, pane id p1, cwd /a b",
      "  - two: ready",
      "      identity: pi session id s2",
      "    - asks: blocked",
      "        asks: Which way? (ask q1)",
      "        result_error: write_failure: disk full Next: close it",
      "- queue: settling, queued, orphan",
      "    cleanup_error: delivery failed, retrying",
      "",
      "Unmatched ancestry (recovery only) (2)",
      "- lost: unknown, not actionable",
      "    identity: pane id p9",
      "    diagnostic: its parent is missing",
      "- unnamed: unknown, not actionable",
      "    diagnostic: unreadable",
      "",
      "Agent definitions (2)",
      "- implementer: Implements an approved change",
      "    policy: model a/b; subagents tester scout",
      "- old (disabled): Not used any more",
      "",
      "Cleanup errors (1)",
      "- gone: rollback_failure: the pane is still there",
    ]);
  });

  test("puts workers whose parents go in a circle or are not listed among those without ancestry", () => {
    const row = (label: string, parent: string) => ({ label, parent_label: parent, state: "working", steerable: true });
    const text = toolText({ ok: true, workers: [row("a", "b"), row("b", "a"), row("c", "nobody")] });
    expect(text.split("\n")).toEqual([
      "Workers (3)",
      "",
      "Unmatched ancestry (recovery only) (3)",
      "- a: unknown, not actionable",
      "    identity: parent label b",
      "    why: its ancestry leads to no root",
      "- b: unknown, not actionable",
      "    identity: parent label a",
      "    why: its ancestry leads to no root",
      "- c: unknown, not actionable",
      "    identity: parent label nobody",
      "    why: its parent nobody is not listed",
    ]);
  });

  test("that is empty says so", () => {
    expect(toolText({ ok: true, workers: [], agent_definitions: [] })).toBe("No workers");
  });

  test("is cut to a width in columns, wide characters counted twice", () => {
    const workers = [{ label: "one", state: "blocked", question: { ask_id: "q", question: "日本語".repeat(40) } }];
    for (const width of [1, 2, 7, 40]) {
      for (const line of toolText({ ok: true, workers, agent_definitions: definitions }, { width }).split("\n")) {
        expect(columnsOf(line)).toBeLessThanOrEqual(width);
      }
    }
  });

  test("keeps one worker's long question from hiding the others, and is bounded with a notice", () => {
    const asking = { label: "asks", state: "blocked", question: { ask_id: "q", question: "why ".repeat(30_000) } };
    const short = toolText({ ok: true, workers: [asking, { label: "other", state: "ready" }] });
    expect(short).toContain("- other: ready");
    expect(short.length).toBeLessThan(1_000);
    const many = Array.from({ length: 5_000 }, (_, index) => ({ label: `w${index}`, state: "ready" }));
    const long = toolText({ ok: true, workers: many });
    expect(long.split("\n")).toHaveLength(2_002);
    expect(long).toMatch(/^Workers \(5000\)\n/);
    expect(long).toMatch(/\n\n\[truncated: the structured answer has all 5001 lines\]$/);
    const saved = toolText({ ok: true, workers: many, full_output_path: "/store/outputs/one.txt" });
    expect(saved).toMatch(/\n\n\[truncated: all 5001 lines are in \/store\/outputs\/one\.txt\]$/);
    const unsaved = toolText({ ok: true, workers: many, full_output_error: "no space" });
    expect(unsaved).toMatch(/all 5001 lines; they could not be saved as text: no space\]$/);
  });

  test("is the same for what the tool answers: questions for the owner, no parent for a parent's own children", async () => {
    const asks: AgentDefinition = { description: "asks", run: (_task, worker) => worker.askOwner({ question: "Go?" }) };
    const seen: string[] = [];
    const lead: AgentDefinition = {
      description: "leads",
      subagents: ["asks"],
      run: async (_task, worker) => {
        const child = await worker.assign({ agent: "asks", task: "x", label: "child", onQuestion: worker.escalate });
        seen.push(toolText(await worker.subagent({ action: "list" })));
        return (await child.result()).text;
      },
    };
    const t = await createTestHerd({ agents: { asks, lead } });
    await t.owner.assign({ agent: "lead", task: "x" });
    const question = await t.question();
    const text = toolText(await t.owner.subagent({ action: "list" }));
    expect(text).toMatch(/\n- lead: blocked, [^]*\n {2}- child: blocked, [^]*\n {6}asks: Go\? \(ask [\w.]+\)\n/);
    expect(text).toContain(`\n    asks: Go? (ask ${question.askId})\n`);
    expect(seen[0]).toMatch(/^Workers \(1\)\n- child: /);
  });
});

describe("an error as text", () => {
  test("has one fact a line: message, operation, reason, ids, stage, causes, what was undone, what to do", () => {
    const error = new HerdError({
      category: "rollback_failure",
      reason: "cleanup_failed",
      message: "The start failed and could not be undone",
      nextAction: "inspect cleanup_errors",
      operation: "assign",
      ids: { label: "one", paneId: "p1", sessionId: "" },
      primary: { category: "pane_not_ready", message: "no shell", operation: "start" },
      cleanup: { category: "internal_failure", message: "pane refused\nto close", operation: "close" },
      details: {
        stage: "agent_start",
        classification: "empty",
        paneSnapshot: "$ pi\n\u001b[31mnot found\u001b[0m\n\n",
      },
      retryAfterMs: 250,
      rollbackOccurred: true,
      retryAttempted: true,
    });
    expect(toolText({ ok: false, error: error.toJSON() }).split("\n")).toEqual([
      "rollback_failure: The start failed and could not be undone.",
      "operation: assign",
      "reason: cleanup_failed",
      "label: one",
      "paneId: p1",
      "stage: agent_start",
      "start answered: empty",
      "primary cause: pane_not_ready in start: no shell",
      "cleanup cause: internal_failure in close: pane refused\\u000ato close",
      "rollback occurred: yes",
      "retry attempted: yes",
      "retry after ms: 250",
      "diagnostic:",
      "  $ pi",
      "  not found",
      "Next: inspect cleanup_errors",
    ]);
  });

  test("is wrapped to a width, so that nothing of it is lost", async () => {
    const t = await createTestHerd({ agents: {} });
    const answer = await t.owner.subagent({ action: "close", label: "nobody" });
    const wide = toolText(answer);
    const narrow = toolText(answer, { width: 24 });
    expect(wide).toMatch(/^target_not_found: .*\noperation: close\nreason: .*\nlabel: nobody\nNext: /);
    expect(narrow.split(/\s+/)).toEqual(wide.split(/\s+/));
    for (const line of narrow.split("\n")) expect(columnsOf(line)).toBeLessThanOrEqual(24);
  });

  test.each([
    [{ ok: false }, "The call failed and says no more."],
    [{ ok: false, error: "no\tluck" }, "no\\u0009luck"],
    [{ ok: false, error: { message: " " } }, ""],
  ])("of an odd form still says what is known: %j", (answer, text) => {
    expect(toolText(answer)).toBe(text);
  });
});

describe("any other answer as text", () => {
  test.each([
    [
      { ok: true, action: "assign", label: "one", pane_id: "p", session_id: "s", request_id: "r" },
      "Assigned to worker one. Its result arrives on its own.\npane_id: p\nsession_id: s\nrequest_id: r",
    ],
    [
      { ok: true, action: "steer", label: "one", request_id: "r", session_id: "s", assignment_request_id: "a" },
      "Sent to worker one.\nrequest_id: r\nsession_id: s\nassignment_request_id: a",
    ],
    [{ ok: true, action: "reply", label: "one", ask_id: "q" }, "Answered worker one.\nask_id: q"],
    [{ ok: true, action: "close", label: "one", cleanup_error: "busy" }, "Closed worker one.\ncleanup_error: busy"],
    [{ ok: true, action: "constructor" }, "Done: the worker."],
    [{ a: ["\u001b[31m"] }, '{"a":["\\u001b[31m"]}'],
    ["text\u009b", '"text\\u009b"'],
    [undefined, "undefined"],
    [10n, "10"],
  ])("is what was done and every id: %o", (answer, text) => {
    expect(toolText(answer)).toBe(text);
  });
});
