import { existsSync, readFileSync } from "node:fs";

/** The version of this package. In a checkout its manifest lies two folders up, in the published package three. */
export const version: string = read();

function read(): string {
  for (const up of ["../../package.json", "../../../package.json"]) {
    const file = new URL(up, import.meta.url);
    if (!existsSync(file)) continue;
    const manifest = JSON.parse(readFileSync(file, "utf8")) as { name?: string; version?: string };
    if (manifest.name === "pi-herd" && manifest.version !== undefined) return manifest.version;
  }
  return "0.0.0";
}
