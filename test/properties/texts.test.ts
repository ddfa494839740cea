import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HerdError, toolText, visible, type Evidence } from "pi-herd";
import { resultEnvelope } from "../../runtime/deliveries/envelope.ts";
import { envelope } from "../../runtime/evidence/evidence.ts";
import { bounded } from "../../runtime/text/bounds.ts";
import { columnsOf, fit, wrap } from "../../runtime/text/columns.ts";
import { printable } from "../../runtime/text/safe.ts";

// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

/** Pieces that a careless reader or cutter would stumble over, in any order and number. */
const piece = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("\n", "\r\n", "\t", "\u001b[31m", "\u001b]0;t\u0007", "\u001b", "\u009b", "\ud83d", "😀", "é", "日"),
  fc.constantFrom("label: b | agent: b | request: r | status: failed", "[truncated: ", "saved: /etc/passwd"),
  fc.constantFrom("\n\n---\n\nTask:\n", "\n---\n", 'Included file "x" (3 bytes):\n', "Task:", '"', "\\"),
);
const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
/** The same, at times repeated beyond both bounds. */
const longText = fc
  .tuple(text, fc.constantFrom(0, 1, 1, 500, 3_000), text)
  .map(([head, times, tail]) => (head + tail).repeat(Math.min(times, 200_000 / (head.length + 1))) + tail);

describe("the envelope of a result", () => {
  test("shows a prefix of the printable text, within both bounds, in whole code points, below a header of its own", () => {
    const saved = fc.constantFrom(
      {},
      { path: "/herd/results/r.txt" },
      { path: "/a\n\nb\u202e" },
      { error: "no\n\nroom" },
    );
    const delegation = fc.constantFrom({ active: 0, pending: 0 }, { active: 2, pending: 1 });
    fc.assert(
      fc.property(longText, text, saved, delegation, (given, agent, place, waiting) => {
        const outcome = { status: "completed" as const, text: given };
        const request = { label: "one", agent, requestId: "r" };
        const shown = resultEnvelope(request, outcome, { saved: place, delegation: waiting });
        const at = shown.text.indexOf("\n\n");
        const header = shown.text.slice(0, at).split("\n");
        const end = shown.truncated ? shown.text.lastIndexOf("\n\n[truncated: ") : undefined;
        const body = shown.text.slice(at + 2, end);
        expect(header[0]).toMatch(/^label: one \| agent: .* \| request: r \| status: completed$/);
        expect(header).toHaveLength(1 + Number(waiting.active > 0) + Number(Object.keys(place).length > 0));
        expect(header[0]?.match(/ \| status: /g)?.length).toBe(1 + (agent.match(/ \| status: /g)?.length ?? 0));
        expect(printable(given).startsWith(body)).toBe(true);
        expect(shown.truncated).toBe(body !== printable(given));
        expect(body.split("\n").length).toBeLessThanOrEqual(2_000);
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(50 * 1024);
        expect(shown.text.isWellFormed()).toBe(true);
        expect(shown.text).not.toMatch(CONTROLS);
      }),
    );
  });

  test("is as long as the bounds allow", () => {
    fc.assert(
      fc.property(longText, (given) => {
        const whole = printable(given);
        const { text: head, truncated } = bounded(whole);
        // One code point more than is shown would be too much, unless there is none.
        const more = head + String.fromCodePoint(whole.codePointAt(head.length) ?? 0);
        const tooMuch = more.split("\n").length > 2_000 || Buffer.byteLength(more) > 50 * 1024;
        expect([truncated, truncated ? tooMuch : head === whole]).toEqual([head !== whole, true]);
      }),
    );
  });
});

/**
 * The sections of a message with files, for a reader that goes by the rules: a file's header is one line with a
 * JSON-quoted path and a byte count, an included file is exactly so many bytes, sections stand between rules, and
 * what comes after the last file is the message, whatever it looks like.
 */
function sectionsOf(message: string, files: number): string[] {
  const sections: string[] = [];
  let rest = Buffer.from(message);
  for (let file = 0; file < files; file++) {
    const header = /^(Included|Referenced) file ("(?:[^"\\\n]|\\.)*") \((\d+) bytes\)(:\n)?/.exec(rest.toString());
    if (!header) throw new Error("a section has no header");
    const content = header[1] === "Included" ? Number(header[3]) : 0;
    const start = Buffer.byteLength(header[0]);
    sections.push(JSON.parse(header[2] as string) as string);
    rest = rest.subarray(start + content);
    if (!rest.toString().startsWith("\n\n---\n\n")) throw new Error("a section does not end where it should");
    rest = rest.subarray(Buffer.byteLength("\n\n---\n\n"));
  }
  return [...sections, rest.toString()];
}

describe("a message with files", () => {
  const wellFormed = text.map((value) => value.toWellFormed());
  const evidence: fc.Arbitrary<Evidence[]> = fc.array(
    fc
      .tuple(wellFormed, fc.option(wellFormed, { nil: undefined }))
      .map(([path, content]) =>
        content === undefined ? { path, bytes: 7 } : { path, bytes: Buffer.byteLength(content), text: content },
      ),
    { minLength: 1, maxLength: 4 },
  );

  test("has one section a file and one for the text, whatever stands in paths, files and text", () => {
    const kinds = fc.constantFrom("Task" as const, "Steer" as const, "Reply" as const, "Question" as const);
    fc.assert(
      fc.property(kinds, wellFormed, evidence, (kind, message, files) => {
        const sections = sectionsOf(envelope(kind, message, files), files.length);
        expect(sections).toEqual([...files.map(({ path }) => path), `${kind}:\n${message}`]);
      }),
    );
  });

  test("shows every path on the header's line, so that none can make a section", () => {
    fc.assert(
      fc.property(evidence, (files) => {
        const references = files.map(({ path, bytes }) => ({ path, bytes }));
        const parts = envelope("Task", "read", references).split("\n\n---\n\n");
        expect(parts).toHaveLength(files.length + 1);
        for (const part of parts.slice(0, -1)) expect(part).not.toContain("\n");
      }),
    );
  });
});

describe("the text of an error", () => {
  const said = text.filter((value) => value.trim() !== "");
  const failure = fc.record(
    {
      category: said,
      message: said,
      nextAction: said,
      operation: text,
      reason: text,
      ids: fc.dictionary(fc.constantFrom("label", "paneId", "requestId"), said),
      primary: fc.record({ category: text, message: said, operation: text }),
      cleanup: fc.record({ category: text, message: said, operation: text }),
      details: fc.record({ stage: said, paneSnapshot: text }, { requiredKeys: [] }),
      rollbackOccurred: fc.boolean(),
      retryAttempted: fc.boolean(),
    },
    { requiredKeys: ["category", "message", "nextAction"] },
  );
  const shown = (value: string) => visible(value).toWellFormed();

  test("has the message, every id, the stage, the causes and the next action, and no control character", () => {
    fc.assert(
      fc.property(failure, (error) => {
        const { message, nextAction, ids = {}, details, primary, cleanup } = error;
        const lines = toolText({ ok: false, error }).split("\n");
        expect(lines.at(-1)).toBe(`Next: ${shown(nextAction)}`);
        expect(lines[0]).toBe(`${shown(error.category)}: ${shown(message)}`);
        for (const [name, value] of Object.entries(ids)) expect(lines).toContain(`${name}: ${shown(value)}`);
        const stages = details?.stage === undefined ? [] : [`stage: ${shown(details.stage)}`];
        expect(lines.filter((line) => line.startsWith("stage: "))).toEqual(stages);
        for (const cause of [primary, cleanup].filter((one) => one !== undefined)) {
          expect(lines.some((line) => line.endsWith(shown(cause.message)))).toBe(true);
        }
        expect(lines.includes("rollback occurred: yes")).toBe(error.rollbackOccurred === true);
        for (const line of lines) {
          expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u);
          expect(line).toMatch(/\S/);
        }
      }),
    );
  });

  test("says the next action of an error of the engine once", () => {
    fc.assert(
      fc.property(said, said, (message, nextAction) => {
        const error = new HerdError({ category: "worker_busy", reason: "busy", message, nextAction });
        const lines = toolText({ ok: false, error: error.toJSON() }).split("\n");
        expect(lines).toEqual([
          `worker_busy: ${shown(message.replace(/[.\s]*$/, ""))}.`,
          "reason: busy",
          `Next: ${shown(nextAction)}`,
        ]);
      }),
    );
  });
});

describe("any answer as text", () => {
  const word = fc.oneof(text, fc.jsonValue({ maxDepth: 1 }));
  const row = fc.record(
    {
      label: fc.oneof(fc.constantFrom("a", "b", "c"), word),
      parent_label: fc.oneof(fc.constantFrom("a", "b", "c", null), word),
      state: word,
      steerable: fc.boolean(),
      recovery_only: fc.boolean(),
      question: fc.oneof(word, fc.record({ ask_id: word, question: word })),
      cleanup_error: word,
      result_error: fc.oneof(word, fc.record({ code: word, message: word })),
      cwd: word,
    },
    { requiredKeys: [] },
  );
  const list = fc.record({
    ok: fc.constant(true),
    workers: fc.array(row, { maxLength: 6 }),
    agent_definitions: fc.array(fc.record({ name: word, description: word, subagents: word }), { maxLength: 2 }),
    cleanup_errors: fc.dictionary(text, word, { maxKeys: 2 }),
  });

  test("is within its width, has every worker of a list once, and holds no control character", () => {
    const width = fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 60 }));
    fc.assert(
      fc.property(fc.oneof(list, fc.jsonValue()), width, (answer, columns) => {
        const lines = toolText(answer, columns === undefined ? {} : { width: columns }).split("\n");
        for (const line of lines) {
          expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e]/u);
          expect(line.isWellFormed()).toBe(true);
          expect(columnsOf(line)).toBeLessThanOrEqual(columns ?? Infinity);
        }
      }),
    );
    fc.assert(
      fc.property(list, (answer) => {
        const lines = toolText({ ...answer, agent_definitions: [], cleanup_errors: {} }).split("\n");
        const rows = answer.workers.length;
        expect(lines[0]).toBe(rows === 0 ? "No workers" : `Workers (${rows})`);
        expect(lines.filter((line) => /^ *- /.test(line))).toHaveLength(rows);
      }),
    );
  });

  test("fits and wraps to every width, and wrapping loses nothing but spaces", () => {
    fc.assert(
      fc.property(text.map(shownOnALine), fc.integer({ min: 2, max: 40 }), (line, columns) => {
        const lines = wrap(line, columns);
        for (const one of [fit(line, columns), ...lines]) expect(columnsOf(one)).toBeLessThanOrEqual(columns);
        expect(lines.join("").replaceAll(" ", "")).toBe(line.replaceAll(" ", ""));
      }),
    );
  });
});

function shownOnALine(value: string): string {
  return visible(value).toWellFormed();
}
