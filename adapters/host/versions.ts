/** Whether one version is newer than another, number by number; what comes after them does not count. */
export function isNewer(version: string | undefined, than: string): boolean {
  const numbers = (text: string) => text.split(/[.+-]/, 3).map((part) => Number.parseInt(part, 10) || 0);
  if (version === undefined) return false;
  const [ours, theirs] = [numbers(than), numbers(version)];
  for (const [index, number] of theirs.entries()) {
    if (number !== (ours[index] ?? 0)) return number > (ours[index] ?? 0);
  }
  return false;
}
