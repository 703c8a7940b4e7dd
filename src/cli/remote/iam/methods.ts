// The commands of a resource: one for each verb and for each other method, with flags for the fields of its request. The help of these
// flags comes from the comments of the protos, which are read when it is printed.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { DescField, DescMessage, DescMethodUnary } from "@bufbuild/protobuf";
import { type Argument, type Command, Help, type Option } from "commander";
import { type Comments, readFileComments } from "../../../codec/proto-comments.js";
import { addCommonFlags, addConfirmation, addFilterFlag, createColumnsOption, FormerFlag } from "../flags.js";
import { formatPlural } from "../kinds.js";
import { setMethods } from "../methods.js";
import {
  createFieldArguments,
  createFieldFlags,
  FieldArgument,
  FieldFlag,
  type FlagScope,
  isRepeated,
} from "./field-flags.js";
import { listFilters } from "./filters.js";
import { addPresetFlags, choosePreset } from "./presets/presets.js";
import { type ActionCommand, findResourceField, type ResourceCommand, type Verb } from "./resource-commands.js";

// The same path from `src` and from `dist`.
const IMAGE = fileURLToPath(new URL("../../../../gen/api.binpb", import.meta.url));
/** What `create` calls with the flags of a preset. */
const CREATE_TRUSTING = "arbor.trust.v1.TrustService/CreateIdentity";
/** The largest number of choices in the help. */
const MAX_CHOICES = 20;

/** The comments of files of protos, by their names. The help of a command needs one or two of them. */
const comments = new Map<string, Comments>();

/** Adds a subcommand for each method of a resource. */
export function addMethods(command: Command, resource: ResourceCommand): void {
  command.configureHelp({ optionDescription: describeOption, argumentDescription: describeArgument });
  for (const verb of ["list", "get", "create", "update", "delete"] as const) {
    const method = resource.methods[verb];
    if (method === undefined) continue;
    const called = verb === "create" && resource.hasPresets ? [method, CREATE_TRUSTING] : [method];
    setMethods(add[verb](command, resource, method), ...called);
  }
  for (const action of resource.actions ?? []) setMethods(addAction(command, action), action.method);
}

type AddCommand = (parent: Command, resource: ResourceCommand, method: DescMethodUnary) => Command;

const add: Readonly<Record<Verb, AddCommand>> = {
  list(parent, resource, method) {
    const command = addFilterFlag(addFieldFlags(parent.command("list"), method, {}), listFilterNames(method));
    addGroupFlag(command);
    command.description(`list ${formatPlural(resource.singular)}`).addOption(createColumnsOption());
    return addCommonFlags(addPageFlags(command)).action(async (given) =>
      (await import("./run.js")).runList(resource, method, fieldFlagsOf(command), given),
    );
  },
  get(parent, resource, method) {
    return addCommonFlags(parent.command("get <uid>").description(`print one ${resource.singular}`)).action(
      async (uid, given) => (await import("./run.js")).runGet(resource, method, uid, given),
    );
  },
  create(parent, resource, method) {
    const command = parent.command(resource.createAlias ?? "create").description(`create one ${resource.singular}`);
    if (resource.createAlias !== undefined) command.alias("create");
    const field = findResourceField(resource, method);
    addFieldFlags(command, method, { resource: field, writing: true });
    if (field !== undefined) addFileFlag(command);
    if (resource.hasPresets) addPresetFlags(command);
    if (resource.mayEnd) {
      command.option("--expires <time>", "when it ends: a time such as 2026-01-31T12:00:00Z, or a duration such as 8h");
    }
    // Terms that were accepted stay accepted, so that is repeated as it is.
    if (resource.createAlias === undefined) {
      command.option("--if-absent", "if one exists already, print it instead of creating another");
    }
    return addCommonFlags(command).action(async (given) => {
      const chosen = choosePreset(command, given);
      const flags = fieldFlagsOf(command);
      if (chosen !== undefined) {
        const { createFromPreset } = await import("./presets/create.js");
        return createFromPreset(resource, chosen, flags, given);
      }
      return (await import("./run.js")).runCreate(resource, method, flags, given);
    });
  },
  update(parent, resource, method) {
    const command = parent
      .command("update <uid>")
      .description(
        `change one ${resource.singular}: only the fields of the given flags${resource.mayEnd ? "; `set-end` sets when it ends" : ""}`,
      );
    addFieldFlags(command, method, { resource: findResourceField(resource, method), writing: true, updating: true });
    return addCommonFlags(addFileFlag(command)).action(async (uid, given) =>
      (await import("./run.js")).runUpdate(resource, method, uid, fieldFlagsOf(command), given),
    );
  },
  delete(parent, resource, method) {
    const { singular, deletionNote = "" } = resource;
    const command = parent
      .command("delete <uid>")
      .description(`delete one ${singular}${deletionNote && `. ${deletionNote}`}`);
    if (resource.isTree) {
      command
        .option("--recursive", "delete all groups below it, and all that is in them, as well; lists it first")
        .option("--dry-run", "only list what --recursive would delete");
    }
    const isDeleting = ({ dryRun }: Readonly<Record<string, unknown>>) => dryRun !== true;
    return addCommonFlags(addConfirmation(command, isDeleting)).action(async (uid, { recursive = false, ...given }) => {
      if (recursive || given.dryRun) return (await import("./delete-tree.js")).deleteTree(uid, given);
      return (await import("./run.js")).runDelete(resource, method, uid, given);
    });
  },
};

function addAction(parent: Command, action: ActionCommand): Command {
  const { name, method, description, destructive, columns } = action;
  const args = createFieldArguments(method.input, action.args);
  const command = parent.command(name).description(description);
  for (const arg of args) command.addArgument(arg);
  const resource = findField(method.input, action.resource);
  addFieldFlags(command, method, {
    resource,
    writing: true,
    fromFile: resource === undefined,
    args: args.map(({ field }) => field),
  });
  const isPaged = columns !== undefined && method.input.fields.some(({ name: field }) => field === "page_token");
  if (isPaged) addPageFlags(command);
  else if (method.input.fields.length > args.length) {
    addFileFlag(command, resource === undefined ? "request" : "resource");
  }
  if (columns !== undefined) command.addOption(createColumnsOption());
  if (destructive) addConfirmation(command);
  return addCommonFlags(command).action(async (...given) => {
    const values = given.slice(0, args.length) as string[];
    const flags = { args, values, flags: fieldFlagsOf(command), resource };
    await (await import("./run.js")).runAction(action, flags, given[args.length]);
  });
}

function listFilterNames({ input }: DescMethodUnary): string[] {
  return listFilters(createFieldFlags(input, {})).map((flag) => flag.name());
}

function findField(message: DescMessage, name: string | undefined): DescField | undefined {
  const field = message.fields.find((one) => one.name === name);
  if (name !== undefined && field === undefined) throw new TypeError(`${message} has no ${name}`);
  return field;
}

function addFieldFlags(command: Command, { input }: DescMethodUnary, scope: FlagScope): Command {
  for (const flag of createFieldFlags(input, scope)) {
    command.addOption(flag);
    if (flag.former !== undefined) command.addOption(new FormerFlag(flag.former, flag));
  }
  return command;
}

/** Adds `--group`, which people expect of every list, as another name of `--children-of`. */
function addGroupFlag(command: Command): void {
  const children = command.options.find(({ long }) => long === "--children-of");
  if (children === undefined || command.options.some(({ long }) => long === "--group")) return;
  command.addOption(new FormerFlag("--group <uid-or-name>", children));
}

function addPageFlags(command: Command): Command {
  return command
    .option("--page-all", "print all pages from here on as they arrive")
    .option("--progress", "show progress on standard error, even if that is not a terminal");
}

function addFileFlag(command: Command, what = "resource"): Command {
  return command.option(
    "-f, --file <file>",
    `JSON or YAML of the ${what}, or - for standard input; flags take precedence`,
  );
}

function fieldFlagsOf(command: Command): FieldFlag[] {
  return command.options.filter((option) => option instanceof FieldFlag);
}

function describeArgument(argument: Argument): string {
  if (!(argument instanceof FieldArgument)) return new Help().argumentDescription(argument);
  const { field, argChoices = [] } = argument;
  return [describeField(field), ...describeChoices(argChoices)].join(" ");
}

function describeField({ parent, name }: DescField): string {
  const file = parent.file.proto.name;
  const found = comments.get(file) ?? readFileComments(readFileSync(IMAGE), file);
  comments.set(file, found);
  return found(`${parent.typeName}.${name}`).replace(/\s+/g, " ");
}

function describeChoices(names: readonly string[]): string[] {
  return names.length > 0 && names.length <= MAX_CHOICES ? [`One of: ${names.join(", ")}.`] : [];
}

/** Describes an option. The description of a field is the comment of the proto, with the possible values. */
export function describeOption(option: Option): string {
  if (!(option instanceof FieldFlag)) return new Help().optionDescription(option);
  if (option.negate) return `the opposite of ${option.long?.replace("--no-", "--")}`;
  const { field, argChoices = [] } = option;
  const sentences = [describeField(field)];
  if (option.fromFile) sentences.push("The name of a file that holds it, or - for standard input.");
  if (isRepeated(field)) sentences.push("Can be given more than once.");
  sentences.push(...describeChoices(argChoices));
  return sentences.filter((part) => part !== "").join(" ");
}
