import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Evidence } from "../../machines/vocabulary.ts";
import { invalidRequest, messageOf } from "../errors.ts";
import type { MessageBytes } from "./limits.ts";

export interface EvidenceOptions {
  /** Relative paths start here. */
  cwd: string;
  /** The text the files support; it counts towards the limit. */
  text: string;
  operation: string;
  limits: MessageBytes;
}

interface Candidate {
  path: string;
  bytes: number;
  text: string | undefined;
}

/**
 * Reads the files given with a task, a question or a reply. Complete strict UTF-8 is embedded while it fits, in
 * the caller's order, never in part; every other regular file is a reference to its canonical path.
 *
 * Source: the `subagent` API, "files"; specification of files and message envelope.
 * @throws HerdError `invalid_request` naming the path, or the bytes and the limit; nothing was changed.
 */
export async function readEvidence(files: readonly string[], options: EvidenceOptions): Promise<Evidence[]> {
  const { cwd, operation, text, limits } = options;
  const { payloadBytes } = limits;
  const candidates = new Map<string, Candidate>();
  for (const file of files) {
    const candidate = await readCandidate(resolve(cwd, file), file, limits, operation);
    if (!candidates.has(candidate.path)) candidates.set(candidate.path, candidate);
  }
  let used = Buffer.byteLength(text);
  for (const candidate of candidates.values()) used += Buffer.byteLength(referenceOf(candidate));
  if (used > payloadBytes) throw tooLarge(operation, used, payloadBytes);
  const evidence: Evidence[] = [];
  for (const candidate of candidates.values()) {
    const { path, bytes } = candidate;
    const fits = candidate.text !== undefined && used + Buffer.byteLength(candidate.text) <= payloadBytes;
    if (fits) used += Buffer.byteLength(candidate.text as string);
    evidence.push(fits ? { path, bytes, text: candidate.text as string } : { path, bytes });
  }
  return evidence;
}

/**
 * The evidence of a message without files: none, if the text itself fits. Synchronous, so that commands without
 * files run in the order of their calls.
 * @throws HerdError `invalid_request` with the bytes and the limit.
 */
export function noEvidence({ text, operation, limits: { payloadBytes } }: EvidenceOptions): Evidence[] {
  // UTF-8 takes at most three bytes a UTF-16 unit.
  if (text.length * 3 > payloadBytes && Buffer.byteLength(text) > payloadBytes) {
    throw tooLarge(operation, Buffer.byteLength(text), payloadBytes);
  }
  return [];
}

/**
 * The message a model reads: the bare text without files, else one section a file and the text last. Paths are
 * JSON-quoted, so that no file name can forge a section.
 */
export function envelope(
  kind: "Task" | "Steer" | "Reply" | "Question",
  text: string,
  files: readonly Evidence[],
): string {
  if (files.length === 0) return text;
  const sections = files.map((file) =>
    file.text === undefined
      ? referenceOf(file)
      : `Included file ${JSON.stringify(file.path)} (${file.bytes} bytes):\n${file.text}`,
  );
  return [...sections, `${kind}:\n${text}`].join("\n\n---\n\n");
}

function referenceOf(file: { path: string; bytes: number }): string {
  return `Referenced file ${JSON.stringify(file.path)} (${file.bytes} bytes)`;
}

async function readCandidate(
  path: string,
  given: string,
  { inlineBytes, payloadBytes }: MessageBytes,
  operation: string,
): Promise<Candidate> {
  let handle;
  try {
    const canonical = await realpath(path);
    // Non-blocking, so that a FIFO without a writer cannot hang the call.
    handle = await open(canonical, constants.O_RDONLY | constants.O_NONBLOCK);
    const before = await handle.stat({ bigint: true });
    if (!before.isFile()) throw new Error("it is not a regular file");
    const bytes = Number(before.size);
    // What is larger than the message may be is not read: it could not be embedded.
    const embeds = inlineBytes > 0 && bytes <= Math.min(inlineBytes, payloadBytes);
    if (!embeds) return { path: canonical, bytes, text: undefined };
    const content = await handle.readFile();
    const after = await handle.stat({ bigint: true });
    const torn = content.length !== bytes || after.size !== before.size || after.mtimeNs !== before.mtimeNs;
    return { path: canonical, bytes, text: torn ? undefined : strictText(content) };
  } catch (error) {
    throw invalidRequest(
      operation,
      "unreadable_file",
      `Cannot read file ${JSON.stringify(given)}: ${messageOf(error)}`,
      "give a path of a readable regular file, relative to the working directory",
      { field: "files", cause: error },
    );
  } finally {
    await handle?.close();
  }
}

/** The content as text if it is complete strict UTF-8 without NUL; a byte order mark is kept. */
export function strictText(content: Buffer): string | undefined {
  if (content.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

function tooLarge(operation: string, bytes: number, limit: number) {
  return invalidRequest(
    operation,
    "payload_too_large",
    `The message is ${bytes} bytes with its files, the limit is ${limit}`,
    "shorten the text or put it into a file",
    { details: { bytes, limit } },
  );
}
