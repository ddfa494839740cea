import { gistOf, isFields, jsonOf, nameOf, type Fields } from "../text/facts.ts";

/** A `list` answer as lines: workers below their parents, what cannot be placed, definitions, clean-up errors. */
export function listLines(answer: Fields): string[] {
  const rows = (answer["workers"] as unknown[]).filter(isFields);
  const { placed, unmatched } = grouped(rows);
  const lines = [rows.length === 0 ? "No workers" : `Workers (${rows.length})`];
  for (const { row, depth } of placed) lines.push(...workerLines(row, "  ".repeat(depth)));
  if (unmatched.length > 0) {
    lines.push("", `Unmatched ancestry (recovery only) (${unmatched.length})`);
    for (const { row, why } of unmatched) lines.push(...recoveryLines(row, why));
  }
  const definitions = listOf(answer["agent_definitions"]).filter(isFields);
  if (definitions.length > 0) lines.push("", `Agent definitions (${definitions.length})`);
  for (const definition of definitions) lines.push(...definitionLines(definition));
  const findings = listOf(answer["definition_findings"]).filter(isFields);
  if (findings.length > 0) lines.push("", `Findings about definitions (${findings.length})`);
  for (const { effect, message } of findings)
    lines.push(`- ${nameOf(effect)}: ${gistOf(message) ?? "no more is said"}`);
  const failures = isFields(answer["cleanup_errors"]) ? Object.entries(answer["cleanup_errors"]) : [];
  if (failures.length > 0) lines.push("", `Cleanup errors (${failures.length})`);
  for (const [label, error] of failures) lines.push(`- ${nameOf(label)}: ${problemOf(error) ?? "unknown"}`);
  return lines;
}

interface Grouped {
  placed: { row: Fields; depth: number }[];
  /** `why` is set when the row itself does not say why it cannot be placed. */
  unmatched: { row: Fields; why?: string }[];
}

function grouped(rows: readonly Fields[]): Grouped {
  const children = new Map<unknown, Fields[]>();
  const labels = new Set<unknown>();
  for (const row of rows) {
    if (isUnplaced(row)) continue;
    labels.add(row["label"]);
    const parent = row["parent_label"] ?? undefined;
    const siblings = children.get(parent) ?? [];
    children.set(parent, siblings);
    siblings.push(row);
  }
  const placed: Grouped["placed"] = [];
  const seen = new Set<Fields>();
  const open = (children.get(undefined) ?? []).map((row) => ({ row, depth: 0 })).toReversed();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { row, depth } = next;
    if (seen.has(row)) continue;
    seen.add(row);
    placed.push(next);
    if (row["label"] === undefined) continue;
    for (const child of (children.get(row["label"]) ?? []).toReversed()) open.push({ row: child, depth: depth + 1 });
  }
  const unmatched = rows
    .filter((row) => !seen.has(row))
    .map((row) => {
      if (isUnplaced(row)) return { row };
      const parent = row["parent_label"];
      const why = labels.has(parent) ? "its ancestry leads to no root" : `its parent ${nameOf(parent)} is not listed`;
      return { row, why };
    });
  return { placed, unmatched };
}

/** Says of itself that it has no place, or has no name by which it could have one. */
function isUnplaced(row: Fields): boolean {
  return row["recovery_only"] === true || row["label"] === undefined;
}

function workerLines(row: Fields, indent: string): string[] {
  const states = [
    nameOf(row["state"] ?? "unknown"),
    row["steerable"] === true && "steerable",
    row["queued"] === true && "queued",
    row["stale"] === true && staleFor(row["inactive_ms"]),
    row["orphan"] === true && "orphan",
  ];
  const facts = phrases({
    agent: row["agent_definition"] === undefined ? undefined : nameOf(row["agent_definition"]),
    request: row["active_request_id"],
    model: row["model"],
    thinking: row["thinking"],
  });
  return [
    `${indent}- ${nameOf(row["label"])}: ${[...states.filter((state) => state !== false), ...facts].join(", ")}`,
    ...below(indent, {
      ...identityOf(row, ["pi_session_id", "pi_session_path", "pane_id", "cwd"]),
      ...troublesOf(row),
    }),
  ];
}

/** Shown so that somebody can look for what is left; nothing here can be acted on. */
function recoveryLines(row: Fields, why: string | undefined): string[] {
  const identity = identityOf(row, [
    "agent_definition",
    "parent_label",
    "active_request_id",
    "pi_session_id",
    "pi_session_path",
    "owner_session_id",
    "workspace_id",
    "tab_id",
    "pane_id",
    "cwd",
  ]);
  const name = row["label"] === undefined ? "unnamed" : nameOf(row["label"]);
  return [
    `- ${name}: unknown, not actionable`,
    ...below("", { ...identity, ...(why !== undefined && { why }), ...troublesOf(row) }),
  ];
}

function identityOf(row: Fields, names: readonly string[]): Fields {
  const identity = phrases(Object.fromEntries(names.map((name) => [name.replaceAll("_", " "), row[name]])));
  return { identity: identity.length === 0 ? undefined : identity.join(", ") };
}

function troublesOf(row: Fields): Fields {
  const { question } = row;
  const asks = isFields(question) ? `${gistOf(question["question"])} (ask ${nameOf(question["ask_id"])})` : question;
  return {
    asks,
    diagnostic: row["diagnostic"],
    cleanup_error: problemOf(row["cleanup_error"]),
    result_error: problemOf(row["result_error"]),
  };
}

function definitionLines(definition: Fields): string[] {
  const { name, description, enabled } = definition;
  const text = gistOf(description);
  const policy = phrases({
    model: definition["model"],
    thinking: definition["thinking"],
    subagents: wordsOf(definition["subagents"]),
    tools: definition["noTools"] === true ? "none" : wordsOf(definition["tools"]),
    "builtin tools": definition["noBuiltinTools"] === true ? "none" : undefined,
    "without tools": wordsOf(definition["excludeTools"]),
    skills: definition["noSkills"] === true ? "none" : wordsOf(definition["skills"]),
  });
  return [
    `- ${nameOf(name)}${enabled === false ? " (disabled)" : ""}${text === undefined ? "" : `: ${text}`}`,
    ...below("", { policy: policy.length === 0 ? undefined : policy.join("; ") }),
  ];
}

/** An error as somebody recorded it: a text, or an object with code and message. */
function problemOf(error: unknown): string | undefined {
  if (!isFields(error)) return gistOf(error);
  const { code, category, message, nextAction } = error;
  const parts = [gistOf(code ?? category), gistOf(message)].filter((part) => part !== undefined);
  if (parts.length === 0) return gistOf(jsonOf(error));
  const next = gistOf(nextAction);
  return parts.join(": ") + (next === undefined ? "" : ` Next: ${next}`);
}

/** `name: text` on a line of its own below a row. */
function below(indent: string, facts: Fields): string[] {
  return Object.entries(facts).flatMap(([name, value]) => {
    const text = gistOf(value);
    return text === undefined ? [] : [`${indent}    ${name}: ${text}`];
  });
}

/** `name value`, to be joined to one line. */
function phrases(facts: Fields): string[] {
  return Object.entries(facts).flatMap(([name, value]) => {
    const text = gistOf(value);
    return text === undefined ? [] : [`${name} ${text}`];
  });
}

function staleFor(inactiveMs: unknown): string {
  return typeof inactiveMs === "number" ? `stale for ${Math.floor(inactiveMs / 60_000)} min` : "stale";
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function wordsOf(value: unknown): string | undefined {
  return Array.isArray(value) && value.length > 0 ? value.map(nameOf).join(" ") : undefined;
}
