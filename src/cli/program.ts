// The command line. A group of commands is loaded when the command line names it, and a command loads its own modules when
// it is called. So commands over the network load no server and no native module.
import { Command, CommanderError } from "commander";
import { VERSION } from "../kernel/version.js";
import { reportError } from "./errors.js";

type AddCommands = (arbor: Command) => void;

/** The groups of commands, in the order of the help. */
const groups: readonly { readonly names: readonly string[]; readonly load: () => Promise<AddCommands> }[] = [
  {
    names: [
      "serve",
      "config",
      "bootstrap",
      "migrate",
      "check",
      "copy",
      "backup",
      "restore",
      "admin",
      "audit",
      "advisories",
      "registry",
      "demo",
    ],
    load: async () => (await import("./host/commands.js")).addHostCommands,
  },
  { names: ["registry"], load: async () => (await import("./remote/registry/commands.js")).addRegistryCommands },
  { names: ["auth"], load: async () => (await import("./remote/auth/commands.js")).addAuthCommands },
  { names: ["iam"], load: async () => (await import("./remote/iam/commands.js")).addIamCommands },
  { names: ["completion"], load: async () => (await import("./completion.js")).addCompletion },
];

/**
 * Runs one command.
 *
 * @param args the arguments after `arbor`
 * @returns the exit code: 0 for success, 2 for wrong usage, 3 and up by the class of the error
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    const arbor = await createProgram(args[0]);
    await arbor.parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return reportError(error);
  }
}

/**
 * Creates the parser of the command line.
 *
 * @param name the first argument: only the groups of this command are loaded. All are loaded for the help and for
 * completion, which list them, and for an unknown command, whose error suggests one.
 */
export async function createProgram(name?: string): Promise<Command> {
  const arbor = new Command("arbor")
    .description("Self-hostable platform API")
    .version(VERSION, "-V, --version", "print the version")
    .exitOverride()
    .showHelpAfterError();
  const named = groups.filter(({ names }) => name !== undefined && name !== "completion" && names.includes(name));
  for (const { load } of named.length > 0 ? named : groups) (await load())(arbor);
  return arbor;
}
