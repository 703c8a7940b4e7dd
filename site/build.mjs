// Builds the documentation as a site: the pages of docs/ in their sections, those made from descriptors, and a search.
// scripts/site.mjs runs it when something has changed.
//   node --import tsx site/build.mjs DIRECTORY STAMP
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Eleventy from "@11ty/eleventy";
import { build } from "esbuild";
import MiniSearch from "minisearch";
import { changeRules } from "./markdown.mjs";
import { describeResources } from "./resources.mjs";
import { searchOptions } from "./search-options.mjs";
import { fileOf, sections } from "./sections.mjs";

const entities = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };

const [out, stamp] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const decisions = readdirSync("docs/adr")
  .filter((name) => name.endsWith(".md"))
  .map((name) => `adr/${name.slice(0, -".md".length)}`);
const made = makePages();
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
  for (const [name, value] of Object.entries({ version, stamp, menu })) config.addGlobalData(name, value);
  for (const { title, pages: listed } of sections) for (const name of listed) addPage(name, title);
  for (const name of decisions) addPage(name, "Understand");
  for (const name of made.keys()) if (name.startsWith("resources/")) addPage(name, "Reference");

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
    });
  }
}

/** The pages that no file has, as Markdown by name. */
function makePages() {
  const list = decisions.map((name) => `- [${titleOf(readFileSync(`docs/${name}.md`, "utf8"))}](${name}.md)`);
  const text = `# Decisions\n\nWhat was decided, and why.\n\n${list.join("\n")}\n`;
  return new Map([["decisions", text], ...describeResources()]);
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

// Below the title, where there is something to choose from.
function addContents(content, headings) {
  if (headings.length < 3) return content;
  const items = headings.map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`).join("\n");
  const contents = `<details class="contents"><summary>On this page</summary>\n<ul>\n${items}\n</ul>\n</details>`;
  return content.replace("</h1>", `</h1>\n${contents}`);
}

async function writeAssets() {
  const licence = readFileSync("node_modules/minisearch/LICENSE.txt", "utf8").trim();
  const bundled = await build({
    entryPoints: ["site/assets/search.js"],
    ...{ bundle: true, write: false, format: "iife", minify: true, target: "es2020", legalComments: "none" },
    banner: { js: `/*! Contains MiniSearch.\n${licence}\n*/` },
  });
  write(`assets/${stamp}.js`, bundled.outputFiles[0].text);
  write(`assets/${stamp}.css`, readFileSync("site/assets/site.css"));
  write(`assets/${stamp}.svg`, readFileSync("site/assets/icon.svg"));
  write(`assets/${stamp}.index.js`, `globalThis.arborIndex = ${JSON.stringify(makeIndex())};\n`);
}

// A page is found by its sections, each with what it begins with.
function makeIndex() {
  const index = new MiniSearch(searchOptions);
  let id = 0;
  for (const { path, content } of pages) {
    const name = path.slice(0, -".html".length);
    if (name === "index" || name === "licences") continue;
    const page = titles.get(fileOf(name)) ?? "";
    const [, main = ""] =
      /<main[^>]*>(.*)<\/main>/s.exec(content.replace(/<details class="contents">.*?<\/details>/s, "")) ?? [];
    for (const part of main.split(/(?=<h[123][ >])/)) {
      const [whole = "", anchor, heading] = /^<h[123] id="([^"]*)">(.*?)<\/h[123]>/.exec(part) ?? [];
      if (heading === undefined) continue;
      const body = toText(part.slice(whole.length));
      const address = toText(heading) === page ? path : `${path}#${anchor}`;
      index.add({ id: id++, url: address, page, heading: toText(heading), body, text: shorten(body) });
    }
  }
  return index;
}

function toText(html) {
  return html
    .replace(/<[^>]*>/g, " ")
    .replace(/&(?:lt|gt|quot|amp);/g, (entity) => entities[entity])
    .replace(/\s+/g, " ")
    .trim();
}

function shorten(text) {
  return text.length <= 120 ? text : `${text.slice(0, text.lastIndexOf(" ", 120))} …`;
}

function write(path, content) {
  const file = join(out, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}
