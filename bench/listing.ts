import { createHerd } from "../runtime/index.ts";
import { inFolder, median, rounded } from "./cycle.ts";
import { agents, parkElsewhere, subjectAt } from "./parking.ts";

const ENTRIES = 10_000;
const SUBJECTS = 100;
const ROUNDS = 5;

export interface ListingFigure {
  name: "listing";
  entries: number;
  subjects: number;
  listAllMs: number;
  listOneMs: number;
}

/** Lists 10,000 parked asks by a key that all of them share, and those of one subject by its own. */
export async function listing(): Promise<ListingFigure> {
  return inFolder(async (directory) => {
    await parkElsewhere(directory, ENTRIES, SUBJECTS);
    const herd = await createHerd({ directory, agents, passive: true });
    const timed = async (keys: Record<string, string>, entries: number) => {
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const began = performance.now();
        const { length } = await herd.parked({ scope: "bench", keys });
        times.push(performance.now() - began);
        if (length !== entries) throw new Error(`${entries} entries were parked, the list has ${length}`);
      }
      return rounded(median(times));
    };
    const listAllMs = await timed({ desk: "all" }, ENTRIES);
    const listOneMs = await timed({ order: subjectAt(7).keys["order"] as string }, ENTRIES / SUBJECTS);
    await herd.close();
    return { name: "listing", entries: ENTRIES, subjects: SUBJECTS, listAllMs, listOneMs };
  });
}
