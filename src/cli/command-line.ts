// The command line of both packages that have one: that of the service, and that of commands over the network alone. A
// group of commands is loaded when the command line names it, and the modules of a command when it is called, so commands
// over the network load no server and no native module.
import { Command, CommanderError, type ErrorOptions } from "commander";
import { commandVariables } from "../config/command-variables.js";
import { VERSION } from "../kernel/version.js";
import { Code, CommandError, invalidFlag, NegativeAnswer, reportError, UsageError } from "./errors.js";
import { formatExamples } from "./examples.js";
import { assertWritten, escapeControls, watchStdout } from "./output/terminal.js";

/** The commands that list all commands, which are loaded for them. */
const whole = ["completion", "api"];

/** Loads the function that adds a group of commands. */
export type LoadCommands = () => Promise<(arbor: Command) => void>;

/**
 * The commands on the host. Those of two words are in a group that has commands over the network as well, and so are those of
 * `audit`.
 */
export const hostCommands = [
  ...["serve", "config", "bootstrap", "migrate", "check", "copy", "backup", "restore", "admin", "demo"],
  ...["advisories import", "registry configure", "registry sync", "registry move"],
] as const;

const hostNames = ["audit", ...hostCommands.map((path) => path.split(" ")[0] ?? "")];

/** The groups of commands over the network, in the order of the help. */
const remoteGroups: readonly { readonly names: readonly string[]; readonly load: LoadCommands }[] = [
  { names: ["registry"], load: async () => (await import("./remote/registry/commands.js")).addRegistryCommands },
  {
    names: ["advisories"],
    load: async () => (await import("./remote/advisories/commands.js")).addAdvisoriesCommands,
  },
  { names: ["audit"], load: async () => (await import("./remote/audit/api-commands.js")).addAuditApiCommands },
  { names: ["auth"], load: async () => (await import("./remote/auth/commands.js")).addAuthCommands },
  { names: ["iam"], load: async () => (await import("./remote/iam/commands.js")).addIamCommands },
  { names: ["whoami", "members"], load: async () => (await import("./remote/people/commands.js")).addPeopleCommands },
  {
    names: ["can", "find", "access"],
    load: async () => (await import("./remote/access/commands.js")).addAccessCommands,
  },
  { names: ["scim"], load: async () => (await import("./remote/scim/commands.js")).addScimCommands },
  { names: ["events"], load: async () => (await import("./remote/events/commands.js")).addEventsCommands },
  {
    names: ["apply", "export"],
    load: async () => (await import("./remote/apply/commands.js")).addApplyCommands,
  },
  { names: ["api"], load: async () => (await import("./remote/api/commands.js")).addApiCommands },
  { names: ["completion"], load: async () => (await import("./completion.js")).addCompletion },
];

/**
 * Runs one command.
 *
 * @param args the arguments after `arbor`
 * @param loadHost loads the commands on the host, or what stands for them
 * @returns the exit code: 0 for success, 2 for wrong usage, 3 and up by the class of the error
 */
export async function runCommandLine(args: readonly string[], loadHost: LoadCommands): Promise<number> {
  watchStdout();
  let called: Command | undefined;
  try {
    const arbor = await createCommandLine(loadHost, args[0]);
    arbor.hook("preAction", (_, command) => {
      called = command;
      rejectEmptyUids(command);
    });
    await arbor.parseAsync([...args], { from: "user" });
    await assertWritten();
    return 0;
  } catch (error) {
    if (error instanceof NegativeAnswer) return error.exitCode;
    const code = reportFailure(error, called);
    // There 2 says that there are differences, so that an error is 1 whatever it is about.
    return code !== 0 && args[0] === "apply" && args.includes("--dry-run") ? 1 : code;
  }
}

/** Prints why a command failed, and returns its exit code. */
function reportFailure(error: unknown, called: Command | undefined): number {
  if (error instanceof UsageError && called !== undefined) {
    return reportError(new CommandError(error.code, `${error.message}; ${pointToHelp(called)}`, error));
  }
  if (!(error instanceof CommanderError)) return reportError(error);
  if (error.exitCode === 0) return 0;
  // The parser has printed the help of a group of commands.
  if (error.code === "commander.help") process.stderr.write("\narbor: a command is missing\n");
  return 2;
}

/**
 * Creates the parser of the command line.
 *
 * @param loadHost loads the commands on the host, or what stands for them
 * @param name the first argument: only the group of this command is loaded. All are loaded for the help and
 * others that list them, and for an unknown command, whose error suggests one.
 */
export async function createCommandLine(loadHost: LoadCommands, name?: string): Promise<Command> {
  const groups = [{ names: hostNames, load: loadHost }, ...remoteGroups];
  const arbor = new ArborCommand("arbor")
    .description("Self-hostable platform API")
    .version(VERSION, "-V, --version", "print the version")
    .exitOverride()
    .hook("preAction", (_, command) => rejectUnknownVariables(command));
  const named = groups.filter(({ names }) => name !== undefined && !whole.includes(name) && names.includes(name));
  for (const { load } of named.length > 0 ? named : groups) (await load())(arbor);
  return arbor;
}

/** A command whose usage errors are one line at the end of the output, which a help after it would hide. */
class ArborCommand extends Command {
  override createCommand(name?: string): Command {
    return new ArborCommand(name).addHelpText("after", ({ command }) => formatExamples(command));
  }

  override error(message: string, options?: ErrorOptions): never {
    const text = message
      .replace(/^error: /, "")
      .replaceAll("\n", " ")
      .replace(/\.$/, "");
    return super.error(`arbor: ${escapeControls(text)}; ${pointToHelp(this)}`, options);
  }
}

/** The commands that read no variable. docker runs its helper in whatever environment it has. */
const withoutVariables = ["completion", "config schema", "auth docker-credential"];

/**
 * Rejects variables that begin with `ARBOR_` and set nothing. Commands that resolve the settings report them with all else
 * that is wrong; those that read a few variables for themselves would use the default in place of one that is misspelt.
 */
async function rejectUnknownVariables(command: Command): Promise<void> {
  const resolvesSettings =
    command.options.some(({ long }) => long === "--config") && command.opts().scope === undefined;
  if (resolvesSettings || withoutVariables.includes(pathOf(command))) return;
  // Loaded only where there is something to look up.
  if (!Object.keys(process.env).some((name) => name.startsWith("ARBOR_") && !commandVariables.includes(name))) return;
  const { describeUnknownVariable, findOtherVariables } = await import("../config/names.js");
  const { unknown } = findOtherVariables(process.env);
  if (unknown.length === 0) return;
  throw new CommandError(Code.InvalidArgument, unknown.map((name) => describeUnknownVariable(name)).join("\n"));
}

/**
 * Rejects empty texts in place of uids, which scripts make of variables that are not set: a list would filter nothing, and a
 * group would become an organisation. Only `update` clears a field with one, and rows of the audit log that belong to no
 * organisation are those of an empty one. A question without an identity is about the caller, so it would get a wrong answer.
 */
function rejectEmptyUids(command: Command): void {
  const rule = "is empty, as a variable that is not set; it must be a uid or a name";
  for (const [i, argument] of command.registeredArguments.entries()) {
    if (/^(uid|identity)/.test(argument.name()) && command.args[i] === "") throw invalidFlag(argument.name(), rule);
  }
  if (command.name() === "update" || command.parent?.name() === "audit") return;
  for (const option of command.options) {
    if (!/<(uid|group)/.test(option.flags) || option.defaultValue === "") continue;
    const values = [command.getOptionValue(option.attributeName())].flat();
    if (values.includes("")) throw invalidFlag(option.long ?? option.flags, rule);
  }
}

function pointToHelp(command: Command): string {
  return `see ${["arbor", pathOf(command), "--help"].filter(Boolean).join(" ")}`;
}

/** The names of a command and of the groups it is in, such as `auth login`. */
function pathOf(command: Command): string {
  return command.parent === null ? "" : `${pathOf(command.parent)} ${command.name()}`.trim();
}
