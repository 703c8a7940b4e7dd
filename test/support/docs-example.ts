import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "./project.js";

/** The first block of TypeScript below a heading of a page of docs/. */
export function docsExample(page: string, heading: string): string {
  const text = readFileSync(join(PROJECT, "docs", page), "utf8");
  const section = text.split(`\n## ${heading}\n`)[1];
  const code = section === undefined ? undefined : /^```ts\n(.*?)^```$/ms.exec(section)?.[1];
  if (code === undefined) throw new TypeError(`no example below "${heading}" in ${page}`);
  return code;
}
