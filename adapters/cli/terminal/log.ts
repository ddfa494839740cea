import type { Herd } from "../../../runtime/index.ts";
import { listAll, listInJson } from "../listing.ts";
import { write } from "../output.ts";
import { visible } from "./text.ts";
import { herdLines } from "./herd-lines.ts";

interface Happening {
  event: string;
  label: string;
  /** What a person reads of it. */
  says: string;
  [field: string]: unknown;
}

/**
 * Writes what there is, then a line, or with `json` an object, for whatever happens.
 * @param options.owner only what belongs to this owner, where an event says whose it is.
 * @returns how to stop.
 */
export async function follow(herd: Herd, options: { json?: boolean; owner?: string }): Promise<() => void> {
  // One after another, in the order in which they happened.
  let written: Promise<void> = Promise.resolve();
  const tell = (happening: Happening) => {
    const { says, ...fields } = happening;
    const at = new Date().toISOString();
    const line = options.json
      ? JSON.stringify({ at, ...fields })
      : `${at.slice(11, 19)}  ${visible(happening.label)}  ${visible(says)}`;
    written = written.then(() => write(line));
  };
  const isMeant = (owner: { id: string }) => options.owner === undefined || owner.id === options.owner;
  const stops = [
    herd.on("state", ({ label, agent, from, to }) => tell({ event: "state", label, agent, from, to, says: to })),
    herd.on("question", ({ label, owner, askId, requestId, question }) => {
      if (!isMeant(owner)) return;
      const ids = { owner: owner.id, ask_id: askId, request_id: requestId };
      tell({ event: "question", label, ...ids, question, says: `asks: ${question.split("\n")[0]}` });
    }),
    herd.on("result", ({ label, owner, requestId, status, error }) => {
      if (!isMeant(owner)) return;
      const why = error === undefined ? "" : `: ${error.code}: ${error.message}`;
      tell({ event: "result", label, owner: owner.id, request_id: requestId, status, error, says: status + why });
    }),
    herd.on("report", ({ label, requestId, note }) => {
      tell({ event: "report", label, request_id: requestId, note, says: note });
    }),
    herd.on("held", ({ label, requestId, diagnostic }) => {
      tell({ event: "held", label, request_id: requestId, diagnostic, says: `held: ${diagnostic}` });
    }),
  ];
  const shown = options.json
    ? JSON.stringify({
        at: new Date().toISOString(),
        event: "list",
        owners: await listInJson(herd, options.owner),
      })
    : herdLines(await listAll(herd, options.owner), { columns: Number.POSITIVE_INFINITY, notes: new Map() }).join("\n");
  written = written.then(() => write(shown));
  await written;
  return () => {
    for (const stop of stops) stop();
  };
}
