// What stands for the commands on the host in the package of commands over the network: they say where they are.
import type { Command } from "commander";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { type AuditOnHost, addAuditCommands } from "../remote/audit/commands.js";
import { type HostCommands, hostCommands as hostPaths } from "../top-commands.js";

const WHERE = "in the package of the service, arbor-platform; this one has the commands over the network";

const needScope = async (): Promise<never> => {
  throw invalidFlag("--scope", `is required; without it this is a command on the host, ${WHERE}`);
};

const auditOnHost: AuditOnHost = {
  addFlags: (command) => command,
  ...{ list: needScope, tail: needScope, verify: needScope, export: needScope },
};

/** Each answers the same, whatever its flags are. */
export const hostCommands = {
  ...Object.fromEntries(hostPaths.map((path) => [path, (command: Command) => answer(command, path)])),
  audit: (audit: Command) => addAuditCommands(audit, auditOnHost),
} as HostCommands;

function answer(command: Command, path: string): void {
  command
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => {
      throw new CommandError(Code.InvalidArgument, `\`arbor ${path}\` is a command on the host, ${WHERE}`);
    });
}
