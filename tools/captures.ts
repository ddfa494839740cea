/**
 * `npm run captures`: plays what the pictures in docs/pictures/ show, in real Pi on a real terminal (tmux), with the
 * scripted model, and draws them anew. What differs from run to run is replaced, so that the same code gives the same files.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasTmux } from "../test/support/pi/terminal.ts";
import { pictureOf } from "./captures/picture.ts";
import { COLUMNS, plays, screensOf } from "./captures/scenes.ts";
import { root } from "./run.ts";

if (!hasTmux) {
  console.error("captures: this needs tmux, which gives Pi a terminal. What to do: install tmux.");
  process.exit(1);
}
const folder = join(root, "docs", "pictures");
mkdirSync(folder, { recursive: true });
for (const play of plays) {
  for (const { scene, screen } of await screensOf(play)) {
    const file = join(folder, `${scene.name}.svg`);
    writeFileSync(file, pictureOf(screen, { title: scene.title, columns: COLUMNS }));
    console.log(`docs/pictures/${scene.name}.svg`);
  }
}
