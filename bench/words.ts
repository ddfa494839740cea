/** How the page and the plot write numbers. */

/** Whole numbers whole, others with three digits that mean something. */
const NUMBERS = new Intl.NumberFormat("en-US", {
  maximumSignificantDigits: 3,
  maximumFractionDigits: 0,
  roundingPriority: "morePrecision",
});

/** A number as people read it: `12,345`, `31.4`, `0.182`. */
export function count(value: number): string {
  return NUMBERS.format(value);
}

/** `1 caller`, `100 callers`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
