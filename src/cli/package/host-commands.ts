// What stands for the commands on the host in the package of commands over the network: they say where they are.
import type { Command } from "commander";
import { Code, CommandError, invalidFlag } from "../errors.js";
import type { FillCommand } from "../lazy-command.js";
import { type AuditOnHost, addAuditCommands } from "../remote/audit/commands.js";
import { type HostCommands, type HostName, hostCommands as hostPaths } from "../top-commands.js";

const WHERE = "in the package of the service, arbor-platform; this one has the commands over the network";

const needScope = async (): Promise<never> => {
  throw invalidFlag("--scope", `is required; without it this is a command on the host, ${WHERE}`);
};

const auditOnHost: AuditOnHost = {
  addFlags: (command) => command,
  ...{ list: needScope, tail: needScope, verify: needScope, export: needScope },
};

/** The commands by the first words of their names. Those below another command are in no list. */
export const hostCommands = {
  ...Object.fromEntries(hostPaths.map((path) => path.split(" ")[0] ?? "").map((name) => [name, fillFor(name)])),
  audit: (audit: Command) => addAuditCommands(audit, auditOnHost),
} as Readonly<Record<HostName, FillCommand>> satisfies HostCommands;

function fillFor(name: string): FillCommand {
  return (command) => {
    for (const path of hostPaths) {
      const [first, below] = path.split(" ");
      if (first !== name) continue;
      const one = below === undefined ? command : command.command(below, { hidden: true });
      answer(one.description("on the host: in the package of the service"), path);
    }
  };
}

// Whatever its flags are, it has one answer.
function answer(command: Command, path: string): void {
  command
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => {
      throw new CommandError(Code.InvalidArgument, `\`arbor ${path}\` is a command on the host, ${WHERE}`);
    });
}
