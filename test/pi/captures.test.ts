import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { textIn } from "../../tools/captures/picture.ts";
import { plays, screensOf } from "../../tools/captures/scenes.ts";
import { textOf } from "../../tools/captures/screen.ts";
import { hasTmux } from "../support/pi/terminal.ts";

const isRequired = process.env["HERD_E2E"] === "required";

describe.skipIf(!hasTmux && !isRequired)("the pictures of the documentation (needs tmux)", () => {
  test.each(plays)("show what Pi shows today; npm run captures draws them anew: $scenes.0.name", async (play) => {
    for (const { scene, screen } of await screensOf(play)) {
      const picture = readFileSync(new URL(`../../docs/pictures/${scene.name}.svg`, import.meta.url), "utf8");
      expect({ [scene.name]: textOf(screen) }).toEqual({ [scene.name]: textIn(picture) });
    }
  });
});
