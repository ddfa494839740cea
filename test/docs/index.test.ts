import { readdirSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { anchorsOf } from "../../tools/api/headings.ts";
import { page } from "./page.ts";

const folder = new URL("../../docs/", import.meta.url);
const pages = readdirSync(folder).filter((name) => name.endsWith(".md"));

describe("the documentation", () => {
  test("has an index with one line for every page", async () => {
    const index = await page("README.md");
    const listed = [...index.matchAll(/^\| \[[^\]]+\]\((\S+)\)/gm)].map(([, name]) => name);
    const topics = [...pages.filter((name) => name !== "README.md"), "api/README.md"];
    expect(listed.toSorted()).toEqual(topics.toSorted());
    expect(await readFile(new URL("../README.md", folder), "utf8")).toContain("(docs/README.md)");
  });

  test.each(pages)("has links in %s that lead somewhere", async (name) => {
    const text = await page(name);
    const links = [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/\]\(([^)\s]+)\)/g)].map(([, to = ""]) => to);
    const broken: string[] = [];
    for (const link of links) {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? new URL(name, folder) : new URL(path, folder);
      const isThere = await stat(target).then(
        () => true,
        () => false,
      );
      const leads = isThere && (anchor === undefined || anchorsOf(await readFile(target, "utf8")).includes(anchor));
      if (!leads) broken.push(link);
    }
    expect(broken).toEqual([]);
    expect(text).toMatch(/^# \S/);
  });
});
