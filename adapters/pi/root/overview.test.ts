import { expect, test } from "vitest";
import type { Listing } from "../../../runtime/index.ts";
import { overview } from "./overview.ts";

type Worker = Listing["workers"][number];
const worker = (label: string, state: string, more: Partial<Worker> = {}): Worker => ({
  label,
  state,
  steerable: false,
  agentDefinition: "scout",
  ...more,
});
const agentDefinitions = [
  { name: "scout", description: "Looks around" },
  { name: "implementer", description: "Changes things", enabled: false as const },
];

test("workers stand below their parents with what they are at, agents with what they are for, and no id anywhere", () => {
  const workers = [
    worker("child", "working", { parentLabel: "parent", stale: true, inactiveMs: 660_000 }),
    worker("parent", "blocked", { agentDefinition: "generalist", piSessionId: "a-session", activeRequestId: "an-id" }),
    worker("scout", "blocked", { question: { askId: "an-ask", question: "Which\none?", envelope: "" }, cwd: "/here" }),
  ];
  expect(overview({ workers, agentDefinitions })).toBe(
    [
      "Workers (3)",
      "  parent   blocked (generalist)",
      "    child  working (scout), no sign of life for 11 minutes",
      "  scout    blocked, asks: Which one?",
      "",
      "Agents (2)",
      "  scout        Looks around",
      "  implementer  disabled",
    ].join("\n"),
  );
});

test("what is wrong is said, and nobody is left out whose parents cannot be told", () => {
  const workers = [
    worker("one", "unknown", { parentLabel: "two", diagnostic: "its row cannot be read" }),
    worker("two", "working", { parentLabel: "one" }),
    worker("left", "ready", { parentLabel: "gone", orphan: true }),
    worker("full", "settling", { resultError: { code: "write_failure", message: "the disk is full" } }),
  ];
  const cleanupErrors = { old: "a prompt\u001b[31m stays" };
  const text = overview({ workers, agentDefinitions: [], cleanupErrors });
  expect(text).toContain("left  ready (scout), its parent is gone");
  expect(text).toContain("full  settling (scout), the disk is full");
  expect(text).toContain("one   unknown (scout), its row cannot be read");
  expect(text).toContain("To mend\n  old: a prompt");
  expect(text).not.toContain("\u001b");
  expect(overview({ workers: [], agentDefinitions: [] })).toBe("No workers\n\nAgents (0)");
});
