// `arbor iam role-bindings set-end`, beside the verbs of role bindings.
import type { Command } from "commander";
import { addCommonFlags } from "../flags.js";
import { setMethods } from "../methods.js";

/** Adds `set-end` to the commands of role bindings. */
export function addSetEnd(roleBindings: Command): void {
  const command = setMethods(
    roleBindings.command("set-end <uid>"),
    "arbor.bindings.v1.TemporaryBindingsService/SetBindingEnd",
  )
    .description("set or remove the end of a role binding")
    .option("--expires <time>", "when it ends: a time such as 2026-01-31T12:00:00Z, or a duration from now such as 8h")
    .option("--never", "it does not end");
  addCommonFlags(command).action(async (uid, flags) =>
    (await import("./set-binding-end.js")).setEndCommand(uid, flags),
  );
}
