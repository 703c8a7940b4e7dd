// Builds the documentation as a site: the pages of docs/ in their sections, those made from descriptors, and a search.
// scripts/site.mjs runs it when something has changed.
//   node --import tsx site/build.mjs DIRECTORY STAMP
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Eleventy from "@11ty/eleventy";
import { build } from "esbuild";
import { changeRules } from "./markdown.mjs";
import { describeResources } from "./resources.mjs";
import { buildIndex } from "./search.mjs";
import { fileOf, sections } from "./sections.mjs";

/** With fewer headings a page needs no contents. */
const LEAST_CONTENTS = 3;
const CONTENTS = /<details class="contents">.*?<\/details>/s;
const entities = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };

const [out, stamp] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const decisions = readdirSync("docs/adr")
  .filter((name) => name.endsWith(".md"))
  .map((name) => `adr/${name.slice(0, -".md".length)}`);
const made = await makePages();
/** What is beside the pages: pictures, and what they link to. */
const others = readdirSync("docs", { recursive: true })
  .map((name) => name.replaceAll("\\", "/"))
  .filter((name) => /\.(?:json|svg|webp)$/.test(name));
const menu = sections.map(({ title, lead, pages }) => ({
  title,
  lead,
  pages: pages.map((name) => ({ url: `${name}.html`, title: titleOf(readPage(name)) })),
}));
const names = [...new Set([...sections.flatMap((section) => section.pages), ...decisions, ...made.keys()])];
const titles = new Map(names.map((name) => [fileOf(name), titleOf(readPage(name))]));
/** All pages in the order in which they can be read. */
const order = sections.flatMap(({ pages }) => pages).flatMap((name) => [name, ...pagesBelow(name)]);
const urls = new Map([
  ...names.map((name) => [fileOf(name), `${name}.html`]),
  ...others.map((name) => [`docs/${name}`, name]),
  ["docs/adr", "decisions.html"],
]);

const eleventy = new Eleventy("site/pages", "site/none", { quietMode: true, config: configure });
const pages = (await eleventy.toJSON()).map(({ url, content }) => ({
  path: url === "/" ? "index.html" : url.slice(1),
  content,
}));
for (const { path, content } of pages) write(path, content);
for (const name of others) write(name, readFileSync(join("docs", name)));
await writeAssets();

function configure(config) {
  config.setIncludesDirectory("../layouts");
  // The pages are Markdown and nothing else: a brace is a brace.
  config.setTemplateFormats(["md", "njk"]);
  config.amendLibrary("md", (md) => changeRules(md, urls, titles));
  config.addFilter("headings", listHeadings);
  config.addFilter("withContents", addContents);
  config.addFilter("hasContents", hasContents);
  for (const [name, value] of Object.entries({ version, stamp, menu })) config.addGlobalData(name, value);
  for (const { title, pages: listed } of sections) for (const name of listed) addPage(name, title);
  for (const name of pagesBelow("decisions")) addPage(name, "Understand");
  for (const name of pagesBelow("resources")) addPage(name, "Reference");

  function addPage(name, section) {
    const text = readPage(name);
    config.addTemplate(`${name}.md`, text, {
      layout: "page.njk",
      templateEngineOverride: "md",
      title: titleOf(text),
      source: fileOf(name),
      here: `${name}.html`,
      permalink: `${name}.html`,
      root: name.includes("/") ? "../" : "",
      section,
      previous: linkTo(order[order.indexOf(name) - 1]),
      next: linkTo(order[order.indexOf(name) + 1]),
    });
  }
}

function linkTo(name) {
  return name === undefined ? undefined : { url: `${name}.html`, title: titles.get(fileOf(name)) };
}

/** The pages that one lists which are not in the menu. */
function pagesBelow(name) {
  if (name === "decisions") return decisions;
  return name === "resources" ? [...made.keys()].filter((one) => one.startsWith("resources/")) : [];
}

/** The pages that no file has, as Markdown by name. */
async function makePages() {
  const list = decisions.map((name) => `- [${titleOf(readFileSync(`docs/${name}.md`, "utf8"))}](${name}.md)`);
  const text = `# Decisions\n\nWhat was decided, and why.\n\n${list.join("\n")}\n`;
  return new Map([["decisions", text], ...(await describeResources())]);
}

function readPage(name) {
  return made.get(name) ?? readFileSync(fileOf(name), "utf8");
}

function titleOf(text) {
  return /^# (.+)$/m.exec(text)?.[1].replaceAll("`", "") ?? "";
}

function listHeadings(content) {
  return [...content.matchAll(/<h2 id="([^"]*)">(.*?)<\/h2>/g)].map(([, id, text]) => ({
    id,
    text: text.replace(/<[^>]*>/g, ""),
  }));
}

function hasContents({ length }) {
  return length >= LEAST_CONTENTS;
}

// On small screens the contents are folded below the title; on wide ones they are beside the text.
function addContents(content, headings) {
  if (!hasContents(headings)) return content;
  const items = headings.map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`).join("\n");
  const contents = `<details class="contents"><summary>On this page</summary>\n<ul>\n${items}\n</ul>\n</details>`;
  return content.replace("</h1>", `</h1>\n${contents}`);
}

async function writeAssets() {
  const texts = { minisearch: "LICENSE.txt", stemmer: "license", leven: "license" };
  const licences = Object.entries(texts).map(
    ([name, file]) => `Contains ${name}.\n${readFileSync(`node_modules/${name}/${file}`, "utf8").trim()}`,
  );
  const bundled = await build({
    entryPoints: ["site/assets/site.js"],
    ...{ bundle: true, write: false, format: "iife", minify: true, target: "es2022", legalComments: "none" },
    banner: { js: `/*! ${licences.join("\n\n")}\n*/` },
  });
  write(`assets/${stamp}.js`, bundled.outputFiles[0].text);
  write(`assets/${stamp}.theme.js`, readFileSync("site/assets/theme.js"));
  write(`assets/${stamp}.css`, readFileSync("site/assets/site.css"));
  write(`assets/${stamp}.svg`, readFileSync("site/assets/icon.svg"));
  write(`assets/${stamp}.index.js`, `globalThis.arborIndex = ${JSON.stringify(buildIndex(listEntries()))};\n`);
}

// A page is found by its sections, and as a whole by all that is on it.
function listEntries() {
  const entries = [];
  for (const { path, content } of pages) {
    const name = path.slice(0, -".html".length);
    const page = titles.get(fileOf(name));
    if (page === undefined || name === "licences") continue;
    const [, article = ""] = /<article>(.*)<\/article>/s.exec(content.replace(CONTENTS, "")) ?? [];
    const rank = rankOf(name);
    for (const part of article.split(/(?=<h[123][ >])/)) {
      const [whole = "", level, anchor, heading] = /^<h([123]) id="([^"]*)">(.*?)<\/h[123]>/.exec(part) ?? [];
      if (heading === undefined) continue;
      const text = toText(part.slice(whole.length));
      const body = level === "1" ? toText(article) : text;
      const url = level === "1" ? path : `${path}#${anchor}`;
      entries.push({ id: entries.length, url, page, heading: toText(heading), body, text, rank });
    }
  }
  return entries;
}

/** How much the kind of a page counts: what to do before what there is, and that before why it is so. */
function rankOf(name) {
  if (/^(?:adr\/|(?:decisions|migration|v1)$)/.test(name)) return 0.4;
  if (name.startsWith("resources/")) return 0.8;
  if (name.startsWith("how-to/")) return 1.7;
  // `How-to: registry` is of the kind `How-to`.
  const [section] = sections.find(({ pages: listed }) => listed.includes(name))?.title.split(":") ?? [];
  return { Start: 1.3, "How-to": 1.5, Concepts: 1.2, Operate: 1.2, Understand: 0.7 }[section] ?? 1;
}

function toText(html) {
  return html
    .replace(/<\/?(?:span|code|a|em|strong)\b[^>]*>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&(?:lt|gt|quot|amp);/g, (entity) => entities[entity])
    .replace(/\s+/g, " ")
    .trim();
}

function write(path, content) {
  const file = join(out, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
