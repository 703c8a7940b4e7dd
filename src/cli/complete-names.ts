// `arbor complete-names`, for the scripts of `arbor completion`.
import { Argument, type Command } from "commander";
import { addApiFlag } from "./remote/flags.js";
import { completedKinds } from "./remote/names/complete.js";

/** Fills `complete-names`. */
export function addCompleteNames(command: Command): void {
  addApiFlag(command)
    .addArgument(new Argument("<kind>", "what is named").choices(completedKinds))
    .argument("[text]", "how the name begins", "")
    .action(async (kind, text, flags) => (await import("./remote/names/complete.js")).completeNames(kind, text, flags));
}
