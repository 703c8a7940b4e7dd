// The flags of `arbor audit` over the API, and the command that exists over the API only. The others have the names of
// those on the host, and use the API with `--scope`.
import type { Command } from "commander";
import { invalidFlag } from "../../errors.js";
import { addApiFlag, addFilterFlag, createColumnsOption } from "../flags.js";
import type { AuditFlags } from "./run.js";

/**
 * Adds the flags that select events.
 *
 * @param filters whether the filters work on the host as well
 */
export function addEventFlags(command: Command, filters: "anywhere" | "over the API"): Command {
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
export function addEventListFlags(command: Command, filters: "anywhere" | "over the API"): Command {
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
export function addEventView(command: Command): Command {
  const names = command.options.map((option) => option.name());
  const filters = ["subject", "actor", "type", "request-id", "since", "until"].filter((name) => names.includes(name));
  return addFilterFlag(command, filters).addOption(createColumnsOption());
}

function formatPrefix(filters: "anywhere" | "over the API"): string {
  return filters === "anywhere" ? "" : "with --scope: ";
}

/** Adds the flags of verification over the API. */
export function addVerifyFlags(command: Command): Command {
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
export function addJwksCommand(audit: Command): void {
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
export const filterFlags = ["subject", "actor", "type", "requestId", "since", "until"] as const;
const remoteFlags = [...filterFlags, "api", "tokenFile", "jwks", "expectHead", "state"] as const;

/** The values of flags of the API. */
export type RemoteFlags = AuditFlags & { readonly [name in (typeof remoteFlags)[number]]?: string };

/**
 * Whether a command uses the API, which it does with `--scope`.
 *
 * @param hostFlags the values of the flags that only the command on the host has, by name
 * @param shared the flags of the API that the command on the host has as well
 * @throws CommandError INVALID_ARGUMENT for flags of both
 */
export function isOverApi(
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
