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
const { sections, madePages, otherFiles } = (await import(pathToFileURL(join(PROJECT, "site/sections.mjs")).href)) as {
  sections: readonly Section[];
  madePages: readonly string[];
  otherFiles: Readonly<Record<string, string>>;
};

const { toAnchor } = (await import(pathToFileURL(join(PROJECT, "site/markdown.mjs")).href)) as {
  toAnchor: (heading: string) => string;
};

const pages = readdirSync(SITE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
const files = new Set(readdirSync(SITE, { recursive: true, encoding: "utf8" }));
const texts = new Map(pages.map((page) => [page, readFileSync(join(SITE, page), "utf8")]));
const textOf = (page: string) => texts.get(page) ?? "";

test("every page of docs/ is in exactly one section", () => {
  const names = readdirSync(join(PROJECT, "docs"), { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".md") && !name.startsWith("adr/"))
    .map((name) => name.slice(0, -".md".length));
  const placed = sections.flatMap((section) => section.pages).filter((name) => !madePages.includes(name));
  assert.deepEqual([...placed].sort(), [...names, ...Object.keys(otherFiles)].sort());
});

test("the sections are in the order in which people need them", () => {
  assert.deepEqual(
    [...new Set(sections.map(({ title }) => title.replace(/:.*/, "")))],
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

test("no two elements have one id, and no heading has one of the frame", () => {
  for (const page of pages) {
    const ids = [...textOf(page).matchAll(/\sid="([^"]*)"/g)].map(([, id = ""]) => id);
    assert.deepEqual(
      ids.filter((id, i) => ids.indexOf(id) !== i),
      [],
      page,
    );
    const frame = textOf(page).replace(/<article>.*<\/article>/s, "");
    const own = [...frame.matchAll(/\sid="([^"]*)"/g)].map(([, id = ""]) => id);
    assert.ok(own.length > 3 && own.every((id) => id.startsWith("frame:")), `${page}: ${own}`);
  }
  // The control: what a heading is called cannot make such an id.
  assert.equal(toAnchor("Frame: keys"), "frame-keys");
});

test("the pages of the menu follow each other", () => {
  const names = sections.flatMap((section) => section.pages);
  const nextOf = (page: string) => /<a rel="next" href="([^"]*)"/.exec(textOf(page))?.[1];
  const seen = new Set<string>();
  for (let page: string | undefined = `${names[0]}.html`; page !== undefined && !seen.has(page); ) {
    seen.add(page);
    const next = nextOf(page);
    page = next === undefined ? undefined : posix.normalize(posix.join(posix.dirname(page), next));
  }
  assert.deepEqual(
    names.filter((name) => !seen.has(`${name}.html`)),
    [],
  );
  assert.ok([...seen].some((page) => page.startsWith("resources/")));
});

test("every reason of an error and every precondition is on the page of errors, and no other", () => {
  const page = readFileSync(join(PROJECT, "docs/errors.md"), "utf8");
  const named = new Set([...page.matchAll(/`([A-Z_]{4,})`/g)].map(([, name = ""]) => name));
  const sources = readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(PROJECT, "src", name), "utf8"));
  const thrown = sources.flatMap((text) =>
    [...text.matchAll(/failedPrecondition\(\s*"([A-Z_]+)"/g)].map(([, type = ""]) => type),
  );
  const [, union = ""] = /type ErrorReason =(.*?);/s.exec(sources.join("\n")) ?? [];
  const reasons = [...union.matchAll(/"([A-Z_]+)"/g)].map(([, reason = ""]) => reason);
  assert.ok(thrown.length > 50 && reasons.length === 13, `${thrown.length} ${reasons.length}`);
  assert.deepEqual([...named].sort(), [...new Set([...thrown, ...reasons])].sort());
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
  if (!files.has(file)) return false;
  return anchor === undefined || new RegExp(`\\sid="${anchor}"`).test(textOf(file));
}
