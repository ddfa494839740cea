/** A heading of a Markdown page. */
export interface Heading {
  level: number;
  title: string;
  /** Its position in the text. */
  at: number;
}

/** The headings of a page outside of fenced code, in their order. */
export function headingsOf(text: string): Heading[] {
  const code = text.replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/^#/gm, " "));
  return [...code.matchAll(/^(#+) (.*)$/gm)].map(({ 1: marks = "", 2: title = "", index }) => ({
    level: marks.length,
    title,
    at: index,
  }));
}

/** What links to the headings of a page end in, as GitHub makes it: the second of the same title has a number. */
export function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return headingsOf(text).map(({ title }) => {
    const plain = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
      .replaceAll(" ", "-");
    const before = seen.get(plain) ?? 0;
    seen.set(plain, before + 1);
    return before === 0 ? plain : `${plain}-${before}`;
  });
}
