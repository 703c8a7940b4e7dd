// The commands of `arbor audit`. All but `jwks` read the database of the host and, with `--scope`, the API.
import { type Command, Option, type OptionValues } from "commander";
import { Code, CommandError, invalidFlag } from "../../errors.js";
import { addApiFlag, addFilterFlag, addListOutput, createColumnsOption, FormerFlag } from "../flags.js";
import { setMethods } from "../methods.js";
import type { AuditFlags } from "./run.js";

/** What the commands do without `--scope`. */
export interface AuditOnHost {
  /** Adds the flags that a command has on the host only: those of settings, and `--org`. */
  readonly addFlags: (command: Command, orgHelp: string) => Command;
  readonly list: (flags: OptionValues) => Promise<void>;
  readonly tail: (flags: OptionValues) => Promise<void>;
  readonly verify: (flags: OptionValues) => Promise<void>;
  readonly export: (flags: OptionValues, command: Command) => Promise<void>;
}

const orgHelp = "the organisation; all unless set";

/** Adds the commands of `audit`. */
export function addAuditCommands(audit: Command, onHost: AuditOnHost): void {
  const list = audit.command("list").description("print the newest rows first");
  const pageSize = new Option("--page-size <rows>", "how many rows at most").default("50");
  addListOutput(list, "name").addOption(pageSize).addOption(new FormerFlag("--limit <rows>", pageSize));
  setMethods(list, "arbor.audit.v1.AuditService/ListEvents");
  addEventView(addEventListFlags(list, "anywhere"));
  onHost.addFlags(list, orgHelp).action(async (flags) => {
    const { org } = flags;
    if (isOverApi(flags, { org }, filterFlags)) return (await import("./run.js")).listEvents(flags);
    await runOnHost(() => onHost.list(flags));
  });
  const tail = audit.command("tail").description("print changes as they happen");
  setMethods(addListOutput(tail, "name"), "arbor.audit.v1.AuditService/TailEvents");
  addEventView(addEventFlags(tail, "anywhere"));
  onHost.addFlags(tail, orgHelp).action(async (flags) => {
    const { org } = flags;
    if (isOverApi(flags, { org }, filterFlags)) return (await import("./run.js")).tailEvents(flags);
    await runOnHost(() => onHost.tail(flags));
  });
  const verify = audit.command("verify").description("verify the hash chain and the signatures of the log");
  setMethods(verify, "arbor.audit.v1.AuditService/GetChain", "arbor.audit.v1.AuditService/ListChainEntries");
  onHost.addFlags(addVerifyFlags(verify), orgHelp).action(async (flags) => {
    const { org } = flags;
    if (isOverApi(flags, { org })) return (await import("./verify.js")).verifyLogOverApi(flags);
    await runOnHost(() => onHost.verify(flags));
  });
  addJwksCommand(audit);
  const exporting = audit
    .command("export")
    .description("print the sealed rows of a log, for others to verify; with --scope its events");
  onHost.addFlags(addEventListFlags(exporting, "over the API"), "the organisation").action(async (flags) => {
    const { org } = flags;
    if (isOverApi(flags, { org })) return (await import("./run.js")).exportEvents(flags);
    await runOnHost(() => onHost.export(flags, exporting));
  });
}

/** Runs a command on the host. Who has a service elsewhere is told how to read its log. */
async function runOnHost(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes("there is no installation")) throw error;
    const { code = Code.FailedPrecondition } = error as { readonly code?: CommandError["code"] };
    throw new CommandError(
      code,
      `${error.message}\n  to read the log of a service over its API: --scope ORGANISATION`,
      error,
    );
  }
}

/**
 * Adds the flags that select events.
 *
 * @param filters whether the filters work on the host as well
 */
function addEventFlags(command: Command, filters: "anywhere" | "over the API"): Command {
  const prefix = formatPrefix(filters);
  command
    .option(
      "--scope <uid-or-name>",
      "read over the API: the events of this organisation, group or resource, and of its descendants",
    )
    .option("--subject <uid-or-name>", `${prefix}only changes of this resource`)
    .option("--actor <uid-or-name>", `${prefix}only changes by this identity`)
    .option("--type <type>", `${prefix}only events of this type`)
    .option(
      "--token-file <file>",
      "with --scope: file with an API token, in place of `arbor auth login`; ARBOR_TOKEN takes precedence",
    );
  return addApiFlag(command);
}

/** Adds the flags of lists. */
function addEventListFlags(command: Command, filters: "anywhere" | "over the API"): Command {
  const prefix = formatPrefix(filters);
  return addEventFlags(command, filters)
    .option("--request-id <id>", `${prefix}only changes of this request`)
    .option(
      "--since <time>",
      `${prefix}only events since this time, such as 2026-01-31T12:00:00Z, or in the last 15m, 24h or 7d`,
    )
    .option("--until <time>", `${prefix}only events before this time`);
}

/** Adds the columns of the table of events, and `--filter`. */
function addEventView(command: Command): Command {
  const names = command.options.map((option) => option.name());
  const filters = ["subject", "actor", "type", "request-id", "since", "until"].filter((name) => names.includes(name));
  return addFilterFlag(command, filters).addOption(createColumnsOption());
}

function formatPrefix(filters: "anywhere" | "over the API"): string {
  return filters === "anywhere" ? "" : "with --scope: ";
}

/** Adds the flags of verification over the API. */
function addVerifyFlags(command: Command): Command {
  command
    .option("--scope <uid-or-name>", "verify over the API: the log of this organisation")
    .option("--jwks <file>", "with --scope: the only keys that may sign the log, as `arbor audit jwks` prints them")
    .option("--expect-head <head>", "with --scope: an entry that the log must still have, as an earlier run printed it")
    .option("--state <file>", "with --scope: store the end of the log in this file, and compare it with the next run")
    .option(
      "--token-file <file>",
      "with --scope: file with an API token, in place of `arbor auth login`; ARBOR_TOKEN takes precedence",
    );
  return addApiFlag(command);
}

/** Adds `jwks` to `audit`. */
function addJwksCommand(audit: Command): void {
  const jwks = audit.command("jwks").description("print the public keys of the audit log, over the API");
  jwks
    .requiredOption("--scope <uid-or-name>", "an organisation whose log the caller may verify")
    .option(
      "--token-file <file>",
      "file with an API token, in place of `arbor auth login`; ARBOR_TOKEN takes precedence",
    );
  addApiFlag(jwks).action(async (flags) => (await import("./verify.js")).printJwks(flags));
}

/** The flags that select events. */
const filterFlags = ["subject", "actor", "type", "requestId", "since", "until"] as const;
const remoteFlags = [...filterFlags, "api", "tokenFile", "jwks", "expectHead", "state"] as const;

/** The values of flags of the API. */
type RemoteFlags = AuditFlags & { readonly [name in (typeof remoteFlags)[number]]?: string };

/**
 * Whether a command uses the API, which it does with `--scope`.
 *
 * @param hostFlags the values of the flags that only the command on the host has, by name
 * @param shared the flags of the API that the command on the host has as well
 * @throws CommandError INVALID_ARGUMENT for flags of both
 */
function isOverApi(
  flags: RemoteFlags,
  hostFlags: Readonly<Record<string, unknown>>,
  shared: readonly (typeof remoteFlags)[number][] = [],
): flags is RemoteFlags & { readonly scope: string } {
  if (flags.scope !== undefined) {
    for (const [name, value] of Object.entries(hostFlags)) {
      if (value !== undefined) throw invalidFlag(`--${name}`, "is for the command on the host, without --scope");
    }
    return true;
  }
  for (const name of remoteFlags) {
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (flags[name] !== undefined && !shared.includes(name)) throw invalidFlag(flag, "needs --scope");
  }
  return false;
}
