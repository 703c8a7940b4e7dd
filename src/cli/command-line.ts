// The command line of both packages that have one: that of the service, and that of commands over the network alone. A
// command is filled when the command line names it, and the modules of its work are loaded when it is called, so commands
// over the network load no server and no native module.
import { Command, CommanderError, type ErrorOptions, type Help } from "commander";
import { commandVariables } from "../config/command-variables.js";
import { VERSION } from "../kernel/version.js";
import { Code, CommandError, invalidFlag, NegativeAnswer, reportError, UsageError } from "./errors.js";
import { addLazyCommand, fillAll, fillNamed, pathOf } from "./lazy-command.js";
import { assertWritten, escapeControls, watchStdout } from "./output/terminal.js";
import { type LoadHost, listTopCommands } from "./top-commands.js";

/** A command line: the commands on the host, or what stands for them. */
export interface CommandLine {
  readonly loadHost: LoadHost;
  /** Where the commands on the host are, for a command line that has only words about them. */
  readonly hostNote?: string;
}

/**
 * Runs one command.
 *
 * @param args the arguments after `arbor`
 * @returns the exit code: 0 for success, 2 for wrong usage, 3 and up by the class of the error
 */
export async function runCommandLine(args: readonly string[], commandLine: CommandLine): Promise<number> {
  watchStdout();
  let called: Command | undefined;
  try {
    const arbor = createCommandLine(commandLine);
    const { command } = await fillNamed(arbor, args);
    // Commander prints the help without waiting for anything.
    if (args.some((arg) => arg === "--help" || arg === "-h")) (await import("./examples.js")).addExamples(command);
    arbor.hook("preAction", (_, one) => {
      called = one;
      rejectEmptyUids(one);
    });
    await arbor.parseAsync([...args], { from: "user" });
    await assertWritten();
    return 0;
  } catch (error) {
    if (error instanceof NegativeAnswer) return error.exitCode;
    const code = await reportFailure(error, called);
    // There 2 says that there are differences, so that an error is 1, also that of a flag which is misspelt.
    const mayMeanDifferences = args[0] === "apply" && (error instanceof CommanderError || args.includes("--dry-run"));
    return mayMeanDifferences && code !== 0 ? 1 : code;
  }
}

/** Prints why a command failed, and returns its exit code. */
async function reportFailure(error: unknown, called: Command | undefined): Promise<number> {
  if (error instanceof UsageError && called !== undefined) {
    return reportError(new CommandError(error.code, `${error.message}; ${pointToHelp(called)}`, error));
  }
  if (!(error instanceof CommanderError)) return reportError(error);
  if (error.exitCode === 0) return assertWritten().then(() => 0, reportError);
  // The parser has printed the help of a group of commands.
  if (error.code === "commander.help") process.stderr.write("\narbor: a command is missing\n");
  return 2;
}

/** Creates the parser of the command line, whose commands are filled when they are named. */
export function createCommandLine({ loadHost, hostNote }: CommandLine): Command {
  const arbor = new ArborCommand("arbor")
    .description("Self-hostable platform API")
    .version(VERSION, "-V, --version", "print the version")
    .exitOverride()
    .hook("preAction", (_, command) => rejectUnknownVariables(command));
  for (const row of listTopCommands(loadHost, hostNote !== undefined)) addLazyCommand(arbor, row);
  if (hostNote !== undefined) arbor.addHelpText("after", `\n${hostNote}`);
  arbor.addHelpText("after", "\n`arbor help COMMAND` has the flags and examples of a command, `arbor docs` the pages.");
  return arbor;
}

/** Creates the parser with all commands filled, for what lists them. */
export async function createWholeCommandLine(commandLine: CommandLine): Promise<Command> {
  const arbor = createCommandLine(commandLine);
  await fillAll(arbor);
  return arbor;
}

/** The widest column of flags in the help. */
const MAX_TERM = 32;

/** A command whose usage errors are one line at the end of the output, which a help after it would hide. */
class ArborCommand extends Command {
  constructor(name?: string) {
    super(name);
    // There is one command for the help, which takes the whole name of another.
    this.helpCommand(false);
  }

  override createCommand(name?: string): Command {
    return new ArborCommand(name);
  }

  // A list of commands has their names alone: flags and arguments are in the help of each. What is said of a long flag begins
  // below it, because the parser breaks no lines beside one.
  override createHelp(): Help {
    const help = super.createHelp();
    const { formatItem, padWidth } = help;
    return Object.assign(help, {
      subcommandTerm: (command: Command) => command.name(),
      padWidth: (...given: Parameters<Help["padWidth"]>) => Math.min(padWidth.apply(help, given), MAX_TERM),
      formatItem(term: string, width: number, text: string, helper: Help): string {
        if (helper.displayWidth(term) <= width) return formatItem.call(help, term, width, text, helper);
        return `  ${helper.styleOptionTerm(term)}\n${formatItem.call(help, "", width, text, helper)}`;
      },
    });
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
const withoutVariables = ["help", "completion", "complete-names", "config schema", "auth docker-credential"];

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
