import { expect, test } from "vitest";
import { playOut, plays } from "./parked-plays.ts";

/**
 * What is parked, in real processes over a real store: whatever is done with it is killed at the first and the last pass
 * of every point, looked at as it was left, and done again. `npm run crash` does so at every pass.
 */
test.each(Object.keys(plays))(
  "whatever instant a process dies at, %s is done once and wholly",
  { timeout: 300_000 },
  async (play) => {
    const { killed, faults } = await playOut(play, "first and last");
    expect(faults).toEqual([]);
    expect(killed).toBeGreaterThan(3);
  },
);
