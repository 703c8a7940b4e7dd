// The command line of the service: all commands.
import type { Command } from "commander";
import { type CommandLine, createWholeCommandLine, runCommandLine } from "./command-line.js";

const commandLine: CommandLine = { loadHost: async () => (await import("./host/commands.js")).hostCommands };

/** Runs one command, and returns its exit code. */
export function run(args: readonly string[]): Promise<number> {
  return runCommandLine(args, commandLine);
}

/** Creates the parser of the command line with all commands. */
export function createProgram(): Promise<Command> {
  return createWholeCommandLine(commandLine);
}
