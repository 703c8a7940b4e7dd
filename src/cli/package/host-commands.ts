// What stands for the commands on the host in the package of commands over the network: they say where they are.
import type { Command } from "commander";
import { hostCommands } from "../command-line.js";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { type AuditOnHost, addAuditCommands } from "../remote/audit/commands.js";

const WHERE = "in the package of the service, arbor-platform; this one has the commands over the network";

/** Adds them. They are not in the lists of commands, but below that of `arbor`. */
export function addHostCommands(arbor: Command): void {
  addAuditCommands(arbor, "read the audit log over the API", auditOnHost);
  arbor.command("advisories").description("advisories about vulnerabilities");
  arbor.command("registry").description("repos and tags of a container registry");
  for (const path of hostCommands) {
    const [name = "", below] = path.split(" ");
    addHostCommand(arbor, name, below);
  }
  const names = hostCommands.filter((path) => !path.includes(" ")).join(", ");
  arbor.addHelpText("after", `\nThe commands on the host (${names}) are in the package of the service.`);
}

// Whatever its flags are, it has one answer.
function addHostCommand(arbor: Command, name: string, below: string | undefined): void {
  const parent = below === undefined ? arbor : arbor.commands.find((command) => command.name() === name);
  parent
    ?.command(below ?? name, { hidden: true })
    .description("on the host: in the package of the service")
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => {
      const path = [name, below].filter((word) => word !== undefined).join(" ");
      throw new CommandError(Code.InvalidArgument, `\`arbor ${path}\` is a command on the host, ${WHERE}`);
    });
}

const needScope = async (): Promise<never> => {
  throw invalidFlag("--scope", `is required; without it this is a command on the host, ${WHERE}`);
};

const auditOnHost: AuditOnHost = {
  addFlags: (command) => command,
  ...{ list: needScope, tail: needScope, verify: needScope, export: needScope },
};
