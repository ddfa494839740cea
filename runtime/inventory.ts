import type { WorkerContext } from "../machines/vocabulary.ts";
import type { OwnerRow } from "./api.ts";
import type { Kernel } from "./kernel/kernel.ts";
import type { DeliveryRecord, OwnerRef, RequestRecord } from "./kernel/records.ts";
import type { ActorRow } from "./kernel/tree.ts";
import { ownerKeyOf } from "./owners.ts";
import { keys, prefixed } from "./store/keys.ts";
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
  const owners = byOwner(trees);
  for await (const [key, text] of pages(kernel, prefixed("d!"))) {
    const [, owner = ""] = key.split("!");
    // What is addressed to a parent worker is not the owner's.
    const delivery = parsed<DeliveryRecord>(text);
    if (delivery?.kind !== "result") continue;
    // The tree of a run that a visit started may be gone, and what came of it waits.
    const row = owners.get(owner) ?? ownerOf(kernel, owners, delivery);
    if (row) row.results++;
  }
  return [...owners.values()]
    .flatMap(({ owner, workspaces, ...counts }) => {
      if (owner === undefined || counts.workers + counts.results === 0) return [];
      // Without one that can be read, its own.
      const known = workspaces.size > 0 ? [...workspaces].toSorted() : [owner.id];
      return [{ ...owner, workspaces: known, ...counts }];
    })
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** The row of an owner for whom something waits, though it has no tree; none for a parent worker. */
function ownerOf(
  kernel: Kernel,
  owners: Map<string, Found>,
  { owner: key, requestId }: DeliveryRecord,
): Found | undefined {
  const owner = kernel.committed<RequestRecord>(keys.request(requestId))?.owner;
  if (owner === undefined || ownerKeyOf(owner) !== key) return undefined;
  return Object.assign(found(owners, key), { owner });
}

/** Runs that visits started stand in trees of their own; they are their owner's. */
function byOwner(trees: ReadonlyMap<string, Found>): Map<string, Found> {
  const owners = new Map<string, Found>();
  for (const [tree, row] of trees) {
    // That of a run that a visit started is nobody's to name.
    row.workspaces.delete(tree);
    const key = row.owner ? ownerKeyOf(row.owner) : tree;
    const known = owners.get(key);
    if (known === undefined) owners.set(key, row);
    else {
      known.workers += row.workers;
      known.asking += row.asking;
      for (const workspace of row.workspaces) known.workspaces.add(workspace);
    }
  }
  return owners;
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
  const context = parsed<ActorRow>(text)?.context;
  if (path === "") {
    row.owner = (context as { owner: OwnerRef } | undefined)?.owner ?? row.owner;
    return;
  }
  row.workers++;
  const { workspace, ownerSessionId, ask } = (context ?? {}) as Partial<WorkerContext>;
  if (typeof workspace === "string") row.workspaces.add(workspace);
  if (path.includes("/")) return;
  if (ask) row.asking++;
  // Its workers know whose they are, where its own row cannot be read.
  if (typeof ownerSessionId === "string") row.owner ??= { id: ownerSessionId };
}

function parsed<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

async function* pages(kernel: Kernel, { gte, lt }: Range): AsyncGenerator<Row> {
  for (let from = gte; ;) {
    const rows = await kernel.range({ gte: from, lt, limit: PAGE });
    yield* rows;
    if (rows.length < PAGE) return;
    from = `${rows.at(-1)?.[0]}\u0000`;
  }
}
