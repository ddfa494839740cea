import { readFile } from "node:fs/promises";

/** The version of this package. In a checkout its manifest lies two folders up, in the published package three. */
export async function packageVersion(): Promise<string> {
  for (const up of ["../../package.json", "../../../package.json"]) {
    const text = await readFile(new URL(up, import.meta.url), "utf8").catch(() => undefined);
    const manifest = text === undefined ? undefined : (JSON.parse(text) as { name?: string; version?: string });
    if (manifest?.name === "pi-herd" && manifest.version !== undefined) return manifest.version;
  }
  return "unknown";
}
