// `arbor scim`: the directory that sends people to an identity provider.
import type { Command } from "commander";
import { ScimService } from "#gen/arbor/scim/v1/scim_pb.js";
import { addCommonFlags, addConfirmation } from "../flags.js";
import { createColumn } from "../iam/columns.js";
import { addMethods } from "../iam/methods.js";
import { loadCommands, type ResourceCommand } from "../iam/resource-commands.js";
import { setMethods } from "../methods.js";

const PROVIDERS = "chainguard.platform.iam.v2beta1.IdentityProvidersService";
const PROVIDER = "uid or name of the identity provider";
const EXPIRES =
  "when the token expires: a time such as 2026-01-31T12:00:00Z, a duration such as 90d, or never; in a year unless given";

const { columns = [], methods } = await loadCommands("SCIM user");
const { list } = methods;
if (list === undefined) throw new TypeError("people of directories have no list");

/** The columns of the groups. */
export const groupColumns = [
  createColumn("NAME", "group.displayName"),
  createColumn("MEMBERS", "members"),
  createColumn("MAPPINGS", "mappings"),
  createColumn("UPDATED", "group.updateTime"),
  createColumn("EXTERNAL GROUP", "group.externalGroupId", "uid"),
];

const directories: ResourceCommand = {
  name: "scim",
  singular: "directory",
  methods: {},
  actions: [
    { name: "users", method: list, description: "list the people that the directory has sent", columns },
    {
      name: "groups",
      method: ScimService.method.listScimGroups,
      description: "list the groups that the directory has sent, with the ids that mappings use",
      columns: groupColumns,
    },
  ],
};

/** Fills `scim`. */
export function addScimCommands(scim: Command): void {
  addCommonFlags(
    setMethods(scim.command("status"), "arbor.scim.v1.ScimService/GetScimStatus")
      .description("print the state of the directory, and the people who need attention")
      .argument("<provider>", PROVIDER),
  ).action(async (provider, flags) => (await import("./status.js")).printStatus(provider, flags));
  addMethods(scim, directories);

  const setEnabled = [`${PROVIDERS}/GetIdentityProvider`, `${PROVIDERS}/SetScimEnabled`];
  addCommonFlags(
    setMethods(scim.command("enable"), ...setEnabled)
      .description("let the directory provision people: only people it has sent may then log in for the first time")
      .argument("<provider>", PROVIDER),
  ).action(async (provider, flags) => (await import("./settings.js")).setEnabled(provider, true, flags));
  addCommonFlags(
    setMethods(scim.command("disable"), ...setEnabled)
      .description("pause provisioning; people and their rights stay as they are")
      .argument("<provider>", PROVIDER),
  ).action(async (provider, flags) => (await import("./settings.js")).setEnabled(provider, false, flags));

  const token = scim.command("token").description("manage the token of the directory");
  addCommonFlags(
    setMethods(token.command("generate"), `${PROVIDERS}/GenerateScimToken`)
      .description("create the token of the directory, and print it once")
      .argument("<provider>", PROVIDER)
      .option("--expires <time>", EXPIRES),
  ).action(async (provider, flags) => (await import("./settings.js")).generateToken(provider, flags));
  const rotate = setMethods(
    token.command("rotate"),
    `${PROVIDERS}/GetIdentityProvider`,
    `${PROVIDERS}/RegenerateScimToken`,
  )
    .description("replace the token, and print the new one once")
    .argument("<provider>", PROVIDER)
    .option("--overlap <duration>", "how long the former token stays valid, such as 30m, at most 24h; 1h unless given")
    .option("--expires <time>", EXPIRES);
  addCommonFlags(addConfirmation(rotate)).action(async (provider, flags) =>
    (await import("./settings.js")).rotateToken(provider, flags),
  );
  const revoke = setMethods(token.command("revoke"), `${PROVIDERS}/RevokeScimToken`)
    .description("revoke the token, and the one that it has replaced")
    .argument("<provider>", PROVIDER);
  addCommonFlags(addConfirmation(revoke)).action(async (provider, flags) =>
    (await import("./settings.js")).revokeToken(provider, flags),
  );
}
