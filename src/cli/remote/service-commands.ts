// `arbor version` and `arbor docs`: what the service says of itself without a login.
import type { Command } from "commander";
import { addApiFlag, addOutputFlags } from "./flags.js";

/** Fills `version`. */
export function addVersion(version: Command): void {
  addOutputFlags(addApiFlag(version)).action(async (flags) =>
    (await import("./service-info.js")).versionCommand(flags),
  );
}

/** Fills `docs`. */
export function addDocs(docs: Command): void {
  addApiFlag(docs.argument("[page]", "a page by its name, such as registry or settings"))
    .option("--no-browser", "only print the address of the page")
    .action(async (page, flags) => (await import("./service-info.js")).docsCommand(page, flags));
}
