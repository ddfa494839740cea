import { describe, expect, test } from "vitest";
import { languageOf, OTHER_TEXT } from "./languages.ts";

describe("the language of a file", () => {
  test.each([
    ["main.ts", "TypeScript"],
    ["main.d.mts", "TypeScript"],
    ["herd.js", "JavaScript"],
    ["README.md", "Markdown"],
    ["LICENSE", "Text"],
    ["Makefile", "Makefile"],
    ["Dockerfile", "Dockerfile"],
    ["Dockerfile.dev", "Dockerfile"],
    ["CMakeLists.txt", "CMake"],
    ["go.mod", "Go"],
    ["app.module.css", "CSS"],
    [".gitignore", "Ignore list"],
    ["Größe.py", "Python"],
    ["日本語.rs", "Rust"],
  ])("is told by its name: %s is %s", (name, language) => {
    expect(languageOf(name)).toBe(language);
  });

  test("does not depend on upper or lower case", () => {
    expect(languageOf("MAIN.TS")).toBe("TypeScript");
    expect(languageOf("makefile")).toBe("Makefile");
  });

  test.each(["data", "notes.unheard-of", ".hidden", "trailing.", "constructor", "a.constructor"])(
    "is other text when the name tells nothing: %s",
    (name) => {
      expect(languageOf(name)).toBe(OTHER_TEXT);
    },
  );
});
