import { homedir } from "node:os";
import { describe, expect, test } from "vitest";
import { commandsIn, pasted } from "../../../test/support/pasted.ts";
import { herdProgram } from "../../host/herd-command.ts";
import { hostDirectory } from "../../host/place.ts";
import { news, others } from "./notices.ts";

/** The words of every herd command of a text, behind the program. */
const herdWordsIn = (text: string) =>
  commandsIn(text)
    .map(pasted)
    .filter(([program]) => program !== "pi")
    .map((words) => words.slice(words[0] === "node" ? 2 : 1));

describe("a command in a notice runs as it is pasted", () => {
  test("and ends the host that the notice is about", () => {
    expect(herdWordsIn(news(7, hostDirectory({})))).toEqual([["stop"]]);
    expect(herdWordsIn(news(7, "/tmp/it's here/herd"))).toEqual([["stop", "--directory", "/tmp/it's here/herd"]]);
  });

  test("and reaches the workers of another session", () => {
    const elsewhere = { session: "01a", sessionFile: "/tmp/two words.jsonl", isOpen: false, labels: ["scout", "b"] };
    const close = ["close", "scout", "--owner", "01a", "--directory", "/tmp/$HOME/herd"];
    const text = others(elsewhere, "/tmp/$HOME/herd");
    expect(text).toContain("Workers of another session work in this folder: scout, b.");
    expect(herdWordsIn(text)).toEqual([close]);
    expect(commandsIn(text).map(pasted)).toContainEqual(["pi", "--session", "/tmp/two words.jsonl"]);
    const open = others({ ...elsewhere, isOpen: true }, "/tmp/$HOME/herd");
    expect(open).toContain("open in another Pi");
    expect(commandsIn(open)).toHaveLength(1);
  });

  test("whose program is named as the shell of this user finds it", () => {
    const [command = ""] = commandsIn(news(7, hostDirectory({})));
    expect(["herd stop", `node ${herdProgram().replace(`${homedir()}/`, "~/")} stop`]).toContain(command);
  });
});
