import { extname } from "node:path";

/** Text whose name tells nothing, and content that is no text. */
export const OTHER_TEXT = "Other text";
export const BINARY = "Binary";

/** Endings, without the dot and in lower case, by language. */
const endings: Record<string, string> = {
  Ada: "ada adb ads",
  Assembly: "asm s",
  Astro: "astro",
  Batch: "bat cmd",
  C: "c",
  "C or C++ header": "h",
  "C#": "cs csx",
  "C++": "cc cpp cxx hpp hh hxx ipp",
  Clojure: "clj cljs cljc edn",
  CMake: "cmake",
  CoffeeScript: "coffee",
  "Common Lisp": "lisp lsp",
  Crystal: "cr",
  CSS: "css",
  CSV: "csv tsv",
  D: "d",
  Dart: "dart",
  Elixir: "ex exs",
  Elm: "elm",
  "Emacs Lisp": "el",
  Erlang: "erl hrl",
  "F#": "fs fsi fsx",
  Fortran: "f f90 f95 f03 for",
  GLSL: "glsl vert frag",
  Go: "go",
  GraphQL: "graphql gql",
  Graphviz: "dot gv",
  Groovy: "groovy gradle",
  Haskell: "hs lhs",
  HTML: "html htm xhtml",
  INI: "ini cfg conf properties editorconfig",
  Java: "java",
  JavaScript: "js mjs cjs jsx",
  JSON: "json jsonc json5 ndjson jsonl geojson webmanifest map",
  Julia: "jl",
  Jupyter: "ipynb",
  Kotlin: "kt kts",
  Less: "less",
  Log: "log",
  Lua: "lua",
  Makefile: "mk mak",
  Markdown: "md markdown mdx",
  Mermaid: "mmd mermaid",
  Nim: "nim",
  Nix: "nix",
  "Objective-C": "m mm",
  OCaml: "ml mli",
  Pascal: "pas pp",
  Perl: "pl pm t",
  PHP: "php phtml",
  PowerShell: "ps1 psm1 psd1",
  "Protocol Buffers": "proto",
  Python: "py pyi pyw pyx",
  R: "r rmd",
  reStructuredText: "rst",
  Ruby: "rb rake gemspec",
  Rust: "rs",
  Sass: "scss sass",
  Scala: "scala sbt sc",
  Scheme: "scm ss rkt",
  Shell: "sh bash zsh fish ksh",
  Solidity: "sol",
  SQL: "sql",
  Svelte: "svelte",
  SVG: "svg",
  Swift: "swift",
  Tcl: "tcl",
  Terraform: "tf tfvars hcl",
  TeX: "tex sty cls bib",
  Text: "txt text",
  TOML: "toml",
  TypeScript: "ts mts cts tsx",
  Vala: "vala",
  Verilog: "v sv svh",
  VHDL: "vhd vhdl",
  "Vim script": "vim",
  "Visual Basic": "vb vbs",
  Vue: "vue",
  WebAssembly: "wat",
  XML: "xml xsd xsl xslt plist csproj",
  YAML: "yaml yml",
  Zig: "zig",
};

/** Whole names, in lower case, that mean more than their ending. */
const names: Record<string, string> = {
  CMake: "cmakelists.txt",
  Dockerfile: "dockerfile containerfile",
  Go: "go.mod go.sum go.work",
  Groovy: "jenkinsfile",
  "Ignore list": ".gitignore .dockerignore .npmignore .eslintignore .prettierignore .gitattributes",
  INI: ".editorconfig .npmrc .gitconfig .gitmodules",
  JSON: ".prettierrc .eslintrc .babelrc composer.lock",
  Makefile: "makefile gnumakefile justfile",
  Python: "sconstruct sconscript",
  Ruby: "gemfile rakefile podfile vagrantfile brewfile",
  Shell: ".bashrc .bash_profile .profile .zshrc .envrc",
  Starlark: "build.bazel",
  Text: "license licence copying notice authors readme changelog todo",
  TOML: "cargo.lock poetry.lock",
  YAML: ".clang-format .clang-tidy",
};

const byEnding = inverted(endings);
const byName = inverted(names);

/** The language of a file by its name; what its name does not tell is other text. */
export function languageOf(fileName: string): string {
  const name = fileName.toLowerCase();
  const known = byName.get(name) ?? byEnding.get(extname(name).slice(1));
  if (known !== undefined) return known;
  // Dockerfile.dev, Makefile.local
  return byName.get(name.slice(0, Math.max(0, name.indexOf(".")))) ?? OTHER_TEXT;
}

function inverted(table: Record<string, string>): Map<string, string> {
  return new Map(
    Object.entries(table).flatMap(([language, words]) => words.split(" ").map((word) => [word, language])),
  );
}
