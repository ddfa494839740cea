import { describe } from "vitest";
import { testCommands } from "./commands.ts";

describe("while no program has the store", () => {
  testCommands(false);
});
