import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { basename, relative } from "node:path";
import { BINARY, languageOf } from "./languages.ts";
import { eachOf, isGone, walk, type WalkOptions } from "./walk.ts";

export type Tally = { files: number; lines: number; bytes: number };

/** What was counted, by language, and what could not be read. */
export type Count = {
  languages: Record<string, Tally>;
  unreadable: {
    count: number;
    /** The first of them, relative to where the census began. */
    paths: string[];
  };
};

export interface CountOptions extends WalkOptions {
  /** What paths are shown relative to. */
  root: string;
  /** Told now and then how many files are done. */
  progress: (files: number) => void;
}

/** Unreadable files that are named; beyond it they are only counted. */
const NAMED = 100;
const CHUNK = 64 * 1024;
/** A zero byte so early in a file means that it is no text, as Git sees it. */
const SNIFFED = 8_000;
// A pipe that took a file's place must not make us wait, nor a link lead us away. Windows has neither flag.
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export function noCount(): Count {
  return { languages: {}, unreadable: { count: 0, paths: [] } };
}

/** Counts every file at and below `folder`. */
export async function countFiles(folder: string, options: CountOptions): Promise<Count> {
  const count = noCount();
  let files = 0;
  const unreadable = (path: string) => addUnreadable(count, 1, [relative(options.root, path) || "."]);
  for await (const visit of walk(folder, options)) {
    if ("unreadable" in visit) {
      unreadable(visit.folder);
      continue;
    }
    await eachOf(visit.files, async (file) => {
      options.signal.throwIfAborted();
      try {
        const { language, ...tally } = await countFile(file);
        addTally(count, language, tally);
        files++;
      } catch (error) {
        // A file that went away since the folder was read is not there to be counted.
        if (!isGone(error)) unreadable(file);
      }
    });
    options.progress(files);
  }
  return count;
}

/** Adds what one part counted to the whole. */
export function addCount(whole: Count, part: Count): void {
  for (const [language, tally] of Object.entries(part.languages)) addTally(whole, language, tally);
  addUnreadable(whole, part.unreadable.count, part.unreadable.paths);
}

function addTally({ languages }: Count, language: string, { files, lines, bytes }: Tally): void {
  const tally = (languages[language] ??= { files: 0, lines: 0, bytes: 0 });
  tally.files += files;
  tally.lines += lines;
  tally.bytes += bytes;
}

function addUnreadable({ unreadable }: Count, count: number, paths: readonly string[]): void {
  unreadable.count += count;
  unreadable.paths.push(...paths.slice(0, Math.max(0, NAMED - unreadable.paths.length)));
}

/**
 * One file: its bytes, and its lines unless it is binary. A line ends with LF or CRLF; what follows the last line end
 * is a line as well, so only an empty file has none.
 * @throws what the operating system says when it cannot be read.
 */
export async function countFile(path: string): Promise<Tally & { language: string }> {
  const file = await open(path, READ);
  try {
    return await countOpen(file, basename(path));
  } finally {
    await file.close();
  }
}

async function countOpen(file: FileHandle, name: string): Promise<Tally & { language: string }> {
  const { size } = await file.stat();
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, size + 1));
  let bytes = 0;
  let lines = 0;
  let last: number | undefined;
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    if (bytes === 0 && chunk.subarray(0, SNIFFED).includes(0)) {
      return { language: BINARY, files: 1, lines: 0, bytes: size };
    }
    bytes += bytesRead;
    for (const byte of chunk) if (byte === LF) lines++;
    last = chunk[bytesRead - 1];
  }
  if (last !== undefined && last !== LF) lines++;
  return { language: languageOf(name), files: 1, lines, bytes };
}

const LF = 0x0a;
