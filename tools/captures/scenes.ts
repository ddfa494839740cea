import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stories } from "../../examples/pi/story.ts";
import { extension, makePlace, model, type PiPlace } from "../../test/support/pi/folder.ts";
import { PiScreen } from "../../test/support/pi/terminal.ts";
import { readScreen, rowText, type Screen } from "./screen.ts";
import { steady, type Mask } from "./steady.ts";

export const COLUMNS = 100;
/** So high that nothing leaves the screen. */
const ROWS = 80;

/** A picture: its file is named after it. */
export interface Scene {
  name: string;
  /** What is to be seen, for those who do not see it. */
  title: string;
  /** What stands in its first line; from the top unless set. */
  from?: string;
}

/** What a play shows, one screen for each of its scenes. */
export interface Play {
  scenes: readonly Scene[];
  /** @returns what the terminal shows, as it comes. */
  perform(): Promise<string[]>;
}

/** What is another one each time. The folder is as long as the one that stands for it, so that lines break alike. */
const MASKS: Mask[] = [
  { pattern: /\/tmp\/herd-pi-\w{6}/g, by: "/home/ada/my-agents" },
  { pattern: /-tmp-herd-pi-\w{6}/g, by: "-home-ada-my-agents" },
  { pattern: /\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z/g, by: "2026-05-04T09-30-00-000Z" },
  { pattern: /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, by: "01f0c3a2-7d4e-4b19-8a56-3e9d2b7c4f10" },
];

/** Delegation as `npm run pi` tells it. */
const delegation: Play = {
  scenes: [
    { name: "question", title: "A worker's question in the session that delegated the task" },
    {
      name: "subagents",
      title: "The command /subagents: a worker that waits for an answer, and the agents there are",
      from: "Workers (1)",
    },
    { name: "result", title: "The answer given, and the worker's result", from: "no, package.json is enough" },
  ],
  async perform() {
    const [prompt = ""] = Object.keys(stories);
    return onStage({}, prompt, async (terminal) => {
      await terminal.shows("Type yes or no.");
      const question = await terminal.rests();
      terminal.type("/subagents", "Enter");
      await terminal.shows(/^ *Agents \(/m);
      const list = await terminal.rests();
      terminal.type("no, package.json is enough", "Enter");
      await terminal.shows("The scout is through.");
      return [question, list, await terminal.rests()];
    });
  },
};

/** An extension that asks a person before it does what its tool is for. */
const GUARD = `export default (pi) => pi.registerTool({
  name: "remove_folder", label: "Remove a folder", description: "Removes a folder, after a person has agreed.",
  parameters: { type: "object", properties: { path: { type: "string" } } },
  async execute(_id, { path }, _signal, _update, ctx) {
    const may = await ctx.ui.confirm("Remove " + path + "?", "12 files, and nothing keeps a copy of them.");
    return { content: [{ type: "text", text: may ? "removed" : "left alone" }], details: {} };
  },
});`;
const TIDY = "Let an implementer remove what the build has left.";
const BUILD = "Remove the folder build.";
const TIDYING = {
  [TIDY]: [
    `call subagent ${JSON.stringify({ action: "assign", agent: "implementer", task: BUILD })}`,
    "say An implementer is at it.",
    "say It is done.",
  ],
  [BUILD]: ['call remove_folder {"path":"build"}', "say The folder build: {last}."],
};

const dialog: Play = {
  scenes: [{ name: "dialog", title: "What an extension in a worker asks a person, shown in the session that owns it" }],
  perform: () =>
    onStage({ "guard.ts": GUARD }, TIDY, async (terminal) => {
      await terminal.shows("implementer: Remove build?");
      return [await terminal.rests()];
    }),
};

export const plays: readonly Play[] = [delegation, dialog];

/** The screens of a play, each as its picture shows it. */
export async function screensOf({ scenes, perform }: Play): Promise<{ scene: Scene; screen: Screen }[]> {
  const shown = await perform();
  return scenes.map((scene, index) => ({
    scene,
    screen: framed(steady(readScreen(shown[index] ?? ""), MASKS), scene),
  }));
}

/** Starts Pi with a prompt in a place that is the same each time, and hands its screen over. */
async function onStage(
  more: Record<string, string>,
  prompt: string,
  act: (terminal: PiScreen) => Promise<string[]>,
): Promise<string[]> {
  const place = makePlace({
    parent: "/tmp",
    settings: { theme: "dark" },
    extensions: [extension],
    env: { COLORTERM: "truecolor" },
  });
  try {
    furnish(place, more);
    const terminal = new PiScreen(place, [prompt], { columns: COLUMNS, rows: ROWS });
    try {
      return await act(terminal);
    } finally {
      terminal.close();
    }
  } finally {
    await place.remove();
  }
}

function furnish(place: PiPlace, more: Record<string, string>): void {
  writeFileSync(join(place.cwd, "package.json"), `{\n  "name": "shop",\n  "scripts": { "test": "node --test" }\n}\n`);
  // The notice of the background process names its pid, and is as long as that.
  mkdirSync(place.herd, { mode: 0o700 });
  writeFileSync(join(place.herd, "told"), "");
  // Pi says on the screen when it misses these, which some machines have and others have not.
  const bin = join(place.agentDir, "bin");
  mkdirSync(bin, { recursive: true });
  for (const name of ["fd", "rg"]) {
    writeFileSync(join(bin, name), "#!/bin/sh\n");
    chmodSync(join(bin, name), 0o755);
  }
  const teller = `import scriptedModel from ${JSON.stringify(model)};
export default (pi) => scriptedModel(pi, ${JSON.stringify(TIDYING)});`;
  const found = join(place.agentDir, "extensions");
  mkdirSync(found);
  for (const [name, text] of Object.entries({ "teller.ts": teller, ...more })) writeFileSync(join(found, name), text);
}

/** Up to the last line that says something. The line of figures below the editor is another one each time. */
function framed(screen: Screen, { name, from }: Scene): Screen {
  const rows = screen.filter((row) => !/%\/\d+k \(auto\)/.test(rowText(row)));
  const says = (row: Screen[number]) => (from === undefined ? rowText(row) !== "" : rowText(row).includes(from));
  const first = rows.findIndex(says);
  if (first === -1) throw new Error(`${name}: no line says ${from ?? "anything"}`);
  // With the coloured line above it, where it stands in a box.
  const above = rows[first - 1]?.some(({ style }) => style.paper !== undefined) === true ? 1 : 0;
  return rows.slice(first - above, rows.findLastIndex((row) => rowText(row) !== "") + 1);
}
