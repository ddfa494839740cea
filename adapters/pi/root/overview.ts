import { visible } from "../../../runtime/client.ts";
import type { Listing } from "../../../runtime/index.ts";

type Worker = Listing["workers"][number];

/** What runs for a session and what can be assigned, as a person wants to see it: without ids and paths. */
export function overview({ workers, agentDefinitions, cleanupErrors = {}, findings = [] }: Listing): string {
  const agents = agentDefinitions.map(({ name, description, enabled }) => [
    name,
    enabled === false ? "disabled" : sentence(description),
  ]);
  const troubles = [
    ...Object.entries(cleanupErrors).map(([label, error]) => `${label}: ${error}`),
    ...findings.map(({ message }) => message),
  ];
  return [
    workers.length === 0 ? "No workers" : `Workers (${workers.length})`,
    ...columns(placed(workers).map(({ worker, depth }) => [`${"  ".repeat(depth)}${worker.label}`, doing(worker)])),
    "",
    `Agents (${agents.length})`,
    ...columns(agents),
    ...(troubles.length === 0 ? [] : ["", "To mend", ...troubles.map((trouble) => `  ${sentence(trouble)}`)]),
  ].join("\n");
}

/** Workers below the ones that assigned them; one whose parent is not there stands by itself. */
function placed(workers: readonly Worker[]): { worker: Worker; depth: number }[] {
  const isThere = new Set(workers.map(({ label }) => label));
  const below = (parent: string | undefined, depth: number, above: readonly Worker[]): ReturnType<typeof placed> =>
    workers
      .filter((worker) => !above.includes(worker))
      .filter(({ parentLabel }) =>
        parent === undefined ? parentLabel === undefined || !isThere.has(parentLabel) : parentLabel === parent,
      )
      .flatMap((worker) => [{ worker, depth }, ...below(worker.label, depth + 1, [...above, worker])]);
  const found = below(undefined, 0, []);
  // Those whose ancestry is a circle.
  const lost = workers.filter((worker) => !found.some((each) => each.worker === worker));
  return [...found, ...lost.map((worker) => ({ worker, depth: 0 }))];
}

/** What a worker is at, and what is wrong with it. */
function doing(worker: Worker): string {
  const { label, state, agentDefinition: agent, question, inactiveMs, diagnostic, cleanupError, resultError } = worker;
  return [
    agent === "" || agent === label ? state : `${state} (${agent})`,
    ...(worker.stale ? [`no sign of life for ${Math.floor((inactiveMs ?? 0) / 60_000)} minutes`] : []),
    ...(worker.orphan ? ["its parent is gone"] : []),
    ...(question === undefined ? [] : [`asks: ${sentence(question.question)}`]),
    ...[diagnostic, cleanupError].flatMap((text) => (text === undefined ? [] : [sentence(text)])),
    ...(resultError === undefined ? [] : [sentence((resultError as { message?: string }).message ?? "no result")]),
  ].join(", ");
}

/** Lines in which what comes second stands in a column of its own. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(0, ...rows.map(([first = ""]) => visible(first).length));
  return rows.map(([first = "", second = ""]) => `  ${visible(first).padEnd(width)}  ${second}`.trimEnd());
}

/** On one line, and not the whole of something long. */
function sentence(text: string): string {
  const line = visible(text.replace(/\s+/g, " ").trim());
  return line.length <= 160 ? line : `${line.slice(0, 159)}…`;
}
