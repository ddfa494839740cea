import { describe, expect, test } from "vitest";
import { HerdError } from "../errors.ts";
import { checkCron, nextFire } from "./cron.ts";

const next = (cron: string, timezone: string | undefined, after: string) => {
  const time = nextFire(cron, timezone, Date.parse(after));
  return time === undefined ? "never" : new Date(time).toISOString();
};

/** The next fires one after another. */
function fires(cron: string, timezone: string | undefined, after: string, count: number): string[] {
  const times: string[] = [];
  while (times.length < count) times.push(next(cron, timezone, times.at(-1) ?? after));
  return times;
}

describe("the next fire", () => {
  test("is strictly after, to the millisecond", () => {
    expect(next("0 9 * * *", undefined, "2026-03-01T08:59:59.999Z")).toBe("2026-03-01T09:00:00.000Z");
    expect(next("0 9 * * *", undefined, "2026-03-01T09:00:00.000Z")).toBe("2026-03-02T09:00:00.000Z");
    expect(next("* * * * * *", undefined, "2026-03-01T09:00:00.001Z")).toBe("2026-03-01T09:00:01.000Z");
    expect(next("* * * * * *", undefined, "2026-03-01T09:00:00.999Z")).toBe("2026-03-01T09:00:01.000Z");
  });

  test("is in UTC unless a zone is named, wherever this runs", () => {
    expect(next("0 9 * * *", undefined, "2026-07-01T00:00:00Z")).toBe("2026-07-01T09:00:00.000Z");
    expect(next("0 9 * * *", "Europe/Madrid", "2026-07-01T00:00:00Z")).toBe("2026-07-01T07:00:00.000Z");
    expect(next("0 9 * * *", "Asia/Kolkata", "2026-07-01T00:00:00Z")).toBe("2026-07-01T03:30:00.000Z");
  });

  test("understands seconds, years, names, steps and nicknames", () => {
    expect(next("15,45 * * * * *", undefined, "2026-03-01T09:00:15Z")).toBe("2026-03-01T09:00:45.000Z");
    expect(next("0 0 0 1 1 * 2030", undefined, "2026-03-01T09:00:00Z")).toBe("2030-01-01T00:00:00.000Z");
    expect(next("0 12 * * MON-FRI", undefined, "2026-02-28T00:00:00Z")).toBe("2026-03-02T12:00:00.000Z");
    expect(next("*/20 * * * *", undefined, "2026-03-01T09:01:00Z")).toBe("2026-03-01T09:20:00.000Z");
    expect(next("@daily", undefined, "2026-03-01T09:00:00Z")).toBe("2026-03-02T00:00:00.000Z");
    expect(next("0 0 L 2 *", undefined, "2027-03-01T00:00:00Z")).toBe("2028-02-29T00:00:00.000Z");
  });

  test("is on a day of the month or on a weekday where both are given", () => {
    expect(fires("0 0 13 * FRI", undefined, "2026-05-08T00:00:00Z", 2)).toEqual([
      ...["2026-05-13T00:00:00.000Z", "2026-05-15T00:00:00.000Z"],
    ]);
  });

  test("may be none", () => {
    expect(next("0 0 0 1 1 * 2026", undefined, "2026-01-01T00:00:00Z")).toBe("never");
    expect(next("0 0 0 1 1 * 2026", undefined, "2025-12-31T23:59:59Z")).toBe("2026-01-01T00:00:00.000Z");
  });
});

describe("on the day on which the clock is put forward, Madrid 2026-03-29 at 02:00", () => {
  test("a fixed time in the gap is made up for after it, once", () => {
    expect(fires("30 2 * * *", "Europe/Madrid", "2026-03-28T00:00:00Z", 3)).toEqual([
      ...["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"],
    ]);
    expect(fires("30 2,14 * * *", "Europe/Madrid", "2026-03-28T13:30:00Z", 3)).toEqual([
      ...["2026-03-29T01:00:00.000Z", "2026-03-29T12:30:00.000Z", "2026-03-30T00:30:00.000Z"],
    ]);
  });

  test("a repeating one skips the gap", () => {
    expect(fires("*/30 * * * *", "Europe/Madrid", "2026-03-29T00:00:00Z", 3)).toEqual([
      ...["2026-03-29T00:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-29T01:30:00.000Z"],
    ]);
    expect(next("*/15 2 * * *", "Europe/Madrid", "2026-03-29T00:00:00Z")).toBe("2026-03-30T00:00:00.000Z");
  });
});

describe("on the day on which the clock is put back, Madrid 2026-10-25 at 03:00", () => {
  test("a fixed time that exists twice counts once, the first time", () => {
    expect(fires("30 2 * * *", "Europe/Madrid", "2026-10-24T12:00:00Z", 2)).toEqual([
      ...["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"],
    ]);
    // Also for a process that starts between the two.
    expect(next("30 2 * * *", "Europe/Madrid", "2026-10-25T00:45:00Z")).toBe("2026-10-26T01:30:00.000Z");
  });

  test("a repeating one fires in both hours", () => {
    expect(fires("*/30 * * * *", "Europe/Madrid", "2026-10-25T00:00:00Z", 4)).toEqual([
      ...["2026-10-25T00:30:00.000Z", "2026-10-25T01:00:00.000Z"],
      ...["2026-10-25T01:30:00.000Z", "2026-10-25T02:00:00.000Z"],
    ]);
  });
});

describe("checking a schedule", () => {
  const refusal = (cron: unknown, timezone?: unknown) => {
    try {
      checkCron(cron as string, timezone as string, "schedule");
    } catch (error) {
      if (error instanceof HerdError) return error;
      throw error;
    }
    return undefined;
  };

  test.each([
    ["0 9 * * *", "Europe/Madrid"],
    ["*/5 * * * * *", undefined],
    ["0 0 0 1 1 * 2020", "UTC"],
    ["0 0 29 2 *", undefined],
  ])("%j in %j is one", (cron, timezone) => {
    expect(refusal(cron, timezone)).toBeUndefined();
  });

  test.each([
    ...["", "nope", "* * * *", "* * * * * * * *", "61 * * * *", "* 24 * * *", "0 0 32 * *", "5/5 * * * *", "@reboot"],
    ...["0 0 30 2 *", "2030-01-01T00:00:00", 5, null],
  ])("%j is refused by its field", (cron) => {
    expect(refusal(cron)).toMatchObject({
      ...{ category: "invalid_request", reason: "invalid_field", field: "cron", operation: "schedule" },
    });
  });

  test.each(["Mars/Olympus", "", " ", "Europe/Madrid ", 2, null])("the zone %j is refused by its field", (timezone) => {
    expect(refusal("* * * * *", timezone)).toMatchObject({ reason: "invalid_field", field: "timezone" });
  });

  test("says what is wrong", () => {
    expect(refusal("61 * * * *")?.message).toContain("Invalid value for minute: 61");
    expect(refusal("0 0 30 2 *")?.message).toContain("never fires");
    expect(refusal("* * * * *", "Mars/Olympus")?.message).toContain('"Mars/Olympus" is no IANA time zone');
  });
});
