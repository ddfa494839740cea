/**
 * `npm run pi`: the real Pi with the extension of this checkout and a model that needs neither key nor network, in an
 * agent directory that is gone afterwards. It tells a story: a task is delegated, the worker asks, you answer, and one
 * result comes back. `npm run pi -- --model provider/name` uses a real model and your own Pi settings instead.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stories } from "./story.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const cli = join(here("../.."), "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js");
const extension = here("../../adapters/pi/extension.js");
const herd = here("../../adapters/cli/herd.js");
const args = process.argv.slice(2);

process.exitCode = args.length > 0 ? await pi(["--extension", extension, ...args]) : await tellStory();

async function tellStory(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "pi-herd-try-"));
  mkdirSync(join(folder, "agents"));
  const settings = {
    quietStartup: true,
    retry: { enabled: false },
    defaultProvider: "scripted",
    defaultModel: "script",
    extensions: [here("./scripted-model.ts"), extension],
  };
  writeFileSync(join(folder, "settings.json"), JSON.stringify(settings));
  writeFileSync(join(folder, "auth.json"), JSON.stringify({ scripted: { type: "api_key", key: "none" } }), {
    mode: 0o600,
  });
  const env = { PI_CODING_AGENT_DIR: folder, PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" };
  try {
    const [prompt = ""] = Object.keys(stories);
    return await pi(["--tui-mode", "regular", "--no-approve", prompt], env);
  } finally {
    spawnSync(process.execPath, [herd, "stop", "--directory", join(folder, "herd")], { stdio: "ignore" });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs Pi in this terminal. @returns its exit code. */
function pi(given: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number> {
  const child = spawn(process.execPath, [cli, ...given], { stdio: "inherit", env: { ...process.env, ...env } });
  // Pi decides what Ctrl+C means, and what becomes of it when its terminal is closed; what is left is tidied up after it.
  for (const signal of ["SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);
  process.on("SIGTERM", () => child.kill("SIGTERM"));
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}
