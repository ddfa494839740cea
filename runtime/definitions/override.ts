import { resolve } from "node:path";
import { expandHome } from "../paths.ts";
import type { OverrideChange } from "./override-file.ts";

export type { OverrideChange } from "./override-file.ts";

/** The last change of each folder: two changes of one file must not both start from the same text. */
const changes = new Map<string, Promise<void>>();

/**
 * Changes one line in the frontmatter of the file by which a global folder overlays a definition, or defines it. Line
 * endings, comments, other fields and the body stay byte for byte, and whoever reads the file meanwhile sees it
 * whole, before or after. Where the folder has no such file, one is made that holds the name and the field.
 *
 * Changes of one process happen one after another. Source: specification of commands, `overrides`.
 * @throws HerdError `invalid_request` when the name or the value is none, two files there define the name, or the
 *   file is not one whose single line can be changed; nothing was changed then.
 */
export async function writeOverride(globalFolder: string, name: string, change: OverrideChange): Promise<void> {
  const folder = resolve(expandHome(globalFolder));
  const turn = (changes.get(folder) ?? Promise.resolve()).then(async () => {
    // What reads YAML is loaded by those who need it.
    const { writeInto } = await import("./override-file.ts");
    await writeInto(folder, name, change);
  });
  const settled = turn.catch(() => undefined);
  changes.set(folder, settled);
  try {
    await turn;
  } finally {
    if (changes.get(folder) === settled) changes.delete(folder);
  }
}
