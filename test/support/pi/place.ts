import { onTestFinished } from "vitest";
import { makePlace, type PiPlace, type PlaceOptions } from "./folder.ts";

export * from "./folder.ts";

/** Makes a place for one test; everything of it is gone when the test is over. */
export function piPlace(options?: PlaceOptions): PiPlace {
  const place = makePlace(options);
  onTestFinished(() => place.remove());
  return place;
}
