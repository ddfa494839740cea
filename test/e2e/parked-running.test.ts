import { describe } from "vitest";
import { testParkedCommands } from "./parked-commands.ts";

describe("while a program has the store", { timeout: 60_000 }, () => {
  testParkedCommands(true);
});
