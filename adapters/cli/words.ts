const units = ["B", "kB", "MB", "GB", "TB"];

/** A whole number with separators: `12,345`. */
export function numberOf(value: number): string {
  return value.toLocaleString("en-US");
}

/** Bytes as people read them: `980 B`, `88.1 MB`. */
export function bytesOf(bytes: number): string {
  let unit = 0;
  let value = bytes;
  // 999.95 of one unit would round up to 1000.0 of it.
  while (value >= (unit === 0 ? 1_000 : 999.95) && unit < units.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** A count with its word: `1 file`, `2 files`. */
export function countOf(count: number, word: string): string {
  return `${numberOf(count)} ${word}${count === 1 ? "" : "s"}`;
}
