// `arbor iam identities revoke-tokens`, beside the verbs of identities.
import type { Command } from "commander";
import { addCommonFlags, addConfirmation } from "../flags.js";
import { setMethods } from "../methods.js";

const SERVICE = "arbor.tokens.v1.TokensService";

/** Adds `revoke-tokens` to the commands of identities. */
export function addRevokeTokens(identities: Command): void {
  const command = setMethods(
    identities.command("revoke-tokens"),
    `${SERVICE}/RevokeTokens`,
    `${SERVICE}/RevokePersonTokens`,
  )
    .description("revoke all tokens and sessions of an identity, or one token")
    .argument("[identity]", "uid or name of the identity; that in the leaked token unless given")
    .option("--token-id <id>", "revoke the API token with this id alone: the audit log has the id of each call's token")
    .option(
      "--leaked-token <file>",
      "revoke the API token in this file alone, or - for standard input; its id is read here, and it is not sent",
    )
    .option(
      "--identity-provider <uid>",
      "uid or name of the organisation's identity provider, for a person who signs in through it",
    );
  addCommonFlags(addConfirmation(command)).action(async (identity, flags) =>
    (await import("./revoke-tokens.js")).revokeIdentityTokens(identity, flags),
  );
}
