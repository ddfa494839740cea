import { Option, type Command } from "commander";
import { hostDirectory } from "../host/place.ts";
import { DEFAULT_DIRECTORY, usualDirectory } from "./invocation.ts";

/** What every command of a herd can be given. */
export interface CommonOptions {
  directory: string;
  json?: boolean;
}

/** Adds the options that every command of a herd has. */
export function withCommonOptions(command: Command): Command {
  return command
    .addOption(
      new Option("-d, --directory <directory>", "the folder of the herd")
        .default(usualDirectory(), `${DEFAULT_DIRECTORY} here, or where there is none that of this user's Pi`)
        .env("HERD_DIRECTORY"),
    )
    .option("--json", "print JSON for programs");
}

/** Adds the option that says which host is meant: that of this user's Pi unless it is another one. */
export function withHostDirectory(command: Command): Command {
  return command.addOption(
    new Option("-d, --directory <directory>", "the folder of the herd; that of this user's Pi unless given").default(
      hostDirectory(),
      "herd in Pi's own folder",
    ),
  );
}

/** Adds the option that says whose worker is meant. */
export function withOwnerOption(command: Command): Command {
  return command.option("-o, --owner <id>", "whose workers; needed when several owners use a label");
}

/** Adds the options that say which worker of a label is meant. */
export function withLabelOptions(command: Command): Command {
  return withOwnerOption(command).option(
    "-w, --workspace <name>",
    "which workspace; needed when an owner uses a label in several",
  );
}

/** Adds the option that says on whose subject to look. */
export function withSubjectOption(command: Command): Command {
  return command.option("-s, --subject <subject>", "SCOPE?KEY=VALUE&KEY=VALUE, or an owner's id; any unless given");
}

/** Prints a text for people, or a value for programs; resolves when it is out. */
export function show(options: Pick<CommonOptions, "json">, value: unknown, text: () => string): Promise<void> {
  return write(options.json ? JSON.stringify(value, undefined, 2) : text());
}

/** Writes lines to stdout; resolves when they are out. Nothing for an empty text. */
export function write(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (text === "") return resolve();
    process.stdout.write(`${text}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

/** How wide lines may be; a pipe takes any. */
export function columnsOfOutput(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
}

/** The fields of an object under the names that programs outside read: `request_id` for `requestId`. */
export function snakeCase(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key.replace(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`), entry]),
  );
}
