import { describe } from "vitest";
import { promises } from "./support/suite.ts";

describe("the example ai-sdk", () => {
  promises("ai-sdk");
});
