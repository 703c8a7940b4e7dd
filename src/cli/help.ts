// `arbor help`: the same as `--help` of a command.
import type { Command } from "commander";
import { invalidFlag } from "./errors.js";
import { fillNamed } from "./lazy-command.js";

/** Fills `help`. */
export function addHelp(help: Command): void {
  help.argument("[command...]", "the words of the command, such as `iam groups list`").action(async (words) => {
    const root = help.parent;
    if (root === null) return;
    const { command, rest } = await fillNamed(root, words);
    if (rest.length > 0) throw invalidFlag("command", `there is no command arbor ${words.join(" ")}`);
    (await import("./examples.js")).addExamples(command);
    command.outputHelp();
  });
}
