// Checks that what comments name exists: each `{@link name}` a name in the code of its file, and each file, such as
// `links.mjs` or `kernel/time.ts`, in the folder of the comment, in one above it, or from the root or `src` on.
//
//   node scripts/comments.mjs [--root DIRECTORY]
//
// Prints a line `file:line: name` for each that does not, and fails if there is one. Only comments on lines of their own are
// read. scripts/links.mjs checks the pages of docs/ that the tree names.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";

const ROOTS = ["src", "test", "bench", "scripts", "site", "examples", "drizzle"];
// The test of this script plants names of what does not exist.
const EXCLUDED = ["test/scripts/comments.test.ts"];
const COMMENT = /^\s*(?:\/\/|\/\*|\*(?: |\/|$))/;
const LINK = /\{@link ([\w$]+(?:\.[\w$]+)*)/g;
const FILE = /(?<![\w@#*<>./-])(?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|mjs)\b/g;

const { values } = parseArgs({ options: { root: { type: "string", default: "." } } });
const root = resolve(values.root);
const missing = readdirSync(root)
  .filter((name) => ROOTS.includes(name))
  .flatMap(filesIn)
  .flatMap(findMissing);
for (const { file, line, name } of missing) console.log(`${file}:${line}: ${name}`);
console.log(`comments: ${missing.length} names of what does not exist`);
process.exitCode = missing.length > 0 ? 1 : 0;

function filesIn(directory) {
  return readdirSync(join(root, directory), { withFileTypes: true }).flatMap((entry) => {
    const path = `${directory}/${entry.name}`;
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesIn(path);
    return /\.(?:ts|mjs)$/.test(entry.name) && !EXCLUDED.includes(path) ? [path] : [];
  });
}

function findMissing(file) {
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  const code = lines.filter((text) => !COMMENT.test(text)).join("\n");
  return lines.flatMap((text, i) => {
    if (!COMMENT.test(text)) return [];
    const links = [...text.matchAll(LINK)].map(([, name]) => name).filter((name) => !isInCode(code, name));
    const files = [...text.matchAll(FILE)].map(([name]) => name).filter((name) => !isFile(name, file));
    return [...links, ...files].map((name) => ({ file, line: i + 1, name }));
  });
}

function isInCode(code, name) {
  return name.split(".").every((part) => new RegExp(`(?<![\\w$])${part.replaceAll("$", "\\$")}(?![\\w$])`).test(code));
}

function isFile(name, file) {
  for (let directory = dirname(file); ; directory = dirname(directory)) {
    if (existsSync(join(root, directory, name))) return true;
    if (directory === ".") return existsSync(join(root, "src", name));
  }
}
