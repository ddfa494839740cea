import { spawnSync } from "node:child_process";

/** The commands of a text that stand at the end of a line, after a colon: as somebody copies them. */
export function commandsIn(text: string): string[] {
  return [...text.matchAll(/: ((?:herd|node|npx|pi) .*)$/gm)].map(([, command = ""]) => command);
}

/** What a shell makes of a command: the program and its words. Nothing is run. @throws Error when it is more than one. */
export function pasted(command: string): string[] {
  const programs = ["herd", "node", "npx", "pi"];
  const shows = programs.map((name) => `${name}() { printf '%s\\0' ${name} "$@"; }`).join("\n");
  const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", `${shows}\n${command}`], {
    env: { PATH: "", HOME: "/home/ada" },
    encoding: "utf8",
  });
  const words = stdout.split("\0").slice(0, -1);
  const [first = "", ...rest] = words;
  if (status !== 0 || stderr !== "" || !programs.includes(first)) throw new Error(`${command}: ${status} ${stderr}`);
  return [first, ...rest];
}
