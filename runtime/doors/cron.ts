import { Cron, CronPattern, type CronOptions } from "croner";
import { invalidRequest, messageOf } from "../errors.ts";

/**
 * When a schedule fires next.
 *
 * The pattern has five fields, or six with seconds first, or seven with the year last; `@daily` and its like are
 * patterns too. Where both a day of the month and a weekday are given, either is enough. On days on which the clock
 * of the zone changes, a schedule with fixed times (no `*` and no step in seconds, minutes and hours) fires once for
 * each: a time that does not exist that day is made up for at the first moment after the gap, and one that exists
 * twice counts the first time. Other schedules follow the clock: they skip the gap, and fire in both of the hours that
 * look the same.
 * @param cron the pattern; one that `checkCron` accepts.
 * @param timezone an IANA name such as `Europe/Madrid`; UTC if undefined, wherever the process runs.
 * @param after a time in UTC milliseconds; the result is later, never equal.
 * @returns UTC milliseconds; undefined when it never fires again.
 */
export function nextFire(cron: string, timezone: string | undefined, after: number): number | undefined {
  return schedule(cron, timezone).nextRun(new Date(after))?.getTime();
}

/**
 * Checks a pattern and its zone before they are kept.
 * @param operation what errors say was called.
 * @throws HerdError `invalid_field` that names `cron` or `timezone`.
 */
export function checkCron(cron: string, timezone: string | undefined, operation: string): void {
  const refuse = (field: "cron" | "timezone", rule: string) =>
    invalidRequest(operation, "invalid_field", `${field}: ${rule}`, `correct ${field}`, { field, rule });
  if (typeof cron !== "string") throw refuse("cron", "a cron pattern is text");
  if (timezone !== undefined && !isTimezone(timezone)) {
    throw refuse("timezone", `${JSON.stringify(timezone)} is no IANA time zone, such as Europe/Madrid`);
  }
  let pattern: string;
  try {
    // A date alone is no pattern, though croner takes it for a schedule that fires once.
    ({ pattern } = new CronPattern(cron, timezone));
  } catch (error) {
    throw refuse("cron", messageOf(error).replace(/^CronPattern: /, ""));
  }
  if (nextFire(pattern, timezone, 0) === undefined) throw refuse("cron", `${JSON.stringify(cron)} never fires`);
}

function schedule(cron: string, timezone = "UTC"): Cron {
  // Without a function it is a calculator: nothing is scheduled and nothing has to be stopped.
  return new Cron(cron, { timezone, fixedTimeRule: "no-wildcard" } satisfies CronOptions);
}

function isTimezone(timezone: unknown): boolean {
  if (typeof timezone !== "string") return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: timezone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
