import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

const require = createRequire(import.meta.url);
let library: typeof RE2JS | undefined;

/**
 * RE2's regular expressions, which are matched in linear time. They are loaded when they are first used: their tables
 * of Unicode take 7 ms, which no start needs.
 */
export function loadRe2(): typeof RE2JS {
  library ??= (require("re2js") as { readonly RE2JS: typeof RE2JS }).RE2JS;
  return library;
}
