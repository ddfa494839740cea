import { describe } from "vitest";
import { promises } from "./support/suite.ts";

describe("the example openai-agents", () => {
  promises("openai-agents");
});
