import { quoted } from "../../host/herd-command.ts";
import { calledAs, DEFAULT_DIRECTORY, type Started } from "../invocation.ts";

/** What a census was asked with, as it was typed. */
export interface Asked {
  folder: string;
  directory: string;
}

/** The very command that goes on with a census, in the way that this one was started; with an answer or without. */
export function commandLine(asked: Asked, answer: string | undefined, started: Started): string {
  const windows = started.platform === "win32";
  const quote = (text: string, always = false) => quoted(text, { always, windows });
  const options = answer === undefined ? [] : ["--answer", quote(answer, true)];
  if (started.env["npm_lifecycle_event"] === "start") {
    if (asked.directory !== DEFAULT_DIRECTORY) options.unshift("--directory", quote(asked.directory));
    return ["npm start", ...(options.length > 0 ? ["--", ...options] : [])].join(" ");
  }
  const folder = asked.folder.startsWith("-") ? `./${asked.folder}` : asked.folder;
  return [calledAs(started), "demo", quote(folder), "--directory", quote(asked.directory), ...options].join(" ");
}
