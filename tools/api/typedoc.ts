/**
 * The pages that typedoc makes of the docstrings, as Markdown.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Application, ProjectReflection, TypeDocOptions } from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";
import { root } from "../run.ts";

/** An entry point of the package: how users name it, the file it begins in, and its page. */
export interface EntryPoint {
  name: string;
  file: string;
  page: string;
}

export const entryPoints: readonly EntryPoint[] = [
  { name: "pi-herd", file: "runtime/index.ts", page: "pi-herd" },
  { name: "pi-herd/testing", file: "runtime/testing/index.ts", page: "testing" },
  { name: "pi-herd/contracts", file: "runtime/contracts.ts", page: "contracts" },
];

/**
 * Types that are named in signatures and have no page of their own: what they say is said where they are used. typedoc
 * warns of any other, and of those that are exported meanwhile.
 */
const NOT_EXPORTED = ["AgentNames", "CATEGORIES", "Clock", "OrderBase", "THINKING"];

const options = (folder: string): TypeDocOptions & Partial<PluginOptions> => ({
  entryPoints: entryPoints.map(({ file }) => file),
  // It has the members of a union in an order that no line elsewhere changes.
  tsconfig: join(root, "tsconfig.api.json"),
  // `npm run check` compiles the sources before this, in a tenth of the time.
  skipErrorChecking: true,
  plugin: ["typedoc-plugin-markdown"],
  outputs: [{ name: "markdown", path: folder }],
  readme: "none",
  // The same pages in every checkout: no commits, no addresses, no paths of this machine.
  disableSources: true,
  disableGit: true,
  hideGenerator: true,
  logLevel: "Warn",
  excludePrivate: true,
  excludeInternal: true,
  // What comes with every Error is not ours to describe.
  excludeExternals: true,
  sort: ["alphabetical"],
  groupOrder: ["Functions", "Interfaces", "Classes", "Type Aliases", "Variables"],
  validation: { notExported: true, invalidLink: true, notDocumented: true, rewrittenLink: true },
  requiredToBeDocumented: ["Function", "Class", "Interface", "TypeAlias", "Variable", "Method"],
  intentionallyNotExported: NOT_EXPORTED,
  outputFileStrategy: "modules",
  hidePageHeader: true,
  hideBreadcrumbs: true,
  expandObjects: true,
  parametersFormat: "table",
  interfacePropertiesFormat: "table",
  classPropertiesFormat: "table",
  typeAliasPropertiesFormat: "table",
  propertyMembersFormat: "table",
  typeDeclarationFormat: "table",
  tableColumnSettings: { hideDefaults: true, hideModifiers: true, hideInherited: true, hideOverrides: true },
});

/**
 * The page of every entry point, by the name of its file. What typedoc misses in the docstrings is on stderr by then.
 * @throws Error when typedoc cannot read the sources or write the pages.
 */
export async function document(): Promise<Map<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), "herd-api-"));
  try {
    const app = await bootstrap(folder);
    app.converter.on("resolveBegin", ({ project }) => {
      nameModules(project);
      removeSchemas(project);
    });
    const project = await app.convert();
    if (project === undefined) throw new Error("typedoc could not read the sources");
    app.validate(project);
    await app.generateOutputs(project);
    if (app.logger.hasErrors()) throw new Error("typedoc could not write the pages");
    const names = entryPoints.map(({ page }) => `${page}.md`);
    return new Map(names.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * typedoc asks the compiler through an interface that TypeScript 7 does not have. For typedoc alone `typescript` is
 * the last version that has it.
 */
async function bootstrap(folder: string): Promise<Application> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) => {
      const forTypedoc = specifier === "typescript" && /[\\/]node_modules[\\/]typedoc/.test(context.parentURL ?? "");
      return next(forTypedoc ? "typescript-6" : specifier, context);
    },
  });
  try {
    const { Application } = await import("typedoc");
    return await Application.bootstrapWithPlugins(options(folder));
  } finally {
    hooks.deregister();
  }
}

/** typedoc names modules, and with them their pages, by their files. */
function nameModules(project: ProjectReflection): void {
  for (const module of project.children ?? []) {
    const entry = entryPoints.find(({ file }) => file.replace(/^runtime\/|(\/index)?\.ts$/g, "") === module.name);
    if (entry === undefined) throw new Error(`typedoc has a module ${module.name} that is no entry point`);
    module.name = entry.page;
  }
}

/** A schema that has the name of its type comes along where only the type is exported: nobody can use it. */
function removeSchemas(project: ProjectReflection): void {
  for (const { children = [] } of project.children ?? []) {
    for (const child of [...children]) {
      const isSchema = child.type?.type === "reference" && child.type.package === "zod";
      const hasType = children.some((other) => other !== child && other.name === child.name);
      if (isSchema && hasType) project.removeReflection(child);
    }
  }
}
