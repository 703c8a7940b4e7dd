// The commands of the program that have data to work on, found in its own command tree: a new command is tested without
// being listed.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.js";
import { tempDir } from "./temp-dir.js";

/** A command on the host, with values for all that it requires. */
export interface HostCommand {
  /** Such as `admin keys rotate`. */
  readonly name: string;
  readonly args: readonly string[];
}

/** The commands that begin an installation. All others must find one, and so must `migrate` without its first phase. */
const CREATING: readonly string[] = ["serve", "bootstrap", "restore"];

/** Commands that read settings and no installation. */
const SETTINGS: readonly string[] = ["config print", "config check"];

/** Flags with which a command does more than without them. */
const VARIANTS: readonly (readonly string[])[] = [
  ["migrate", "--dry-run"],
  ["migrate", "--contract"],
  ["migrate", "--contract", "--dry-run"],
  ["migrate", "--vacuum"],
  ["check", "--repair"],
  ["check", "-o", "jsonl"],
];

const file = join(tempDir(), "record.json");
writeFileSync(file, "{}\n");

/** Examples by the placeholder of an argument or the value of a flag. */
const examples: Readonly<Record<string, string>> = {
  uid: "0123456789abcdef0123456789abcdef01234567",
  "uid-or-name": "0123456789abcdef0123456789abcdef01234567",
  kid: "kid",
  names: "groups.list",
  "quota=limit": "repos=5",
  paths: file,
  file,
};

/** Flags that are not required by the parser, and without which the command ends before it looks for an installation. */
const needed: Readonly<Record<string, (location: DataFlag, outputs: string) => string>> = {
  "--org": () => examples.uid ?? "",
  "--registry-url": () => "http://127.0.0.1:9",
  // A copy is one to the other kind of database.
  "--to": (location, outputs) => (location === "--data" ? "postgres://127.0.0.1:9/none" : join(outputs, "copy")),
};

/** The flag that says where the data is. */
type DataFlag = "--data" | "--database-url";

/**
 * Lists the commands that must find an installation, or those that need none.
 *
 * @param outputs a directory that does not exist, for commands that write files
 */
export async function listHostCommands(
  location: DataFlag,
  outputs: string,
): Promise<{ onInstallation: HostCommand[]; onSettings: HostCommand[] }> {
  const leaves = findLeaves(await createProgram(), []).filter(({ command }) => hasOption(command, location));
  const commands = leaves
    .map(({ command, path }) => ({
      name: path.join(" "),
      args: [...path, ...listRequiredValues(command, location, outputs)],
    }))
    .filter(({ name }) => !CREATING.includes(name) && name !== "demo");
  const variants = VARIANTS.map((args) => ({ name: args.join(" "), args }));
  const isOnSettings = ({ name }: HostCommand) => SETTINGS.includes(name);
  return {
    onInstallation: [...commands.filter((one) => !isOnSettings(one)), ...variants],
    onSettings: commands.filter(isOnSettings),
  };
}

interface Leaf {
  readonly command: Command;
  readonly path: readonly string[];
}

function findLeaves(command: Command, path: readonly string[]): Leaf[] {
  if (command.commands.length === 0) return [{ command, path }];
  return command.commands.flatMap((child) => findLeaves(child, [...path, child.name()]));
}

function hasOption({ options }: Command, flag: string): boolean {
  return options.some(({ long }) => long === flag);
}

function listRequiredValues(command: Command, location: DataFlag, outputs: string): string[] {
  const example = (placeholder: string, choices?: readonly string[]) =>
    placeholder === "directory" ? join(outputs, "out") : (choices?.[0] ?? examples[placeholder] ?? "example");
  const flags = command.options.flatMap(({ long, mandatory, flags: text, argChoices }) => {
    if (long === undefined || long === null) return [];
    if (long === "--yes") return [long];
    const value = needed[long]?.(location, outputs);
    if (value !== undefined) return [long, value];
    return mandatory ? [long, example(/<(.+)>/.exec(text)?.[1] ?? "", argChoices)] : [];
  });
  return [...command.registeredArguments.map((one) => example(one.name(), one.argChoices)), ...flags];
}

/** Lists a directory and everything in it, with permissions, sizes and digests; empty where there is none. */
export function listTree(directory: string): string[] {
  const found = statSync(directory, { throwIfNoEntry: false });
  if (found === undefined) return [];
  const line = (path: string) => {
    const { mode, size } = statSync(path);
    const isFile = statSync(path).isFile();
    const digest = isFile ? createHash("sha256").update(readFileSync(path)).digest("hex") : "";
    return `${path} ${mode.toString(8)} ${isFile ? size : ""} ${digest}`;
  };
  const names = readdirSync(directory, { recursive: true }) as string[];
  return [directory, ...names.map((name) => join(directory, name))].sort().map(line);
}
