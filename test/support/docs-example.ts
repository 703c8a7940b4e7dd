import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "./project.js";

/** All blocks of TypeScript of a page of docs/, as one module after the declarations of what they do not declare. */
export function docsExamples(page: string, declarations: string): string {
  const text = readFileSync(join(PROJECT, "docs", page), "utf8");
  const blocks = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
  if (blocks.length === 0) throw new TypeError(`no examples in ${page}`);
  return [declarations, ...blocks].join("\n");
}

/** The first block of TypeScript below a heading of a page of docs/. */
export function docsExample(page: string, heading: string): string {
  const text = readFileSync(join(PROJECT, "docs", page), "utf8");
  const section = text.split(`\n## ${heading}\n`)[1];
  const code = section === undefined ? undefined : /^```ts\n(.*?)^```$/ms.exec(section)?.[1];
  if (code === undefined) throw new TypeError(`no example below "${heading}" in ${page}`);
  return code;
}
