import { readFile } from "node:fs/promises";
import { text as textOf } from "node:stream/consumers";
import type { Command } from "commander";
import { outcomeJson } from "../../../runtime/visitor.ts";
import type { DoorRequest, VisitOutcome } from "../../../runtime/index.ts";
import { UsageError } from "../errors.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { outcomeText } from "../visiting.ts";
import { table, visible } from "../terminal/text.ts";

const NOTES = `
FILE holds a door as JSON: { "subject": …, "target": …, "contract": { "resume_expr": "…", … }, "defaults": … }. It is gone
through once, as a program's door, and not saved. "-" reads it from the standard input.

Without a program that has the herd open nothing is waited for: what the visit comes to is left on the subject.

Example:
  herd door run refund.json --input '{ "order": "7" }'`;

/** `herd door run` goes through a door that a file holds, `herd door list` shows those that are saved. */
export function addDoor(program: Command): void {
  const door = program.command("door").description("visit what is parked by a contract of jq programs");
  withCommonOptions(
    door
      .command("run")
      .description("go through the door in a file, once, and print what that comes to")
      .argument("<file>", "the door, as JSON; - is the standard input")
      .option("--input <json>", "what the door is given", "null"),
  )
    .addHelpText("after", NOTES)
    .action(async (file: string, options: CommonOptions & { input: string }) => {
      const request = requestIn(jsonIn(await contentOf(file), file));
      const input = jsonIn(options.input, "--input");
      await withHerd(options.directory, { reads: false }, async (reached) => {
        const through = await reached.herd.door(request);
        const outcome = (await through.visit(input, { waits: reached.isRunning })) as VisitOutcome;
        const text = await outcomeText(outcome, reached, options);
        await show(options, { ...outcomeJson(outcome), running: reached.isRunning }, () => text);
      });
    });
  withCommonOptions(door.command("list").description("show the saved doors")).action(async (options: CommonOptions) => {
    await withHerd(options.directory, { reads: true }, async ({ herd, directory }) => {
      const doors = (await herd.doors()).map(({ name = "", kind, url }) => ({ name, kind, ...(url && { url }) }));
      await show(options, doors, () => {
        if (doors.length === 0) return `No door is saved in ${directory}.`;
        const rows = doors.map(({ name, kind, url = "" }) => [visible(name), kind, visible(url)]);
        return table([["name", "kind", ""], ...rows], new Set()).join("\n");
      });
    });
  });
}

async function contentOf(file: string): Promise<string> {
  if (file === "-") return textOf(process.stdin);
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    throw new UsageError(`name a file that can be read: ${visible(file)} cannot (${code})`);
  }
}

function jsonIn(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`write ${visible(where)} as JSON: ${visible((error as Error).message)}`);
  }
}

const CONTRACT: Record<string, string> = {
  cancel_expr: "cancelExpr",
  resume_expr: "resumeExpr",
  start_expr: "startExpr",
  extras_expr: "extrasExpr",
};

/** A document has the names of the public contract. What it has besides is refused where a door is made. */
function requestIn(document: unknown): DoorRequest {
  const { kind: _, name: __, contract, ...door } = (document ?? {}) as Record<string, unknown>;
  if (typeof contract !== "object" || contract === null) return door as unknown as DoorRequest;
  const expressions = Object.entries(contract).map(([field, value]) => [CONTRACT[field] ?? field, value]);
  return { ...door, contract: Object.fromEntries(expressions) } as unknown as DoorRequest;
}
