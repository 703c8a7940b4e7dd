// `arbor whoami` and `arbor members`: who calls, and who holds roles in a group.
import type { Command } from "commander";
import { addCommonFlags, createColumnsOption } from "../flags.js";
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
    .description("list the people and workloads of a group, with their roles, also those from groups above it")
    .requiredOption("--group <uid-or-name>", "the group, such as acme.example/platform")
    .action(async (flags) => (await import("./members.js")).listMembers(flags));
}
