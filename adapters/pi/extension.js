// What Pi loads. Pi evaluates everything that it loads itself anew for every session; this file is all of that, and hands
// over what only Pi can give: the rest is loaded by Node, once, in a tenth of the time.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
// In a checkout the source runs as it is; the published package has it compiled.
const source = fileURLToPath(new URL("./index.ts", import.meta.url));
const compiled = fileURLToPath(new URL("../../dist/adapters/pi/index.js", import.meta.url));
const { herdExtension } = require(existsSync(source) ? source : compiled);

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function piHerd(pi) {
  // The parts of the screen, for sessions that have one.
  herdExtension(pi, () => import("@earendil-works/pi-tui"));
}
