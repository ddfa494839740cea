import { visible } from "../../../runtime/client.ts";

/** The product's settings, all under the key `herd` of Pi's own settings. */
export interface Settings {
  /** The name of our tool; `herd_subagent` where another extension has it. */
  toolName: string;
  /** How long a session without a screen waits for its workers, in milliseconds. */
  printWaitMs: number;
  /** Whether a person is asked when an extension opens a dialog in a worker. */
  dialogs: "ask" | "deny";
  limits: { inlineBytes?: number; payloadBytes?: number };
}

export const DEFAULTS: Settings = { toolName: "subagent", printWaitMs: 60 * 60 * 1_000, dialogs: "ask", limits: {} };

const DAY_MS = 24 * 60 * 60 * 1_000;

interface Rule {
  says: string;
  holds(value: unknown): boolean;
}

const whole = (least: number, most: number): Rule => ({
  says: `a whole number from ${least} to ${most}`,
  holds: (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most,
});

const OTHER_TOOLS = ["list_parked", "resume_parked", "cancel_parked", "ask_owner"];

const RULES: Record<string, Rule> = {
  toolName: {
    says: "a name of letters, digits and underscores, with a letter first, of at most 64 characters, and none of our other tools",
    holds: (value) =>
      typeof value === "string" && /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(value) && !OTHER_TOOLS.includes(value),
  },
  printWaitMs: whole(0, DAY_MS),
  dialogs: { says: `"ask" or "deny"`, holds: (value) => value === "ask" || value === "deny" },
  "limits.inlineBytes": whole(0, 1_048_576),
  "limits.payloadBytes": whole(1_024, 1_048_576),
  // Read by the host, from the project's own file.
  projectAgents: { says: "true or false", holds: (value) => typeof value === "boolean" },
};

const NAMES = Object.keys(RULES).join(", ");
/** Characters of a wrong value that a message shows. */
const SHOWN = 60;

/**
 * Reads them out of Pi's settings (those of a trusted project over the global ones).
 * @returns what counts, and what is wrong with the rest: that is ignored.
 */
export function readSettings(all: unknown): { settings: Settings; findings: string[] } {
  const given = isFields(all) ? all["herd"] : undefined;
  const settings = { ...DEFAULTS, limits: { ...DEFAULTS.limits } };
  if (given === undefined) return { settings, findings: [] };
  if (!isFields(given))
    return { settings, findings: [`the setting herd is ignored: it must be an object, and is ${shown(given)}`] };
  const findings: string[] = [];
  const take = (fields: Record<string, unknown>, prefix: string, into: object) => {
    for (const [name, value] of Object.entries(fields)) {
      const path = `${prefix}${name}`;
      const rule = Object.hasOwn(RULES, path) ? RULES[path] : undefined;
      if (path === "limits" && isFields(value)) take(value, "limits.", settings.limits);
      else if (path === "limits") findings.push(ignored(path, `it must be an object, and is ${shown(value)}`));
      else if (rule === undefined) findings.push(ignored(path, `there is none of that name; there are ${NAMES}`));
      else if (!rule.holds(value)) findings.push(ignored(path, `it must be ${rule.says}, and is ${shown(value)}`));
      else Object.assign(into, { [name]: value });
    }
  };
  take(given, "", settings);
  return { settings, findings };
}

function ignored(path: string, why: string): string {
  return `the setting herd.${path} is ignored: ${why}`;
}

/** A value as a message shows it. */
function shown(value: unknown): string {
  const text = visible(JSON.stringify(value) ?? String(value));
  return text.length > SHOWN ? `${text.slice(0, SHOWN).toWellFormed()}…` : text;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
