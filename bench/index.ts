import { parseArgs } from "node:util";
import { cycle } from "./cycle.ts";
import { heap } from "./heap.ts";
import { parked } from "./parked.ts";
import { trees } from "./trees.ts";

/** Every figure by name. What is compared is measured side by side in one run, because machines are noisy. */
const FIGURES: Record<string, () => AsyncGenerator<object>> = {
  async *cycle() {
    yield await cycle(1);
    yield await cycle(100);
  },
  async *parked() {
    yield await parked();
  },
  async *trees() {
    yield await trees();
  },
  async *heap() {
    yield await heap(100);
    yield await heap(1);
  },
};

const { values, positionals } = parseArgs({
  options: { json: { type: "boolean", default: false }, all: { type: "boolean", default: false } },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !(name in FIGURES));
if (unknown.length > 0) {
  console.error(
    `There is no figure ${unknown.join(", ")}. Next: use one of ${Object.keys(FIGURES).join(", ")}, or --all.`,
  );
  process.exit(2);
}
const names = values.all ? Object.keys(FIGURES) : positionals.length > 0 ? positionals : ["cycle"];
for (const name of names) {
  for await (const figure of (FIGURES[name] as () => AsyncGenerator<object>)()) print(figure);
}

function print(figure: object): void {
  if (values.json) return console.log(JSON.stringify(figure));
  const { name, ...rest } = figure as { name: string };
  console.log(
    `${name}\n${Object.entries(rest)
      .map(([key, value]) => `  ${key.padEnd(22)} ${String(value)}`)
      .join("\n")}`,
  );
}
