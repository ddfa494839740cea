import { describe } from "vitest";
import { testCommands } from "./commands.ts";

describe("while a program has the store", () => {
  testCommands(true);
});
