// `arbor iam identities conditions`, beside the verbs of identities, and `arbor iam guard`.
import type { Command } from "commander";
import { addCommonFlags, createRepeatableOption } from "../flags.js";
import { setMethods } from "../methods.js";

const SERVICE = "arbor.trust.v1.TrustService";

/** Adds `conditions` to the commands of identities. */
export function addConditions(identities: Command): void {
  const conditions = identities
    .command("conditions")
    .description("manage what tokens that assume an identity must satisfy, beside its claim match or its keys");
  const identity = "uid or name of the identity";
  addCommonFlags(
    setMethods(conditions.command("get"), `${SERVICE}/GetConditions`)
      .description("print the conditions of an identity")
      .argument("<identity>", identity),
  ).action(async (uid, flags) => (await import("./trust.js")).printConditions(uid, flags));
  addCommonFlags(
    setMethods(conditions.command("set"), `${SERVICE}/SetConditions`)
      .description("replace the conditions of an identity")
      .argument("<identity>", identity)
      .requiredOption("--file <file>", "file with the list of conditions in YAML or JSON, or - for standard input"),
  ).action(async (uid, flags) => (await import("./trust.js")).setConditions(uid, flags));
  addCommonFlags(
    setMethods(conditions.command("clear"), `${SERVICE}/SetConditions`)
      .description("remove all conditions of an identity")
      .argument("<identity>", identity)
      .option("--yes", "do not ask for confirmation"),
  ).action(async (uid, flags) => (await import("./trust.js")).clearConditions(uid, flags));
}

/** Fills `guard`. */
export function addGuard(guard: Command): void {
  const group = "uid or name of the root group";
  addCommonFlags(
    setMethods(guard.command("get"), `${SERVICE}/GetIssuerGuard`)
      .description("print the issuer guard of an organisation")
      .argument("<group>", group),
  ).action(async (uid, flags) => (await import("./trust.js")).printGuard(uid, flags));
  addCommonFlags(
    setMethods(guard.command("set"), `${SERVICE}/SetIssuerGuard`, `${SERVICE}/CheckIssuerGuard`)
      .description("set the issuer guard of an organisation; lists the identities that it would shut out first")
      .argument("<group>", group)
      .addOption(createRepeatableOption("--issuer <url>", "an issuer that is allowed; may be repeated"))
      .addOption(createRepeatableOption("--origin <url>", "an origin whose issuers are allowed; may be repeated"))
      .option("--file <file>", "file with the guard in YAML or JSON, or - for standard input")
      .option("--yes", "do not ask for confirmation"),
  ).action(async (uid, flags) => (await import("./trust.js")).setGuard(uid, flags));
  addCommonFlags(
    setMethods(guard.command("remove"), `${SERVICE}/RemoveIssuerGuard`)
      .description("remove the issuer guard of an organisation, so that its identities may trust any issuer")
      .argument("<group>", group)
      .option("--yes", "do not ask for confirmation"),
  ).action(async (uid, flags) => (await import("./trust.js")).removeGuard(uid, flags));
}
