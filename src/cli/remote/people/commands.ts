// `arbor whoami` and `arbor members`: who calls, and who holds roles in a group.
import type { Command } from "commander";
import { addExamples } from "../../examples.js";
import { addCommonFlags, addConfirmation, createColumnsOption } from "../flags.js";
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
  const offboard = addCommonFlags(addConfirmation(members.command("offboard"), ({ dryRun }) => dryRun !== true))
    .description(
      "take from a person all role bindings in a group and below it, open invites, and tokens and sessions, and list what remains. " +
        "Run it again after an interruption",
    )
    .argument("<person>", "e-mail address or uid of the person")
    .option("--group <uid-or-name>", "the group; the organisation unless given, where you have roles in one alone")
    .option("--dry-run", "print what would be taken and what would remain, and take nothing")
    .action(async (person, flags) => (await import("./offboard.js")).offboard(person, flags));
  addExamples(
    offboard,
    ["Bob has left: what does he have?", "arbor members offboard bob@acme.example --dry-run"],
    ["Take it from him", "arbor members offboard bob@acme.example"],
    ["Take it from him in one group", "arbor members offboard bob@acme.example --group acme.example/platform"],
  );
  const iam = "chainguard.platform.iam.v2beta1";
  setMethods(
    offboard,
    `${iam}.RoleBindingsService/DeleteRoleBinding`,
    `${iam}.GroupInvitesService/DeleteGroupInvite`,
    "arbor.tokens.v1.TokensService/RevokePersonTokens",
  );
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
