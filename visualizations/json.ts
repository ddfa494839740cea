/** How wide a line may be, as everywhere in this repository. */
const WIDTH = 120;

/** JSON as the formatter of this repository writes it: lists of words on one line where they fit. */
export function toJson(value: unknown): string {
  return `${written(value, "", 0)}\n`;
}

/** `used` is what stands before the value on its line. */
function written(value: unknown, indent: string, used: number): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  if (!Array.isArray(value)) {
    const entries = Object.entries(value).map(([key, entry]) => {
      const name = `${inner}${JSON.stringify(key)}: `;
      return name + written(entry, inner, name.length);
    });
    return entries.length === 0 ? "{}" : `{\n${entries.join(",\n")}\n${indent}}`;
  }
  const line = `[${value.map((entry) => JSON.stringify(entry)).join(", ")}]`;
  const plain = value.every((entry) => typeof entry !== "object" || entry === null);
  // A comma may follow.
  if (plain && used + line.length < WIDTH) return line;
  return `[\n${value.map((entry) => inner + written(entry, inner, inner.length)).join(",\n")}\n${indent}]`;
}
