import { readFileSync } from "node:fs";

/** The version of this software, such as `1.2.3`. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string }
).version;
