// `arbor iam`: a command for each verb of each noun, with the flags that their
// messages ask for.
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { FORMATS } from "../../output/formats.js";
import { FieldFlag, type FlagScope, fieldFlags } from "./field-flags.js";
import { optionDescription } from "./field-help.js";
import { type ResourceCommand, resourceCommands, resourceFieldOf, type Verb } from "./nouns.js";

const COMMON = "Connection and output:";

/** Adds `iam` and all below it. */
export function addIamCommands(arbor: Command): void {
  const iam = arbor.command("iam").description("manage groups, identities, roles and what goes with them");
  for (const noun of resourceCommands) {
    const command = iam.command(noun.name).description(`manage ${plural(noun)}`);
    command.configureHelp({ optionDescription });
    addList(command, noun);
    for (const verb of ["get", "create", "update", "delete"] as const) {
      const method = noun.methods[verb];
      if (method !== undefined) add[verb](command, noun, method);
    }
  }
}

function addList(parent: Command, noun: ResourceCommand): void {
  const method = noun.methods.list;
  const command = withFields(parent.command("list"), method, {})
    .description(`list ${plural(noun)}`)
    .option("--page-all", "all pages from here on, each printed as it comes")
    .option("--progress", "tell on standard error how far the list has come, even if that is no terminal");
  withCommon(command).action(async (given) => (await import("./run-list.js")).runList(noun, flagsOf(command), given));
}

const add: Readonly<
  Record<Exclude<Verb, "list">, (parent: Command, noun: ResourceCommand, method: DescMethodUnary) => void>
> = {
  get(parent, noun, method) {
    withCommon(parent.command("get <uid>").description(`print one ${noun.one}`)).action(async (uid, given) =>
      (await import("./run-one.js")).runGet(noun, method, uid, given),
    );
  },
  create(parent, noun, method) {
    const command = parent.command(noun.createAlias ?? "create").description(`create one ${noun.one}`);
    if (noun.createAlias !== undefined) command.alias("create");
    const resource = resourceFieldOf(noun, method);
    withFields(command, method, { resource, writing: true });
    if (resource !== undefined) withFile(command);
    withCommon(command).action(async (given) =>
      (await import("./run-one.js")).runCreate(noun, method, flagsOf(command), given),
    );
  },
  update(parent, noun, method) {
    const command = parent
      .command("update <uid>")
      .description(`change one ${noun.one}: the fields whose flags are given, and no others`);
    withFields(command, method, { resource: resourceFieldOf(noun, method), writing: true, changing: true });
    withCommon(withFile(command)).action(async (uid, given) =>
      (await import("./run-one.js")).runUpdate(noun, method, uid, flagsOf(command), given),
    );
  },
  delete(parent, noun, method) {
    const command = parent.command("delete <uid>").description(`delete one ${noun.one}`);
    command.option("--yes", "do not ask whether to");
    withCommon(command).action(async (uid, given) =>
      (await import("./run-one.js")).runDelete(noun, method, uid, given),
    );
  },
};

function withFields(command: Command, { input }: DescMethodUnary, scope: FlagScope): Command {
  for (const flag of fieldFlags(input, scope)) command.addOption(flag);
  return command;
}

function withFile(command: Command): Command {
  return command.option("--file <file>", "JSON or YAML of the whole, or - for standard input; flags win over it");
}

/** Adds the flags that say which service to call, as whom, and how to print what it answers. */
export function withCommon(command: Command): Command {
  return command
    .addOption(
      new Option("-o, --output <format>", "how to print the answer")
        .choices(FORMATS)
        .default(FORMATS[0])
        .helpGroup(COMMON),
    )
    .addOption(
      new Option("--api <url>", "where the service is; http://127.0.0.1:8080 unless set (ARBOR_API)").helpGroup(COMMON),
    )
    .addOption(
      new Option(
        "--token-file <file>",
        "file with an API token, in place of `arbor auth login`; ARBOR_TOKEN wins",
      ).helpGroup(COMMON),
    );
}

function flagsOf(command: Command): FieldFlag[] {
  return command.options.filter((option) => option instanceof FieldFlag);
}

function plural({ one }: ResourceCommand): string {
  const [head = "", ...rest] = one.split(" of ");
  return [head.endsWith("y") ? `${head.slice(0, -1)}ies` : `${head}s`, ...rest].join(" of ");
}
