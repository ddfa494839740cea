import type { WorkerContext } from "../machines/vocabulary.ts";
import type { OwnerRow } from "./api.ts";
import type { Kernel } from "./kernel/kernel.ts";
import type { DeliveryRecord, OwnerRef } from "./kernel/records.ts";
import type { ActorRow } from "./kernel/tree.ts";
import { prefixed } from "./store/keys.ts";
import type { Range, Row } from "./store/store.ts";

/** Rows in memory at once while a whole kind of rows is read. */
const PAGE = 1_000;

/** Every owner that has workers or results in the store, by id, as it is on disk. */
export async function ownersOf(kernel: Kernel): Promise<OwnerRow[]> {
  const trees = new Map<string, Found>();
  for await (const [key, text] of pages(kernel, prefixed("a!"))) {
    const [, tree = "", path = ""] = key.split("!");
    count(found(trees, tree), path, text);
  }
  for await (const [key, text] of pages(kernel, prefixed("d!"))) {
    const [, owner = ""] = key.split("!");
    const { kind } = JSON.parse(text) as DeliveryRecord;
    // What is addressed to a parent worker is not the owner's.
    const row = trees.get(owner);
    if (row && kind === "result") row.results++;
  }
  return [...trees.values()]
    .flatMap(({ owner, workspaces, ...counts }) => {
      if (owner === undefined || counts.workers + counts.results === 0) return [];
      return [{ ...owner, workspaces: [...workspaces].toSorted(), ...counts }];
    })
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

interface Found {
  owner: OwnerRef | undefined;
  workspaces: Set<string>;
  workers: number;
  asking: number;
  results: number;
}

function found(trees: Map<string, Found>, tree: string): Found {
  const known = trees.get(tree);
  if (known) return known;
  const fresh: Found = { owner: undefined, workspaces: new Set(), workers: 0, asking: 0, results: 0 };
  trees.set(tree, fresh);
  return fresh;
}

/** A row that cannot be read still counts as a worker: `list` shows what is wrong with it. */
function count(row: Found, path: string, text: string): void {
  let actor: ActorRow | undefined;
  try {
    actor = JSON.parse(text) as ActorRow;
  } catch {
    actor = undefined;
  }
  if (path === "") {
    row.owner = (actor?.context as { owner: OwnerRef } | undefined)?.owner;
    return;
  }
  row.workers++;
  const context = actor?.context as WorkerContext | undefined;
  if (context === undefined) return;
  if (typeof context.workspace === "string") row.workspaces.add(context.workspace);
  if (context.ask && !path.includes("/")) row.asking++;
}

async function* pages(kernel: Kernel, { gte, lt }: Range): AsyncGenerator<Row> {
  for (let from = gte; ;) {
    const rows = await kernel.range({ gte: from, lt, limit: PAGE });
    yield* rows;
    if (rows.length < PAGE) return;
    from = `${rows.at(-1)?.[0]}\u0000`;
  }
}
