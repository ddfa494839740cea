/** Characters of a wrong value that a message shows. */
const VALUE_SHOWN = 60;

/** Something about a definition file that its author should know. Nothing is thrown for it. */
export interface Finding {
  /** The file, or the folder, that it is about; `definitions` if it is what that option of createHerd gives. */
  file: string;
  /** The definition, when the file has one. */
  name?: string;
  field?: string;
  /** What should hold, in a few words. */
  rule: string;
  /**
   * `disabled`: the definition stays in the roster and cannot be launched. `ignored`: this part of the file, or the
   * whole file, has no effect. `hidden`: a file of a higher layer overlays it.
   */
  effect: "disabled" | "ignored" | "hidden";
  /** The whole of it as one sentence for people, with the file. */
  message: string;
}

/** A wrong value as a message shows it. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > VALUE_SHOWN ? `${text.slice(0, VALUE_SHOWN).toWellFormed()}…` : text;
}
