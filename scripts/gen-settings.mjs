// Writes docs/settings.md and docs/settings.schema.json from the table of settings.
//   node --import tsx scripts/gen-settings.mjs
import { writeFileSync } from "node:fs";
import { buildSchema, formatPage } from "../src/config/describe.ts";

writeFileSync("docs/settings.md", formatPage());
writeFileSync("docs/settings.schema.json", `${JSON.stringify(buildSchema(), undefined, 2)}\n`);
