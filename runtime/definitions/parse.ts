import { basename } from "node:path";
import { strictText } from "../evidence/evidence.ts";
import { FIELD_NAMES, isName, readField, type Fields } from "./fields.ts";
import { shown, type Finding } from "./finding.ts";
import { findFrontmatter, readYaml } from "./frontmatter.ts";

/** What one file says, before anything is laid over it. */
export interface DefinitionFile {
  file: string;
  name: string;
  /** The fields that the file sets, `name` not among them. */
  fields: Omit<Fields, "name">;
  body: string;
  /** The file cannot be used as it is, and so neither can the definition that it has a part in. */
  broken: boolean;
  findings: Finding[];
}

/**
 * Reads one definition file.
 * @returns the file; or only a finding when it is no definition, because it has no frontmatter. Nothing is thrown,
 *   whatever the content: a file that cannot be read as one is `broken`, under the name its file has.
 */
export function parseDefinition(file: string, content: Uint8Array): DefinitionFile | Finding {
  const text = strictText(Buffer.from(content));
  if (text === undefined) return brokenFile(file, "a definition file is UTF-8 text without NUL", "it is not");
  const frontmatter = findFrontmatter(text);
  if (frontmatter === undefined) {
    const rule = "a definition file starts with YAML between two lines of ---";
    return { file, rule, effect: "ignored", message: `${file} is no definition and is left out: ${rule}` };
  }
  if (frontmatter === "unclosed") {
    return brokenFile(file, "the frontmatter ends with a line of ---", "there is no such line");
  }
  const yaml = readYaml(text.slice(frontmatter.start, frontmatter.end));
  if ("wrong" in yaml) return brokenFile(file, "the frontmatter is valid YAML", yaml.wrong);
  return readFile(file, yaml.values, text.slice(frontmatter.body));
}

/** A file that says nothing that can be used; its file name tells which definition it was meant for. */
export function brokenFile(file: string, rule: string, problem: string): DefinitionFile {
  const name = nameOf(file);
  const message = `"${name}" is disabled: ${file}: ${rule}; ${problem}`;
  return {
    file,
    name,
    fields: {},
    body: "",
    broken: true,
    findings: [{ file, name, rule, effect: "disabled", message }],
  };
}

function readFile(file: string, values: ReadonlyMap<unknown, unknown>, body: string): DefinitionFile {
  let given: Fields = {};
  const bad: { field: string; rule: string; value: string }[] = [];
  for (const field of FIELD_NAMES) {
    const read = readField(field, values.get(field));
    if ("rule" in read) bad.push({ field, rule: read.rule, value: shown(values.get(field)) });
    else given = { ...given, ...read };
  }
  const { name = nameOf(file), ...fields } = given;
  const about = (field: string, rule: string, effect: Finding["effect"], message: string): Finding => ({
    file,
    name,
    field,
    rule,
    effect,
    message,
  });
  const findings = bad.map(({ field, rule, value }) =>
    about(field, rule, "disabled", `"${name}" is disabled: ${file}: ${field} must be ${rule}, and is ${value}`),
  );
  const known = new Set<unknown>(FIELD_NAMES);
  for (const key of values.keys()) {
    if (known.has(key)) continue;
    const field = typeof key === "string" ? key : JSON.stringify(key);
    findings.push(
      about(field, "only fields of a definition count", "ignored", `${file}: the unknown field ${field} is ignored`),
    );
  }
  if (fields.excludeTools?.includes("ask_owner")) {
    const rule = "every worker can ask its owner";
    findings.push(about("excludeTools", rule, "ignored", `${file}: ask_owner in excludeTools has no effect: ${rule}`));
  }
  return { file, name, fields, body, broken: bad.length > 0, findings };
}

/** The name a file has when it says none. */
function nameOf(file: string): string {
  const name = basename(file).replace(/\.md$/i, "").trim();
  return isName(name) ? name : basename(file);
}
