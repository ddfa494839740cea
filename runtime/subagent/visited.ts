import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import type { LabelRecord } from "../kernel/records.ts";
import { keys, prefixed } from "../store/keys.ts";

/** Where somebody acts on workers: a tree, a place in it, and what labels are unique in there. */
export interface Place {
  treeId: string;
  path: string;
  workspace: string;
}

/**
 * The places of the runs that visits started for an owner: each has a tree and a workspace of its own, and belongs to the
 * owner all the same.
 */
export async function visitedPlaces({ kernel }: Engine, { treeId, path }: Place): Promise<Place[]> {
  if (path !== "") return [];
  const rows = await kernel.range(prefixed(keys.visited(treeId, "")));
  return rows.map(([key]) => {
    const tree = key.slice(key.lastIndexOf("!") + 1);
    return { treeId: tree, path: "", workspace: tree };
  });
}

/**
 * Where a label of an owner is: in its own tree, else in that of a run that a visit started. Nothing is awaited for its own:
 * commands run in the order of their calls.
 * @throws HerdError `target_ambiguous` when several such runs have the label.
 */
export function placeOf(engine: Engine, by: Place, label: string, operation: string): Place | Promise<Place> {
  if (engine.kernel.recovers) return engine.kernel.ready().then(() => placeOf(engine, by, label, operation));
  const own = engine.kernel.read<LabelRecord>(keys.label(by.workspace, label));
  return by.path !== "" || own !== undefined ? by : visitedPlaceOf(engine, by, label, operation);
}

async function visitedPlaceOf(engine: Engine, by: Place, label: string, operation: string): Promise<Place> {
  const places = await visitedPlaces(engine, by);
  const holders = places.filter(({ workspace }) => engine.kernel.read(keys.label(workspace, label)) !== undefined);
  // Whoever has none of that label hears so where it would be.
  if (holders.length <= 1) return holders[0] ?? by;
  throw new HerdError({
    category: "target_ambiguous",
    reason: "target_ambiguous",
    message: `${holders.length} runs on this subject are labelled "${label}"`,
    nextAction: "cancel the one that is meant by the id of its parked entry",
    operation,
    ids: { label },
  });
}
