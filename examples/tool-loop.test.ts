import { describe } from "vitest";
import { promises } from "./support/suite.ts";

describe("the example tool-loop", () => promises("tool-loop"));
