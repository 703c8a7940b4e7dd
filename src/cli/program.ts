// The command line of the service: all commands.
import type { Command } from "commander";
import { createCommandLine, type LoadCommands, runCommandLine } from "./command-line.js";

const loadHost: LoadCommands = async () => (await import("./host/commands.js")).addHostCommands;

/** Runs one command, and returns its exit code. */
export function run(args: readonly string[]): Promise<number> {
  return runCommandLine(args, loadHost);
}

/** Creates the parser of the command line; with `name`, the first argument, only the group of this command is loaded. */
export function createProgram(name?: string): Promise<Command> {
  return createCommandLine(loadHost, name);
}
