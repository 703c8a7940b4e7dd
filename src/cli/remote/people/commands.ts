// `arbor whoami` and `arbor members`: who calls, and who holds roles in a group.
import type { Command } from "commander";
import { addCommonFlags, createColumnsOption } from "../flags.js";
import { setMethods } from "../methods.js";

/** Adds `whoami` and `members`. */
export function addPeopleCommands(arbor: Command): void {
  const whoami = addCommonFlags(arbor.command("whoami"))
    .description("print who you are to the service, and what you may do")
    .action(async (flags) => (await import("./whoami.js")).printCaller(flags));
  const members = arbor.command("members").description("who holds roles in a group");
  const list = addCommonFlags(members.command("list").addOption(createColumnsOption()))
    .description("list the people and workloads of a group, with their roles, also those from groups above it")
    .requiredOption("--group <uid-or-name>", "the group, such as acme.example/platform")
    .action(async (flags) => (await import("./members.js")).listMembers(flags));
  const iam = "chainguard.platform.iam.v2beta1";
  setMethods(
    list,
    `${iam}.GroupsService/GetGroup`,
    `${iam}.RoleBindingsService/ListRoleBindings`,
    `${iam}.IdentitiesService/ListIdentities`,
    `${iam}.IdentitiesService/GetIdentity`,
    "chainguard.platform.auth.Auth/Validate",
  );
  setMethods(
    whoami,
    "chainguard.platform.auth.Auth/Validate",
    "chainguard.platform.iam.v2beta1.IdentitiesService/GetIdentity",
  );
}
