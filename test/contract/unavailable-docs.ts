// The tables of the documentation that say what is not implemented.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../support/project.js";

/** Lists the methods in the table of a page, such as `Registry.GetSbom`, each with its reason. */
export function listUnavailable(page: string): (readonly [name: string, reason: string])[] {
  const text = readFileSync(join(PROJECT, page), "utf8");
  const [, section = ""] = /^#+ What is not implemented\n([\s\S]*?)(?=^#)/m.exec(text) ?? [];
  const rows = section.matchAll(/^\| `([A-Z]\w+\.[A-Z]\w+)` \| (.*) \|$/gm);
  return [...rows].map(([, name = "", reason = ""]) => [name, reason] as const);
}
