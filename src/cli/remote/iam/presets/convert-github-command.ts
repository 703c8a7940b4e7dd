// `arbor iam identities convert-github`, beside the verbs of identities.
import type { Command } from "commander";
import { addCommonFlags, addConfirmation } from "../../flags.js";
import { setMethods } from "../../methods.js";

const SERVICE = "arbor.trust.v1.TrustService";

/** Adds `convert-github` to the commands of identities. */
export function addConvertGithub(identities: Command): void {
  const command = setMethods(
    identities.command("convert-github"),
    ...["chainguard.platform.iam.v2beta1.IdentitiesService/ListIdentities"],
    ...[`${SERVICE}/GetConditions`, `${SERVICE}/SetConditions`],
  )
    .description(
      "list identities that trust GitHub repositories only by name, and bind them to the ids of the repositories",
    )
    .option("--group <uid-or-name>", "only identities in this group and its descendants")
    .option("--github-url <url>", "address of a GitHub Enterprise; https://github.com unless given")
    .option(
      "--repositories-file <file>",
      "repositories as the API of GitHub describes them, a JSON array or an object a line; for private ones",
    )
    .option("--dry-run", "list the identities and the ids, and change nothing");
  addCommonFlags(addConfirmation(command, ({ dryRun }) => dryRun !== true)).action(async (flags) =>
    (await import("./convert-github.js")).convertIdentities(flags),
  );
}
