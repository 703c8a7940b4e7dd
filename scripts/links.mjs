// Checks that every page of docs/ exists that the tree names, with its heading
// where one is given: by its path in any file, and by a relative link in Markdown.
// Checks the same of source files that Markdown names.
//
//   node scripts/links.mjs [--root DIRECTORY]
//
// Prints a line `file:line: target` for each that leads nowhere, and fails if there is one.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, resolve } from "node:path";
import { parseArgs } from "node:util";

const ROOTS = ["src", "test", "bench", "scripts", "proto", "docs", "examples", "deploy", "site"];
// The test of this script plants links that lead nowhere.
const EXCLUDED = ["test/scripts/links.test.ts"];
const MENTION = /(?<![\w./-])docs\/[\w./-]+\.md(?:#[\w-]+)?/g;
const SOURCE = /(?<![\w./-])(?:src|test|bench|scripts|proto)\/[\w./-]+\.(?:ts|mjs|proto|json|sh)\b/g;
const LINK = /\]\(([^)\s:]+)\)/g;

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const root = resolve(values.root);
const pages = readdirSync(root).filter((name) => name.endsWith(".md"));
const directories = readdirSync(root).filter((name) => ROOTS.includes(name));
const broken = [...pages, ...directories.flatMap(filesIn)].flatMap(findBroken);
for (const { file, line, target } of broken) console.log(`${file}:${line}: ${target}`);
console.log(`links: ${broken.length} lead nowhere`);
process.exitCode = broken.length > 0 ? 1 : 0;

function filesIn(directory) {
  return readdirSync(join(root, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = `${directory}/${entry.name}`;
    if (entry.isDirectory()) return filesIn(path);
    return /\.(?:ts|mjs|proto|md)$/.test(entry.name) && !EXCLUDED.includes(path) ? [path] : [];
  });
}

function findBroken(file) {
  const text = readFileSync(join(root, file), "utf8");
  const patterns = file.endsWith(".md") ? [MENTION, SOURCE] : [MENTION];
  const mentions = patterns
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map(({ 0: target, index }) => ({ target, index }));
  const links = file.endsWith(".md")
    ? [...text.matchAll(LINK)].map(({ 1: link, index }) => ({ target: fromPage(file, link), index }))
    : [];
  return [...mentions, ...links]
    .filter(({ target }) => !leadsSomewhere(target))
    .map(({ target, index }) => ({ file, line: text.slice(0, index).split("\n").length, target }));
}

function fromPage(file, link) {
  return link.startsWith("#") ? `${file}${link}` : normalize(join(dirname(file), link));
}

function leadsSomewhere(target) {
  const [path, heading] = target.split("#");
  if (!existsSync(join(root, path))) return false;
  return heading === undefined || readHeadings(path).has(heading);
}

/** The anchors that a rendered page has: its headings in lower case, with hyphens for blanks. */
function readHeadings(path) {
  const headings = readFileSync(join(root, path), "utf8").matchAll(/^#+ +(.+)$/gm);
  const anchors = [...headings].map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .trim()
      .replaceAll(" ", "-"),
  );
  return new Set(anchors);
}
