// The documentation as a site: what site/build.mjs made of docs/ (scripts/build-tests.mjs runs it).
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT } from "../support/project.js";

interface Section {
  readonly title: string;
  readonly pages: readonly string[];
}

const SITE = join(PROJECT, "build/site");
const { sections, madePages } = (await import(pathToFileURL(join(PROJECT, "site/sections.mjs")).href)) as {
  sections: readonly Section[];
  madePages: readonly string[];
};

const pages = readdirSync(SITE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
const textOf = (page: string) => readFileSync(join(SITE, page), "utf8");

test("every page of docs/ is in exactly one section", () => {
  const files = readdirSync(join(PROJECT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => name.slice(0, -".md".length));
  const placed = sections.flatMap((section) => section.pages).filter((name) => !madePages.includes(name));
  assert.deepEqual([...placed].sort(), files.sort());
});

test("the sections are in the order in which people need them", () => {
  assert.deepEqual(
    sections.map(({ title }) => title),
    ["Start", "Concepts", "How-to", "Reference", "Operate", "Understand"],
  );
});

test("every link leads to a page and a heading", () => {
  const all = pages.flatMap((page) => linksOf(page).map((target) => ({ page, target })));
  assert.ok(all.length > 2000, String(all.length));
  assert.deepEqual(
    all.filter(({ page, target }) => !leadsSomewhere(page, target)),
    [],
  );
  // The control: what does not exist is found.
  for (const target of ["none.html", "cli.html#none", "#none"])
    assert.equal(leadsSomewhere("index.html", target), false);
});

test("every page has one title and leads to all others of the menu", () => {
  for (const page of pages) {
    assert.equal([...textOf(page).matchAll(/<h1[ >]/g)].length, 1, page);
    const up = "../".repeat(page.split("/").length - 1);
    const links = new Set(linksOf(page));
    for (const name of sections.flatMap((section) => section.pages)) assert.ok(links.has(`${up}${name}.html`), name);
  }
});

function linksOf(page: string): string[] {
  return [...textOf(page).matchAll(/\s(?:href|src)="([^"]*)"/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** Of the service itself, which is not in the site: its home page and the page of the API. */
const OUTSIDE = ["..", "../", "api"];

function leadsSomewhere(page: string, target: string): boolean {
  const [path = "", anchor] = target.split("#");
  const file = path === "" ? page : posix.normalize(posix.join(posix.dirname(page), path));
  if (OUTSIDE.includes(file)) return true;
  if (!isFile(file)) return false;
  return anchor === undefined || new RegExp(`\\sid="${anchor}"`).test(textOf(file));
}

function isFile(path: string): boolean {
  return readdirSync(SITE, { recursive: true, encoding: "utf8" }).includes(path);
}
