// `arbor iam identities test-claims`, beside the verbs of identities.
import type { Command } from "commander";
import { addCommonFlags } from "../flags.js";
import { setMethods } from "../methods.js";

/** Adds `test-claims` to the commands of identities. */
export function addTestClaims(identities: Command): void {
  const command = setMethods(identities.command("test-claims"), "arbor.access.v1.AccessService/TestClaims")
    .description("print whether a token may assume an identity, and why not; the exit code is 1 if not")
    .argument("<identity>", "uid or name of the identity")
    .option(
      "--identity-token <file>",
      "file with the token, as the workload would exchange it, or - for standard input",
    )
    .option("--claims-file <file>", "file with the claims of a token as a JSON object, or - for standard input");
  addCommonFlags(command).action(async (identity, flags) =>
    (await import("./test-claims.js")).testTokenClaims(identity, flags),
  );
}
