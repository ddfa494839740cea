// Control characters, also as halves of escape sequences, and marks that turn the direction of what follows.
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

// Escape sequences: strings with their end (titles, links), control sequences with parameters, and short ones.
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0000-\u001f\u007f-\u009f]*(?:\u0007|\u001b\\|\u009c)|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b[ -/]*[0-~]/g;
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** A name from outside on one line: what would steer the terminal is shown as an escape instead. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u${(char.codePointAt(0) as number).toString(16).padStart(4, "0")}`);
}

/**
 * A text from outside as it is shown: without terminal escape sequences and control characters other than newline and
 * tab, and with every code point whole.
 */
export function printable(text: string): string {
  if (text.search(CONTROLS) === -1) return text.toWellFormed();
  return text.replace(SEQUENCES, "").replace(CONTROLS, "").toWellFormed();
}

/** A name in a line that has more than the name: as it is when it is plain, else in quotes with escapes. */
export function quotedUnlessPlain(name: string): string {
  return /^[\p{L}\p{N}_./@+-]+$/u.test(name) ? name : visible(JSON.stringify(name));
}
