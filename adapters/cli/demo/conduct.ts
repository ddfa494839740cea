import { createHash } from "node:crypto";
import type { Assignment, Herd, Owner, Question, Result } from "../../../runtime/index.ts";
import { EXIT, Refusal } from "../errors.ts";
import type { Audience } from "./audience.ts";
import type { censusAgents } from "./agents.ts";

/** The herd that takes a census. */
export type CensusHerd = Herd<keyof ReturnType<typeof censusAgents>>;
type CensusOwner = Owner<keyof ReturnType<typeof censusAgents>>;

/** How often is looked whether the store still takes what the workers do, in milliseconds. */
const LOOK_EVERY_MS = 500;

/**
 * Takes the census of a folder to its end, or to the question that nobody here answers, which stays open.
 *
 * Every folder is an owner of its own, so what is under way for it stands in that owner's list: there the next process
 * finds the assignment again, whenever the last one ended. Only when there is none, a new one begins.
 *
 * What can happen twice: showing the result, when the process ends after that and before its acknowledgement is on
 * disk. Nothing else.
 * @param answer what to answer when asked; without it the audience is asked.
 * @throws Refusal when a worker cannot go on in this program, HerdError when the store takes nothing any more.
 */
export async function conduct(
  herd: CensusHerd,
  folder: string,
  audience: Audience,
  answer?: string,
): Promise<Result | Question> {
  const shown = Promise.withResolvers<Result>();
  let isShown = false;
  const owner = herd.owner(ownerOf(folder), {
    cwd: folder,
    onResult: async (result) => {
      await audience.tell(result);
      isShown = true;
      shown.resolve(result);
    },
  });
  audience.watch(herd, owner);
  const trouble = watchForTrouble(herd, owner);
  try {
    return await Promise.race([follow(), trouble.promise]);
  } finally {
    trouble.stop();
    owner.detach();
  }

  async function follow(): Promise<Result | Question> {
    const open = await openCensus(herd, owner);
    // A finished one may have been shown, and so have left the list, before we looked.
    if (open === "finished" || isShown) return shown.promise;
    const assignment = open ?? (await owner.assign({ agent: "census", task: folder }));
    audience.begin(folder, assignment.requestId, open === undefined ? "begins" : "goes on");
    for await (const event of assignment) {
      if (event.type === "result") {
        // A closed assignment is delivered to nobody, so nobody has shown it yet.
        if (event.result.status === "closed") await audience.tell(event.result);
        return event.result;
      }
      const reply = answer ?? (await audience.ask(event.question));
      if (reply === undefined) return event.question;
      await event.question.reply(reply);
    }
    throw new Error("the assignment ended without a result");
  }
}

/** The owner of a folder's census. Ids have at most 512 characters. */
function ownerOf(folder: string): string {
  const id = `demo:${folder}`;
  return id.length <= 512 ? id : `demo:sha256:${createHash("sha256").update(folder).digest("hex")}`;
}

/** The owner's census that has not ended; "finished" when only its result still has to be shown. */
async function openCensus(herd: CensusHerd, owner: CensusOwner): Promise<Assignment | "finished" | undefined> {
  const { workers } = await owner.list();
  const unknown = workers.find(({ state }) => state === "unknown");
  if (unknown) {
    throw new Refusal(
      `The worker "${unknown.label}" cannot be read from the store: ${unknown.diagnostic}. ` +
        `Next: take the census with another --directory.`,
      EXIT.unhealthy,
    );
  }
  const census = workers.find(({ agentDefinition, parentLabel }) => agentDefinition === "census" && !parentLabel);
  if (census === undefined) return undefined;
  return census.activeRequestId === undefined ? "finished" : herd.assignment(census.activeRequestId);
}

/** Rejects when a worker is held, or when the herd stops taking what its workers do. */
function watchForTrouble(herd: CensusHerd, owner: CensusOwner): { promise: Promise<never>; stop(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const look = async () => {
    if (herd.status === "fenced") {
      throw new Refusal(
        "The store takes no more writes, so nothing goes on here. Next: make sure that its disk has room and can be " +
          "written, then run the command again; it goes on where it was.",
        EXIT.fenced,
      );
    }
    const { workers } = await owner.list();
    const held = workers.find(({ diagnostic }) => diagnostic !== undefined);
    if (held) throw new Refusal(`The worker "${held.label}" cannot go on. ${held.diagnostic}`);
  };
  const timer = setInterval(() => void look().catch(reject), LOOK_EVERY_MS);
  const unsubscribe = herd.on("held", () => void look().catch(reject));
  return {
    promise,
    stop: () => {
      clearInterval(timer);
      unsubscribe();
    },
  };
}
