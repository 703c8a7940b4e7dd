// `arbor apply` and `arbor export`: an organisation in a file.
import { type Command, InvalidArgumentError, Option } from "commander";
import { addConfirmation, addConnectionFlags } from "../flags.js";
import { setMethods } from "../methods.js";

const iam = "chainguard.platform.iam.v2beta1";
const trust = "arbor.trust.v1.TrustService";
const events = "chainguard.platform.events.v2beta1.SubscriptionsService";
const registry = "chainguard.platform.registry.v2beta1.ReposService";
const temporary = "arbor.bindings.v1.TemporaryBindingsService";

/** What both read. */
const reads = [
  "chainguard.platform.auth.Auth/Validate",
  `${iam}.GroupsService/GetGroup`,
  `${iam}.GroupsService/ListGroups`,
  `${iam}.IdentitiesService/ListIdentities`,
  `${iam}.RolesService/ListRoles`,
  `${iam}.RoleBindingsService/ListRoleBindings`,
  `${temporary}/ListTemporaryBindings`,
  `${trust}/GetConditions`,
  `${trust}/GetIssuerGuard`,
  `${events}/ListSubscriptions`,
  `${registry}/ListRepos`,
  `${iam}.AccountAssociationsService/ListAccountAssociations`,
  `${iam}.GroupInvitesService/ListGroupInvites`,
];

/** Fills `apply`. */
export function addApply(apply: Command): void {
  apply
    .addOption(
      new Option("-f, --file <file>", "the file, in YAML or JSON, as `arbor export` writes it; - for standard input")
        .argParser(readOnce)
        .makeOptionMandatory(),
    )
    .option("--into <organisation>", "uid or name of the organisation, in place of the one that the file names")
    .option(
      "--dry-run",
      "only print what would change; the exit code is 0 for nothing, 2 for differences and 1 for an error",
    )
    .option("--prune", "also delete what the file does not have, in the groups and of the kinds that it lists")
    .addOption(new Option("-o, --output <format>", "format of the plan").choices(["text", "json"]).default("text"));
  addConfirmation(addConnectionFlags(apply), ({ dryRun }) => dryRun !== true).action(async (flags) =>
    (await import("./apply.js")).applyFile(flags),
  );
  setMethods(
    apply,
    ...reads,
    ...["Create", "Update", "Delete"].flatMap((verb) => [
      `${iam}.GroupsService/${verb}Group`,
      `${iam}.RolesService/${verb}Role`,
    ]),
    `${trust}/CreateIdentity`,
    `${iam}.IdentitiesService/UpdateIdentity`,
    `${iam}.IdentitiesService/DeleteIdentity`,
    `${trust}/SetConditions`,
    `${iam}.RoleBindingsService/CreateRoleBinding`,
    `${temporary}/CreateTemporaryBinding`,
    `${temporary}/SetBindingEnd`,
    `${iam}.RoleBindingsService/DeleteRoleBinding`,
    `${trust}/SetIssuerGuard`,
    `${trust}/RemoveIssuerGuard`,
    `${events}/CreateSubscription`,
    `${events}/DeleteSubscription`,
  );
}

/** Fills `export`. */
export function addExport(exported: Command): void {
  exported
    .argument("<organisation>", "uid or name of the organisation")
    .addOption(
      new Option("-o, --output <format>", "format of the file").choices(["yaml", "json", "terraform"]).default("yaml"),
    );
  addConnectionFlags(exported).action(async (organisation, flags) =>
    (await import("./export.js")).exportOrganization(organisation, flags),
  );
  setMethods(
    exported,
    ...reads,
    `${iam}.IdentityProvidersService/ListIdentityProviders`,
    `${iam}.ExternalGroupRoleMappingsService/ListExternalGroupRoleMappings`,
  );
}

// The last one alone would be applied, and with --prune what the others have would be deleted.
function readOnce(file: string, before: string | undefined): string {
  if (before !== undefined) throw new InvalidArgumentError("there can be one file.");
  return file;
}
