// `arbor iam`: a command for each verb of each resource, with flags for the fields of its request. The help of these
// flags comes from the comments of the protos, which are read when it is printed.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { type Command, Help, type Option } from "commander";
import { type Comments, parseComments } from "../../../codec/proto-comments.js";
import { addCommonFlags } from "../flags.js";
import { createFieldFlags, FieldFlag, type FlagScope, isRepeated } from "./field-flags.js";
import { findResourceField, type ResourceCommand, resourceCommands, type Verb } from "./resource-commands.js";

// The same path from `src` and from `dist`.
const IMAGE = fileURLToPath(new URL("../../../../gen/api.binpb", import.meta.url));
/** The largest number of choices in the help. */
const MAX_CHOICES = 20;

let comments: Comments | undefined;

/** Adds `iam` and its commands. */
export function addIamCommands(arbor: Command): void {
  const iam = arbor.command("iam").description("manage groups, identities, roles and related resources");
  addResourceCommands(iam, resourceCommands);
}

/** Adds a command for each resource, with a subcommand for each of its methods. */
export function addResourceCommands(parent: Command, resources: readonly ResourceCommand[]): void {
  for (const resource of resources) {
    const command = parent.command(resource.name).description(`manage ${formatPlural(resource)}`);
    command.configureHelp({ optionDescription: describeOption });
    addList(command, resource);
    for (const verb of ["get", "create", "update", "delete"] as const) {
      const method = resource.methods[verb];
      if (method !== undefined) add[verb](command, resource, method);
    }
  }
}

function addList(parent: Command, resource: ResourceCommand): void {
  const method = resource.methods.list;
  const command = addFieldFlags(parent.command("list"), method, {})
    .description(`list ${formatPlural(resource)}`)
    .option("--page-all", "print all pages from here on as they arrive")
    .option("--progress", "show progress on standard error, even if that is not a terminal");
  addCommonFlags(command).action(async (given) =>
    (await import("./run.js")).runList(resource, fieldFlagsOf(command), given),
  );
}

const add: Readonly<
  Record<Exclude<Verb, "list">, (parent: Command, resource: ResourceCommand, method: DescMethodUnary) => void>
> = {
  get(parent, resource, method) {
    addCommonFlags(parent.command("get <uid>").description(`print one ${resource.singular}`)).action(
      async (uid, given) => (await import("./run.js")).runGet(resource, method, uid, given),
    );
  },
  create(parent, resource, method) {
    const command = parent.command(resource.createAlias ?? "create").description(`create one ${resource.singular}`);
    if (resource.createAlias !== undefined) command.alias("create");
    const field = findResourceField(resource, method);
    addFieldFlags(command, method, { resource: field, writing: true });
    if (field !== undefined) addFileFlag(command);
    addCommonFlags(command).action(async (given) =>
      (await import("./run.js")).runCreate(resource, method, fieldFlagsOf(command), given),
    );
  },
  update(parent, resource, method) {
    const command = parent
      .command("update <uid>")
      .description(`change one ${resource.singular}: only the fields of the given flags`);
    addFieldFlags(command, method, { resource: findResourceField(resource, method), writing: true, updating: true });
    addCommonFlags(addFileFlag(command)).action(async (uid, given) =>
      (await import("./run.js")).runUpdate(resource, method, uid, fieldFlagsOf(command), given),
    );
  },
  delete(parent, resource, method) {
    const { singular, deletionNote = "" } = resource;
    const command = parent
      .command("delete <uid>")
      .description(`delete one ${singular}${deletionNote && `. ${deletionNote}`}`);
    command.option("--yes", "do not ask for confirmation");
    addCommonFlags(command).action(async (uid, given) =>
      (await import("./run.js")).runDelete(resource, method, uid, given),
    );
  },
};

function addFieldFlags(command: Command, { input }: DescMethodUnary, scope: FlagScope): Command {
  for (const flag of createFieldFlags(input, scope)) command.addOption(flag);
  return command;
}

function addFileFlag(command: Command): Command {
  return command.option(
    "--file <file>",
    "JSON or YAML of the resource, or - for standard input; flags take precedence",
  );
}

function fieldFlagsOf(command: Command): FieldFlag[] {
  return command.options.filter((option) => option instanceof FieldFlag);
}

function formatPlural({ singular }: ResourceCommand): string {
  const [head = "", ...rest] = singular.split(" of ");
  return [head.endsWith("y") ? `${head.slice(0, -1)}ies` : `${head}s`, ...rest].join(" of ");
}

/** Describes an option. The description of a field is the comment of the proto, with the possible values. */
export function describeOption(option: Option): string {
  if (!(option instanceof FieldFlag)) return new Help().optionDescription(option);
  if (option.negate) return `the opposite of ${option.long?.replace("--no-", "--")}`;
  comments ??= parseComments(readFileSync(IMAGE));
  const { field, argChoices = [] } = option;
  const sentences = [comments(`${field.parent.typeName}.${field.name}`).replace(/\s+/g, " ")];
  if (option.fromFile) sentences.push("The name of a file that holds it, or - for standard input.");
  if (isRepeated(field)) sentences.push("Can be given more than once.");
  if (argChoices.length > 0 && argChoices.length <= MAX_CHOICES) sentences.push(`One of: ${argChoices.join(", ")}.`);
  return sentences.filter((part) => part !== "").join(" ");
}
