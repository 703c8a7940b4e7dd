// `arbor whoami` and `arbor members`: who calls, and who holds roles in a group.
import type { Command } from "commander";
import { addCommonFlags } from "../flags.js";
import { setMethods } from "../methods.js";

/** Adds `whoami` and `members`. */
export function addPeopleCommands(arbor: Command): void {
  const whoami = addCommonFlags(arbor.command("whoami"))
    .description("print who you are to the service, and what you may do")
    .action(async (flags) => (await import("./whoami.js")).printCaller(flags));
  setMethods(
    whoami,
    "chainguard.platform.auth.Auth/Validate",
    "chainguard.platform.iam.v2beta1.IdentitiesService/GetIdentity",
  );
}
