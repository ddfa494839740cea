import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../tools/run.ts";
import { PI_TOOLS } from "./doctor-definitions.ts";

test("the tools that need no extension are those that Pi has itself", async () => {
  const tools = join(root, "node_modules/@earendil-works/pi-coding-agent/dist/core/tools/index.js");
  const { allToolNames } = (await import(pathToFileURL(tools).href)) as { allToolNames: Set<string> };
  expect(PI_TOOLS).toEqual(expect.arrayContaining([...allToolNames]));
});
