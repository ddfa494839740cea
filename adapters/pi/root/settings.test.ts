import { describe, expect, test } from "vitest";
import { DEFAULTS, readSettings } from "./settings.ts";

describe("the settings under herd", () => {
  test.each([undefined, {}, { herd: {} }, { other: 1 }, null, []])(
    "of %j are the defaults, and nothing is wrong",
    (all) => {
      expect(readSettings(all)).toEqual({ settings: DEFAULTS, findings: [] });
    },
  );

  test("count where they are valid", () => {
    const herd = { toolName: "crew", printWaitMs: 0, dialogs: "deny", limits: { inlineBytes: 0, payloadBytes: 1_024 } };
    expect(readSettings({ herd })).toEqual({ settings: herd, findings: [] });
    // The host reads it from the project's own file.
    expect(readSettings({ herd: { projectAgents: true } }).findings).toEqual([]);
  });

  test.each<[object | number, string]>([
    [5, "herd is ignored: it must be an object, and is 5"],
    [{ toolName: "my tool" }, "herd.toolName is ignored: it must be a name of letters"],
    [{ toolName: "list_parked" }, "and none of our other tools"],
    [{ printWaitMs: -1 }, "herd.printWaitMs is ignored: it must be a whole number from 0 to 86400000, and is -1"],
    [{ printWaitMs: "1" }, "herd.printWaitMs is ignored"],
    [{ dialogs: "never" }, 'herd.dialogs is ignored: it must be "ask" or "deny", and is "never"'],
    [{ projectAgents: "yes" }, 'herd.projectAgents is ignored: it must be true or false, and is "yes"'],
    [{ limits: 5 }, "herd.limits is ignored: it must be an object, and is 5"],
    [{ limits: { payloadBytes: 1_023 } }, "herd.limits.payloadBytes is ignored"],
    [{ limits: { bytes: 1 } }, "herd.limits.bytes is ignored: there is none of that name"],
    [{ toolname: "crew" }, "herd.toolname is ignored: there is none of that name; there are toolName, printWaitMs, "],
    [
      JSON.parse('{ "__proto__": { "dialogs": "deny" } }') as object,
      "herd.__proto__ is ignored: there is none of that name",
    ],
    [{ constructor: 1 }, "herd.constructor is ignored: there is none of that name"],
  ])("of %j are ignored and reported, one by one", (herd, finding) => {
    const read = readSettings({ herd });
    expect(read.settings).toEqual(DEFAULTS);
    expect(read.findings).toEqual([expect.stringContaining(finding)]);
  });

  test("that are wrong leave the others alone", () => {
    const { settings, findings } = readSettings({
      herd: { toolName: "crew", dialogs: 1, limits: { inlineBytes: 7, x: 1 } },
    });
    expect(settings).toEqual({ ...DEFAULTS, toolName: "crew", limits: { inlineBytes: 7 } });
    expect(findings).toHaveLength(2);
  });
});
