import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { readLines, Tail } from "./output.ts";

async function linesOf(...chunks: (string | Buffer)[]): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  readLines(stream, { line: (text) => void lines.push(text), tooLong: (start) => void lines.push(`${start}…`) });
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  await new Promise((done) => stream.once("end", done));
  return lines;
}

describe("the lines of a stream", () => {
  test("end with LF alone, wherever the chunks end", async () => {
    expect(await linesOf("on", "e\ntwo\u2028still two\r\n\nth", "ree\nno end")).toEqual([
      "one",
      "two\u2028still two\r",
      "three",
    ]);
    const umlaut = Buffer.from("ü\n");
    expect(await linesOf(umlaut.subarray(0, 1), umlaut.subarray(1))).toEqual(["ü"]);
  });

  test("that are longer than a line may be are known by their start alone, and those after them are whole", async () => {
    const block = Buffer.alloc(256 * 1024, "x");
    const start = `start${"x".repeat(507)}…`;
    expect(await linesOf("start", ...Array<Buffer>(9).fill(block), "\nafter\n")).toEqual([start, "after"]);
    expect(await linesOf(Buffer.concat([Buffer.from("start"), ...Array<Buffer>(4).fill(block)]), "\n")).toEqual([
      start,
    ]);
    const [longest] = await linesOf(...Array<Buffer>(4).fill(block), "\n");
    expect(longest).toHaveLength(1024 * 1024);
  });
});

describe("the tail of a stream", () => {
  async function tailOf(text: string, limit?: number): Promise<Tail> {
    const stream = new PassThrough();
    const tail = new Tail(stream, limit);
    stream.end(text);
    await new Promise((done) => stream.once("end", done));
    return tail;
  }

  test("is the last of it, and no more", async () => {
    expect((await tailOf("0123456789", 4)).text).toBe("6789");
    expect((await tailOf("")).gist).toBeUndefined();
  });

  test("says most in the last line that names an error, not in what Node puts around it", async () => {
    const crash = [
      "node:internal/modules/cjs/loader:1386",
      "  throw err;",
      "  ^",
      "",
      "Error: Cannot find module '/nowhere/cli.js'",
      "    at node:internal/main/run_main_module:33:47 {",
      "  code: 'MODULE_NOT_FOUND',",
      "  requireStack: []",
      "}",
      "",
      "Node.js v24.1.0",
    ].join("\n");
    expect((await tailOf(crash)).gist).toBe("Error: Cannot find module '/nowhere/cli.js'");
    expect((await tailOf("one\nNo such profile\n\n")).gist).toBe("No such profile");
  });
});
