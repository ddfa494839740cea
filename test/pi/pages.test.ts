import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { fences, page } from "../docs/page.ts";
import { compare } from "../docs/walkthrough.ts";
import { extension, herdJs, model, piCli, piPlace, until } from "../support/pi/place.ts";
import { subagent } from "../support/pi/session.ts";

const assign = (agent: string, task: string) => subagent({ action: "assign", agent, task });

/** What the model says to what the pages ask for. */
const STORIES = {
  "Let a scout find out how this project is tested.": [
    assign("scout", "How is this project tested?"),
    "say A scout is at it.",
    "say The scout found out: {end}",
  ],
  "How is this project tested?": ["say the tests run with node --test."],
  "Let an implementer add a licence. It asks me which one.": [
    assign("implementer", "Add a licence."),
    "say An implementer is at it.",
    "say The implementer wants to know which licence.",
  ],
  "Add a licence.": ['call ask_owner {"question":"Which licence?"}', "say Added."],
};

test.each(["pi.md", "pi-troubleshooting.md"])("somebody who follows %s sees what it shows", async (name) => {
  const place = piPlace({ extensions: [extension] });
  const teller = `import scriptedModel from ${JSON.stringify(model)};
export default (pi) => scriptedModel(pi, ${JSON.stringify(STORIES)});`;
  mkdirSync(join(place.agentDir, "extensions"));
  writeFileSync(join(place.agentDir, "extensions", "teller.ts"), teller);
  const bin = join(place.base, "bin");
  mkdirSync(bin);
  symlinkSync(piCli, join(bin, "pi"));
  symlinkSync(herdJs, join(bin, "herd"));
  const path = [bin, dirname(process.execPath), place.env["PATH"]].join(delimiter);
  const bash = (commands: string, where: string) => {
    const { stdout, status } = spawnSync("bash", ["-c", `set -e\nexec 2>&1\n${commands}`], {
      cwd: place.cwd,
      env: { ...place.env, PATH: path },
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`${where} ended with exit code ${status}:\n${stdout}`);
    return stdout;
  };

  let printed = "";
  let compared = 0;
  for (const { info, content, heading } of fences(await page(name))) {
    const where = `${info} under "${heading}"`;
    if (info === "sh") {
      // A reader is slower than a worker that has its answer.
      if (content.includes("herd status")) await until(() => place.workers().length === 0, "the end of the worker");
      printed = bash(content, where).replaceAll(place.agentDir, "/home/ada/.pi/agent");
    } else if (info === "text output") {
      compare(where, { shown: content, printed, folder: place.base });
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(0);
});
