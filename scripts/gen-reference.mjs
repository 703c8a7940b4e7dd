// Writes docs/commands.md from the parser of the command line, and docs/roles.md from the built-in roles and the descriptors.
//   node --import tsx scripts/gen-reference.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { createFileRegistry, fromBinary, getOption, hasOption } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { iam } from "../gen/chainguard/annotations/annotations_pb.js";
import { CapabilitySchema, name as capabilityName } from "../gen/chainguard/capabilities/capabilities_pb.js";
import { examples } from "../src/cli/examples.ts";
import { createProgram } from "../src/cli/program.ts";
import { COMMON } from "../src/cli/remote/flags.ts";
import { FieldFlag } from "../src/cli/remote/iam/field-flags.ts";
import { isRequired } from "../src/codec/fields.ts";
import { flagOf, settings } from "../src/config/settings.ts";
import { builtinRoles } from "../src/iam/roles/builtin-roles.ts";

const NOTE = "<!-- Written by `npm run gen`. -->";
const settingFlags = new Set(Object.keys(settings).map((name) => flagOf(name).replace(/^--no-/, "--")));

writeFileSync("docs/commands.md", describeCommands(await createProgram()));
writeFileSync("docs/roles.md", describeRoles());

function describeCommands(arbor) {
  const parts = listVisible(arbor).map((command) => [
    `## arbor ${command.name()}`,
    sentence(command.description()),
    ...linkLeaves(command),
    ...leavesOf(command).map(describeCommand),
  ]);
  return `# Commands

${NOTE}

Every command with its flags. [The client commands](cli.md) says what those that call the API have in common, such as names,
output and exit codes; [operations.md](operations.md#on-the-host) does so for those on the host.

Commands that call the API also take \`-o\`, \`--output FORMAT\`, \`--api URL\`, \`--token-file FILE\` and the other flags of
[output](cli.md#output). Commands on the host take [settings](settings.md) as flags as well.

${parts.flat().join("\n\n")}
`;
}

/** Links to the commands of a group. */
function linkLeaves(command) {
  const paths = leavesOf(command).map(pathOf);
  if (paths.length < 2) return [];
  return [paths.map((path) => `[\`${path.split(" ").slice(2).join(" ")}\`](#${path.replaceAll(" ", "-")})`).join(", ")];
}

function leavesOf(command) {
  const inner = listVisible(command);
  return inner.length === 0 ? [command] : inner.flatMap(leavesOf);
}

/** The commands below one, without that of the help, which the parser adds. */
function listVisible(command) {
  const visible = command.createHelp().visibleCommands(command);
  return command.commands.filter((one) => visible.includes(one));
}

function describeCommand(command) {
  const path = pathOf(command);
  const help = command.createHelp();
  const isTop = path.split(" ").length === 2;
  const own = command.options.filter(
    (option) => !option.hidden && option.helpGroupHeading !== COMMON && !isSetting(option),
  );
  const hasSettings = command.options.some(isSetting);
  const operands = command.registeredArguments.map((one) => {
    const name = one.name() + (one.variadic ? "..." : "");
    return one.required ? `<${name}>` : `[${name}]`;
  });
  const rows = [
    ...help.visibleArguments(command).map((one) => [one.name(), help.argumentDescription(one)]),
    ...own.map((option) => [option.flags, describeOption(option, help.optionDescription(option), command.name())]),
  ];
  const needed = own.filter(({ mandatory }) => mandatory).map(({ flags }) => flags.replace(/^-\w, /, ""));
  const shown = examples[path.slice("arbor ".length)] ?? [];
  const list = rows.map(([flag, about]) => `- \`${flag}\`  \n  ${sentence(about)}`).join("\n");
  return [
    ...(isTop ? [] : [`### ${path}`, sentence(command.description())]),
    `\`${[path, ...operands, ...needed].join(" ")}\`${hasSettings ? ", with settings as flags." : ""}`,
    ...(rows.length === 0 ? [] : [list]),
    ...(shown.length === 0
      ? []
      : [`\`\`\`sh\n${shown.map(([wish, line]) => `# ${wish}\n${line}`).join("\n")}\n\`\`\``]),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

// A file that `--file` names can have the fields of a resource.
function describeOption(option, about, verb) {
  const isNeeded = verb === "create" && option instanceof FieldFlag && isRequired(option.field) && !option.mandatory;
  if (!isNeeded || /\bRequired/.test(about)) return about;
  return `${about}${/[.:]$/.test(about) ? "" : "."} Required, here or in the file of \`--file\`.`;
}

// Fields such as `issuer` have flags with the names of settings.
function isSetting(option) {
  const { long } = option;
  return long !== undefined && !(option instanceof FieldFlag) && settingFlags.has(long.replace(/^--no-/, "--"));
}

function pathOf(command) {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function sentence(text) {
  return text === "" ? "" : `${text[0].toUpperCase()}${cell(text).slice(1)}${/[.:]$/.test(text) ? "" : "."}`;
}

/** A text outside of code, in which what looks like a tag is not one. */
function cell(text) {
  return text
    .replace(/\s+/g, " ")
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll("<", "&lt;").replaceAll("*", "\\*").replaceAll("_", "\\_")))
    .join("")
    .replaceAll("|", "\\|");
}

function describeRoles() {
  const methods = listMethods();
  const roles = Object.keys(builtinRoles);
  const rolesWith = (capability) =>
    roles.filter((role) => builtinRoles[role].includes(capability)).map((role) => `\`${role}\``);
  const used = [...methods.keys()].sort();
  const rows = used.map(
    (capability) =>
      `| \`${capability}\` | ${[...new Set(methods.get(capability))].join(", ")} | ${rolesWith(capability).join(", ")} |`,
  );
  const what = roles.map((role) => {
    const held = builtinRoles[role];
    const here = used.filter((capability) => held.includes(capability));
    return `### ${role}\n\n${here.length === 0 ? "Nothing that a method of this service needs." : `${here.map((one) => `\`${one}\``).join(", ")}.`}`;
  });
  return `# Roles and their capabilities

${NOTE}

Find the role that allows a method, or what a role allows. \`viewer\` is the read only role, \`editor\` also changes repos, and
\`owner\` is the administrator of a group: it may do everything there, and grant roles to others. Every installation has these
roles, and nobody can change them. \`arbor iam roles list\` prints them, and \`arbor iam roles create\` creates more.
[Concepts](concepts.md#roles) explains roles.

## By capability

Each method of version 2 requires all the capabilities in its rows, in the group of the request or in a group above it.

| Capability | Methods | Roles that have it |
|---|---|---|
${rows.join("\n")}

## By role

Capabilities that no method of this service needs are left out. Clients that were written for other services may ask for
them; \`arbor iam roles get NAME\` prints all that a role has.

${what.join("\n\n")}
`;
}

/** The methods of version 2 and of Arbor's own services, by the names of their capabilities. */
function listMethods() {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync("gen/api.binpb")));
  const found = new Map();
  for (const service of registry) {
    if (service.kind !== "service" || !/^(?:chainguard\.platform\.\w+\.v2|arbor\.\w+\.v1)\./.test(service.typeName))
      continue;
    for (const method of service.methods) {
      const mode = hasOption(method, iam) ? getOption(method, iam).mode : undefined;
      const numbers = mode?.case === "enabled" ? mode.value.capabilities : [];
      for (const number of numbers) {
        const capability = getOption(CapabilitySchema.value[number], capabilityName);
        found.set(capability, [...(found.get(capability) ?? []), `\`${method.name}\``]);
      }
    }
  }
  return found;
}
