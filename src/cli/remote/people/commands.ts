// `arbor whoami` and `arbor members`: who calls, and who holds roles in a group.
import type { Command } from "commander";
import { addCommonFlags, addConfirmation, createColumnsOption } from "../flags.js";
import { setMethods } from "../methods.js";

const IAM = "chainguard.platform.iam.v2beta1";
const VALIDATE = "chainguard.platform.auth.Auth/Validate";

/** Fills `whoami`. */
export function addWhoami(whoami: Command): void {
  addCommonFlags(setMethods(whoami, VALIDATE, `${IAM}.IdentitiesService/GetIdentity`)).action(async (flags) =>
    (await import("./whoami.js")).printCaller(flags),
  );
}

/** Fills `members`. */
export function addMembers(members: Command): void {
  const list = setMethods(
    members.command("list"),
    `${IAM}.GroupsService/GetGroup`,
    `${IAM}.RoleBindingsService/ListRoleBindings`,
    `${IAM}.IdentitiesService/ListIdentities`,
    `${IAM}.IdentitiesService/GetIdentity`,
    VALIDATE,
  );
  addCommonFlags(list.addOption(createColumnsOption()))
    .description("list the people and workloads with roles in a group, including roles from groups above it")
    .argument("[group]", "the group, such as acme.example/platform")
    .option("--group <uid-or-name>", "the same as the argument")
    .action(async (group, flags) => (await import("./members.js")).listMembers({ group, ...flags }));
  const offboard = setMethods(
    members.command("offboard"),
    `${IAM}.RoleBindingsService/DeleteRoleBinding`,
    `${IAM}.GroupInvitesService/DeleteGroupInvite`,
    "arbor.tokens.v1.TokensService/RevokePersonTokens",
  );
  addCommonFlags(addConfirmation(offboard, ({ dryRun }) => dryRun !== true))
    .description(
      "remove a person's role bindings in a group and below it, open invites, tokens and sessions, and list what remains. " +
        "Run it again after an interruption",
    )
    .argument("<person>", "e-mail address or uid of the person")
    .option("--group <uid-or-name>", "the group; if not given, the only organisation in which you have roles")
    .option("--dry-run", "print what would be removed and what would remain, and change nothing")
    .action(async (person, flags) => (await import("./offboard.js")).offboard(person, flags));
}
