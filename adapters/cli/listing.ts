import type { Herd, Owner, OwnerRow, WorkerRow } from "../../runtime/index.ts";
import { Refusal } from "./errors.ts";
import { commandFor } from "./invocation.ts";
import { visible } from "./terminal/text.ts";

/** An owner with its workers, whatever workspaces they are in. */
export interface OwnerListing {
  owner: OwnerRow;
  workers: WorkerRow[];
}

/** `counter-10` after `counter-9`. The order in the store says nothing. */
const byLabel = new Intl.Collator("en", { numeric: true });

/** Every owner with something open, or one of them. */
export async function listAll(herd: Herd, only?: string): Promise<OwnerListing[]> {
  const owners = (await herd.owners()).filter(({ id }) => only === undefined || id === only);
  return Promise.all(
    owners.map(async (owner) => {
      const lists = await Promise.all(owner.workspaces.map((workspace) => asOwner(herd, owner, workspace).list()));
      // What cannot be read belongs to no workspace, so each lists it.
      const workers = new Map(lists.flatMap((list) => list.workers).map((row) => [keyOf(row), row]));
      return { owner, workers: [...workers.values()].toSorted((a, b) => byLabel.compare(a.label, b.label)) };
    }),
  );
}

/** The same for programs: the workers as the `subagent` tool lists them. */
export async function listInJson(herd: Herd, only?: string): Promise<object[]> {
  const owners = (await herd.owners()).filter(({ id }) => only === undefined || id === only);
  return Promise.all(
    owners.map(async (owner) => {
      const lists = await Promise.all(
        owner.workspaces.map((workspace) => asOwner(herd, owner, workspace).subagent({ action: "list" })),
      );
      return { ...owner, workers: lists.flatMap(({ workers }) => workers as object[]) };
    }),
  );
}

/** Acts as an owner that the store knows. */
export function asOwner(herd: Herd, { id, scope, keys }: OwnerRow, workspace: string): Owner<string> {
  return herd.owner(scope === undefined ? id : { scope, keys: keys ?? {} }, { workspace });
}

/** One worker of the herd, with whoever may act on it. */
export interface Found {
  owner: Owner<string>;
  worker: WorkerRow;
}

/**
 * The one worker with this label.
 * @param which the folder of the herd; the id of its owner and its workspace, for a label that is used more than once.
 * @throws Refusal when there is none, or more than one.
 */
export async function findByLabel(
  herd: Herd,
  label: string,
  which: { directory: string; owner?: string; workspace?: string },
): Promise<Found> {
  const found = (await listAll(herd, which.owner)).flatMap(({ owner, workers }) =>
    workers
      .filter((worker) => worker.label === label)
      .filter(({ workspaceId }) => which.workspace === undefined || workspaceId === which.workspace)
      .map((worker) => ({ owner, worker })),
  );
  const [first, second] = found;
  if (first === undefined) {
    const whose = which.owner === undefined ? "" : ` of ${visible(which.owner)}`;
    throw new Refusal(
      `There is no worker "${visible(label)}"${whose}. Next: ${commandFor(which.directory, "list")} shows those that there are.`,
    );
  }
  if (second !== undefined) {
    const owners = [...new Set(found.map(({ owner }) => visible(owner.id)))];
    const places = [...new Set(found.map(({ worker }) => visible(worker.workspaceId ?? "")))];
    const whose = owners.length > 1 ? `of ${owners.join(", ")}` : `in the workspaces ${places.join(", ")}`;
    const option = owners.length > 1 ? "--owner ID" : "--workspace NAME";
    throw new Refusal(`"${visible(label)}" is the label of several workers, ${whose}. Next: add ${option}.`);
  }
  const { owner, worker } = first;
  return { owner: asOwner(herd, owner, worker.workspaceId ?? owner.id), worker };
}

function keyOf({ workspaceId = "", label, activeRequestId = "", piSessionId = "" }: WorkerRow): string {
  return JSON.stringify([workspaceId, label, activeRequestId, piSessionId]);
}
