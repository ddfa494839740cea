/**
 * `npm run bench`: measures and prints figures, by default how many cycles a second the product does beside the raw
 * limit. What is compared is measured side by side in one run, because machines are noisy.
 */
import { parseArgs } from "node:util";
import { NAMES, POINTS, pointsOf, type Figure } from "./figures.ts";
import { loadNow, readMachine } from "./machine.ts";
import { writePage } from "./page.ts";

const { values, positionals } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const mistake = mistakeIn(positionals);
if (mistake !== undefined) {
  console.error(mistake);
  process.exit(2);
}
if (values.write) await write();
else for await (const figure of measured()) print(figure);

function mistakeIn(names: readonly string[]): string | undefined {
  const unknown = names.filter((name) => !NAMES.includes(name));
  if (unknown.length > 0) {
    return `There is no figure ${unknown.join(", ")}. Next: use one of ${NAMES.join(", ")}, or --all.`;
  }
  if (!values.write || names.length === 0) return undefined;
  const given = names.join(" ");
  return `--write takes no names (${given}): the page holds every figure. Next: leave out ${given}, or leave out --write.`;
}

async function* measured(): AsyncGenerator<Figure> {
  const everything = values.all || values.write;
  const points = everything ? POINTS : pointsOf(positionals.length > 0 ? positionals : ["cycle"]);
  for (const { measure } of points) yield await measure();
}

/** Measures everything, and only when nothing failed writes the page. */
async function write(): Promise<void> {
  const date = new Date().toISOString().slice(0, 10);
  const loads = [loadNow()];
  const figures: Figure[] = [];
  for await (const figure of measured()) {
    print(figure);
    figures.push(figure);
  }
  loads.push(loadNow());
  const files = await writePage({ date, machine: await readMachine(loads), figures });
  console.error(`wrote ${files.join(" and ")} in docs`);
}

function print(figure: Figure): void {
  if (values.json) return console.log(JSON.stringify(figure));
  const { name, ...rest } = figure;
  console.log(
    `${name}\n${Object.entries(rest)
      .map(([key, value]) => `  ${key.padEnd(22)} ${String(value)}`)
      .join("\n")}`,
  );
}
