// Finds words that have a standard term (scripts/words.json): in the names that
// TypeScript and JavaScript declare, in file names, and as phrases in comments,
// string literals, Markdown and proto comments.
//
//   node scripts/words.mjs [--root DIRECTORY]
//
// Prints a line `file:line: word; write: term` for each, and fails if there is one.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { SyntaxKind } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";

const ROOTS = ["src", "test", "bench", "scripts", "proto", "docs"];
// gen/ and the v2 folders of proto/ are generated: a word there stands in the file they come from.
const GENERATED = ["node_modules", "v2", "migrations"];

const table = JSON.parse(readFileSync(new URL("words.json", import.meta.url), "utf8"));
const excludedNames = table.exceptions.names.map(({ name }) => name);
const excludedTexts = table.exceptions.texts.map(({ text }) => text);
const excludedPaths = new Set(table.exceptions.paths.map(({ path }) => path));

// A rule lists words, and may have a pattern for more of them with the words that it finds wrongly.
const nameRules = table.identifiers.flatMap(({ words, pattern, except = [], first, ...rule }) => {
  const pick = (word) => ({ ...rule, pattern: new RegExp(`${first ? "^" : ""} (${word})(?= )`) });
  const more = pattern === undefined ? [] : [pick(`(?!(?:${except.join("|")}) )${pattern}`)];
  return [...words.map(pick), ...more];
});
const phraseRules = [
  ...table.phrases.flatMap(({ phrases, ...rule }) => phrases.map((phrase) => ({ ...rule, pattern: phrase }))),
  ...table.references.map((pattern) => ({ pattern, instead: "the RFC, the AIP, the proto file or a page of docs/" })),
].map((rule) => ({ ...rule, pattern: phrasePattern(rule.pattern) }));

const FUNCTIONS = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.MethodSignature,
  SyntaxKind.FunctionType,
]);
const TYPES = new Set([
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.ClassDeclaration,
  SyntaxKind.EnumDeclaration,
  SyntaxKind.TypeParameter,
]);
const VALUES = new Set([
  SyntaxKind.VariableDeclaration,
  SyntaxKind.Parameter,
  SyntaxKind.BindingElement,
  SyntaxKind.PropertyDeclaration,
  SyntaxKind.PropertySignature,
  SyntaxKind.PropertyAssignment,
  SyntaxKind.GetAccessor,
  SyntaxKind.SetAccessor,
  SyntaxKind.EnumMember,
]);
const LITERALS = new Set([
  SyntaxKind.StringLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateHead,
  SyntaxKind.TemplateMiddle,
  SyntaxKind.TemplateTail,
]);
const COMMENT = /\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
// What begins the lines of a comment is no part of its sentences.
const COMMENT_MARGIN = /^[ \t]*(?:\/\/+|\/\*+|\*+\/?)/gm;

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const root = resolve(values.root);
const findings = findWords();
for (const { file, line, word, instead } of findings) console.log(`${file}:${line}: ${word}; write: ${instead}`);
console.log(`words: ${findings.length} found`);
process.exitCode = findings.length > 0 ? 1 : 0;

function findWords() {
  const files = filesToRead();
  const scripts = files.filter((file) => /\.(?:ts|mjs)$/.test(file));
  const found = [...files.flatMap(wordsInPath), ...wordsInScripts(scripts)];
  for (const file of files.filter((name) => /\.(?:md|proto)$/.test(name))) {
    const text = readFileSync(join(root, file), "utf8");
    const prose = file.endsWith(".md") ? text : keepComments(text, protoStrings(text));
    found.push(...phrasesIn(file, text, prose));
  }
  return found.sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line);
}

function filesToRead() {
  const pages = readdirSync(root).filter((name) => name.endsWith(".md"));
  const below = (directory) =>
    readdirSync(join(root, directory), { withFileTypes: true }).flatMap((entry) => {
      const path = `${directory}/${entry.name}`;
      if (entry.isDirectory()) return GENERATED.includes(entry.name) ? [] : below(path);
      return [path];
    });
  const directories = readdirSync(root).filter((name) => ROOTS.includes(name));
  return [...pages, ...directories.flatMap(below)].filter((file) => !excludedPaths.has(file));
}

function wordsInPath(file) {
  const rules = nameRules.filter((rule) => rule.of === undefined && holdsIn(rule, file));
  return file.split("/").flatMap((name) => wordsInName(name, rules).map((finding) => ({ file, line: 1, ...finding })));
}

function wordsInScripts(files) {
  if (files.length === 0) return [];
  const config = join(root, "tsconfig.words.json");
  const options = { allowJs: true, noResolve: true, noLib: true, types: [], module: "nodenext", noEmit: true };
  const content = JSON.stringify({ compilerOptions: options, files });
  const api = new API({
    cwd: root,
    fs: {
      readFile: (path) => (path === config ? content : undefined),
      fileExists: (path) => path === config || undefined,
    },
  });
  try {
    const { program } = api.updateSnapshot({ openProjects: [config] }).getProjects()[0];
    return files.flatMap((file) => wordsInScript(file, program.getSourceFile(join(root, file))));
  } finally {
    api.close();
  }
}

function wordsInScript(file, source) {
  const { text } = source;
  const fileRules = nameRules.filter((rule) => holdsIn(rule, file));
  const found = [];
  const strings = [];
  const opaque = [];
  const visit = (node) => {
    const kind = kindOf(node);
    const name = node.name?.text;
    if (kind !== undefined && name !== undefined) {
      const rules = fileRules.filter(({ of }) => of === undefined || of.includes(kind));
      const line = lineOf(text, node.name.getStart(source));
      found.push(...wordsInName(name, rules).map((finding) => ({ file, line, ...finding })));
    }
    if (LITERALS.has(node.kind)) strings.push([node.getStart(source), node.end]);
    else if (node.kind === SyntaxKind.RegularExpressionLiteral) opaque.push([node.getStart(source), node.end]);
    node.forEachChild(visit);
  };
  visit(source);
  const prose = keepComments(
    text,
    [...strings, ...opaque].sort((a, b) => a[0] - b[0]),
  );
  found.push(...phrasesIn(file, text, prose));
  const rules = phraseRules.filter((rule) => rule.strings !== false);
  found.push(...phrasesIn(file, text, keepRanges(text, strings), rules));
  return found;
}

/** What a node declares: a function, a type or a value; undefined if nothing. */
function kindOf(node) {
  if (TYPES.has(node.kind)) return "type";
  if (FUNCTIONS.has(node.kind)) return "function";
  if (!VALUES.has(node.kind)) return undefined;
  const body = node.initializer ?? node.type;
  return body !== undefined && FUNCTIONS.has(body.kind) ? "function" : "value";
}

function holdsIn(rule, file) {
  return rule.in === undefined || rule.in.some((directory) => file.startsWith(directory));
}

function wordsInName(name, rules) {
  const segments = excludedNames.reduce(
    (rest, excluded) => rest.replaceAll(` ${excluded} `, " - "),
    ` ${splitName(name).join(" ")} `,
  );
  return rules
    .map(({ pattern, instead }) => ({ word: pattern.exec(segments)?.[1], instead }))
    .filter(({ word }) => word !== undefined)
    .map(({ word, instead }) => ({ word: `"${word}" in ${name}`, instead }));
}

/** The words that a name is made of: `onKeyNews`, `on-key-news` and `ON_KEY_NEWS` have the same. */
function splitName(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((segment) => segment !== "");
}

/** Finds a phrase as words of their own, also when a line ends within it. */
function phrasePattern(phrase) {
  return new RegExp(`(?<![\\w-])(?:${phrase.replaceAll(" ", "\\s+")})(?![\\w-])`, "gi");
}

/** The text with all but its comments blanked out; positions and lines stay. */
function keepComments(text, literals) {
  const code = blank(text, literals);
  let prose = "";
  let end = 0;
  for (const { 0: comment, index } of code.matchAll(COMMENT)) {
    prose += code.slice(end, index).replace(/[^\n]/g, " ");
    // A blank line of code separates comments; the next line of the same comment does not.
    if (code.slice(end, index).trim() !== "") prose = `${prose.slice(0, -1)}\0`;
    prose += comment.replace(COMMENT_MARGIN, (margin) => " ".repeat(margin.length));
    end = index + comment.length;
  }
  return prose;
}

/** The text with all but these ranges blanked out, and a mark between one and the next. */
function keepRanges(text, ranges) {
  let kept = "";
  for (const [from, to] of ranges) {
    kept += text.slice(kept.length, from).replace(/[^\n]/g, "\0") + text.slice(from, to);
  }
  return kept;
}

function blank(text, ranges) {
  let blanked = "";
  let end = 0;
  for (const [from, to] of ranges) {
    blanked += text.slice(end, from) + text.slice(from, to).replace(/[^\n]/g, "_");
    end = to;
  }
  return blanked + text.slice(end);
}

function protoStrings(text) {
  // A comment comes first where it begins first: an apostrophe in it opens no string.
  const tokens = text.matchAll(/\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"/g);
  return [...tokens]
    .filter(([token]) => token.startsWith('"'))
    .map(({ 0: token, index }) => [index, index + token.length]);
}

function phrasesIn(file, text, prose, rules = phraseRules) {
  const plain = excludedTexts.reduce((rest, excluded) => rest.replaceAll(excluded, "_".repeat(excluded.length)), prose);
  return rules.flatMap(({ pattern, instead }) =>
    [...plain.matchAll(pattern)].map(({ 0: word, index }) => ({
      file,
      line: lineOf(text, index),
      word: `"${word.replace(/\s+/g, " ")}"`,
      instead,
    })),
  );
}

function lineOf(text, position) {
  return text.slice(0, position).split("\n").length;
}
