import { spawn } from "node:child_process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createHerd } from "../runtime/index.ts";
import { inFolder } from "./cycle.ts";
import { agents, parkElsewhere, subjectAt } from "./parking.ts";

const ENTRIES = 100_000;
const SUBJECTS = 1_000;

export interface DiskFigure {
  name: "disk";
  entries: number;
  rssMb: number;
  emptyRssMb: number;
  heapMb: number;
  emptyHeapMb: number;
}

/** Memory of a process with 100,000 parked asks on disk, beside one with none. */
export async function disk(): Promise<DiskFigure> {
  return inFolder(async (directory) => {
    const empty = await memoryOf(`${directory}/empty`);
    await parkElsewhere(`${directory}/full`, ENTRIES, SUBJECTS);
    const full = await memoryOf(`${directory}/full`);
    const name = "disk";
    return {
      name,
      entries: ENTRIES,
      rssMb: full.rss,
      emptyRssMb: empty.rss,
      heapMb: full.heap,
      emptyHeapMb: empty.heap,
    };
  });
}

async function memoryOf(directory: string): Promise<{ rss: number; heap: number }> {
  const child = spawn(process.execPath, [import.meta.filename, directory], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (text: Buffer) => (said += text.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  return JSON.parse(said) as { rss: number; heap: number };
}

if (process.argv[1] === import.meta.filename) {
  const herd = await createHerd({ directory: process.argv[2] as string, agents });
  await herd.parked({ scope: "bench", keys: { order: subjectAt(1).keys["order"] as string } });
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { rss, heapUsed } = process.memoryUsage();
  const inMb = (bytes: number) => Math.round(bytes / 1024 / 102.4) / 10;
  console.log(JSON.stringify({ rss: inMb(rss), heap: inMb(heapUsed) }));
  await herd.close();
}
