import { HerdError } from "../errors.ts";
import { doorContract, shortened, type Place } from "./errors.ts";

const CORRECT = "correct the program";

/** Where jq sees the fault. */
interface Position {
  line: number;
  /** In characters, from 1. */
  column: number;
}

/**
 * What jq says of a program that it does not compile, as an error that names the fault, its line and its column.
 * @param stderr what jq printed.
 * @param variables the names that were declared.
 */
export function uncompiled(place: Place, program: string, variables: readonly string[], stderr: string): HerdError {
  const { fault, position } = firstFault(program, stderr);
  const where = position ? ` (line ${position.line}, column ${position.column})` : "";
  const more = position ? { details: { ...position } } : {};
  const variable = /^\$(\w+) is not defined/.exec(fault)?.[1];
  if (variable !== undefined) {
    const declared = variables.length === 0 ? "no variable" : variables.map((name) => `$${name}`).join(", ");
    return doorContract(
      place,
      "undeclared_variable",
      `${place.field} uses $${variable}${where}, which is not declared there`,
      `use what is declared: ${declared}`,
      more,
    );
  }
  const label = /^\$\*label-(\w+) is not defined/.exec(fault)?.[1];
  const what = label === undefined ? fault : `break $${label} is outside of its label`;
  return doorContract(place, "syntax", `${place.field} is no jq program: ${what}${where}`, CORRECT, more);
}

/** A program that ran and failed, by itself or on what it was given. */
export function failed(place: Place, stderr: string): HerdError {
  const said = stderr.replace(/^jq: (?:parse )?error(?: \(at [^)]*\))?(?: \(not a string\))?: ?/, "").trim();
  return doorContract(place, "runtime_error", `${place.field} failed in jq: ${shortened(said)}`, CORRECT);
}

/** A program that took too long and was ended. */
export function tookTooLong(place: Place, timeoutMs: number): HerdError {
  return doorContract(
    place,
    "timeout",
    `${place.field} was not done after ${timeoutMs} ms and was ended`,
    "make the program cheaper, or its input smaller",
  );
}

/** A program that took more memory than there is, or nested too deep, so that jq broke down. */
export function outOfMemory(place: Place, why: string): HerdError {
  return doorContract(
    place,
    "out_of_memory",
    `${place.field} needs more memory than jq has, or nests too deep (${why.replace(/\. Build with.*/s, "")})`,
    "make the program build less, or its input smaller and flatter",
  );
}

/** The first fault that jq names, in one line; without a position where jq gives none. */
function firstFault(program: string, stderr: string): { fault: string; position?: Position } {
  const placed = /^jq: error: (.*) at <top-level>, line (\d+), column (\d+):$/m.exec(stderr);
  if (!placed) return { fault: /^jq: error: (.*)$/m.exec(stderr)?.[1] ?? stderr };
  const [, fault = "", line, byte] = placed;
  return { fault, position: { line: Number(line), column: characters(program, Number(line), Number(byte)) } };
}

/** jq counts the bytes of a line, people its characters. */
function characters(program: string, line: number, byte: number): number {
  const text = Buffer.from(program.split("\n")[line - 1] ?? "");
  return [...text.subarray(0, byte - 1).toString()].length + 1;
}
