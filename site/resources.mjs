// The API by resource, from the descriptors and their comments: a page for each resource with the methods of version 2, and
// those of version 1 folded below them.
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary, getOption, hasOption } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { http } from "#gen/google/api/annotations_pb.js";
import { parseComments } from "../src/codec/proto-comments.ts";
import { nameService } from "../src/transport/openapi/tags.ts";
import { describeOperations, readSuccessors } from "./operations.mjs";

/**
 * Describes every resource.
 *
 * @returns the pages by name, as Markdown: `resources`, which lists them, and one for each
 */
export async function describeResources() {
  const image = readFileSync("gen/api.binpb");
  const comments = parseComments(image);
  const services = [...createFileRegistry(fromBinary(FileDescriptorSetSchema, image))].filter(
    ({ kind, typeName }) => kind === "service" && /^(?:chainguard\.platform|arbor)\./.test(typeName),
  );
  const context = { comments, operations: await describeOperations(services, comments), successors: readSuccessors() };
  const resources = Map.groupBy?.(services, nameOf) ?? groupBy(services, nameOf);
  const pages = [...resources].map(([name, all]) => ({
    name,
    path: `resources/${toPath(name)}`,
    all: sortByVersion(all),
  }));
  pages.sort((one, other) => rankOf(one) - rankOf(other) || (one.name < other.name ? -1 : 1));
  const list = pages.map(({ name, path, all: [first] }) => {
    const [about = ""] = escapeText(comments(first.typeName)).split(/(?<=\.)\s/);
    return `| [${name}](${path}.md) | ${about} | ${first.methods.map(({ name: method }) => `\`${method}\``).join(", ")} |`;
  });
  const index = `# API by resource

Find the methods of a resource, with the REST path and the capabilities of each. Version 2 comes first on every page; version
1 is folded below it. [Rules of the API](api-rules.md) says what all methods have in common.

| Resource | | Methods |
|---|---|---|
${list.join("\n")}
`;
  return [["resources", index], ...pages.map((page) => [page.path, describeResource(page, context)])];
}

// Node 20 has no Map.groupBy.
function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

function nameOf(service) {
  return nameService(service.typeName).resource;
}

function toPath(name) {
  return name.toLowerCase().replaceAll(" ", "-");
}

// Those of version 2 first, then the others, and then what only version 1 has.
function rankOf({ all: [first] }) {
  return ["v2", "", "v2beta1", "v1"].indexOf(nameService(first.typeName).version);
}

function sortByVersion(services) {
  const order = ["v2", "", "v2beta1", "v1"];
  const rank = ({ typeName }) => order.indexOf(nameService(typeName).version);
  return [...services].sort((one, other) => rank(one) - rank(other));
}

const EXAMPLES =
  "In the examples `$ARBOR_API` is the address of the service, and `$TOKEN` an API token, such as `arbor auth token` prints. " +
  "The filters of a list are parameters of the query, with a dot before an inner field: `?uidp.children_of=UID&page_size=10`.";

function describeResource({ name, all }, context) {
  const { comments } = context;
  const beta = all.find(({ typeName }) => nameService(typeName).version === "v2beta1");
  const [first, ...others] = all.filter((service) => service !== beta || all.length === 1);
  const more =
    beta === undefined || beta === first
      ? ""
      : `Also served as \`${beta.typeName}\`, with \`v2beta1\` in place of \`v2\` in paths.\n\n`;
  const parts = [
    `# ${name}`,
    escapeText(comments(first.typeName)),
    `${more}${EXAMPLES}`,
    ...first.methods.map((method) => describeMethod(method, others, context, "##")),
    ...describeMessages(first, comments),
    ...others.map((service) => fold(service, context)),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function fold(service, context) {
  const { comments } = context;
  const version = nameService(service.typeName).version || "another service";
  const methods = service.methods.map((method) => describeMethod(method, [], context, "###"));
  return `<details class="version">
<summary>${version === "v1" ? "Version 1" : version}: ${service.typeName}</summary>

${[escapeText(comments(service.typeName)), ...methods].filter((part) => part !== "").join("\n\n")}

</details>`;
}

/** @param versions the other services on the page, which may have the same method in another version */
function describeMethod(method, versions, context, level) {
  const { comments, operations } = context;
  const full = `${method.parent.typeName}.${method.name}`;
  const routes = listRoutes(method).map(([verb, path]) => `\`${verb} ${path}\``);
  const operation = operations.get(full);
  const others = operation?.others.map(({ route, summary }) => `\`${route}\`: ${summary}`) ?? [];
  const response = method.output.typeName === "google.protobuf.Empty" ? "" : `Returns ${nameType(method.output)}.`;
  // A link of Markdown leads to a file of docs/, which the page of the API is not.
  const tryIt = operation && `<a href="../${operation.address}">Try it</a>.`;
  const sentences = [describeRights(method), response, tryIt ?? "", describeFormer(method, versions, context)];
  return [
    `${level} ${method.name}`,
    [...routes, ...others, `gRPC \`${method.parent.typeName}/${method.name}\``].join("  \n"),
    escapeText(comments(full)),
    sentences.filter((sentence) => sentence !== "").join(" "),
    method.input.fields.length === 0 ? "" : describeFields(method.input, comments),
    operation ? describeBody(method) : "",
    operation ? describeExamples(operation) : "",
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

// The same method in version 1, which is folded below.
function describeFormer(method, versions, { successors }) {
  const name = `${method.parent.name}.${method.name}`;
  const former = versions
    .flatMap((service) => service.methods)
    .filter((one) => successors.get(`${one.parent.name}.${one.name}`) === name);
  return former.map((one) => `In version 1: [${one.name}](#${one.name.toLowerCase()}).`).join(" ");
}

function describeExamples({ curl, command, response }) {
  const request = `\`\`\`sh\n${[curl, command].filter((one) => one !== undefined).join("\n\n")}\n\`\`\``;
  if (response === undefined) return request;
  return `${request}\n\nThe response:\n\n\`\`\`json\n${JSON.stringify(response, undefined, 2)}\n\`\`\``;
}

function listRoutes(method) {
  if (!hasOption(method, http)) return [];
  const rule = getOption(method, http);
  return [rule, ...rule.additionalBindings].map(({ pattern }) =>
    pattern.case === "custom" ? [pattern.value.kind, pattern.value.path] : [pattern.case.toUpperCase(), pattern.value],
  );
}

// Which field is the body decides how a request over REST is nested.
function describeBody(method) {
  const { body } = hasOption(method, http) ? getOption(method, http) : { body: "" };
  if (body === "" || body === "*") return "";
  return `Over REST the body is the value of \`${body}\` itself; the other fields are in the path or in the query.`;
}

function describeRights(method) {
  const mode = hasOption(method, iam) ? getOption(method, iam).mode : undefined;
  if (mode?.case === "disabled") return "Needs no token.";
  if (mode?.case !== "enabled") return "Proves its caller itself.";
  const names = mode.value.capabilities.map(
    (number) => `\`${getOption(CapabilitySchema.value[number], capabilityName)}\``,
  );
  return names.length === 0 ? "Needs a token." : `Needs ${names.join(" and ")}.`;
}

function describeFields(message, comments) {
  const rows = message.fields.map(
    (field) =>
      `| \`${field.name}\` | ${nameFieldType(field)} | ${escapeText(comments(`${message.typeName}.${field.name}`))
        .replace(/\s+/g, " ")
        .replaceAll("|", "\\|")} |`,
  );
  return `| Field | Type | |\n|---|---|---|\n${rows.join("\n")}`;
}

// Those that requests and answers have inside.
function describeMessages(service, comments) {
  const found = new Map();
  const visit = (message) => {
    for (const { message: inner } of message.fields) {
      if (inner === undefined || inner.typeName.startsWith("google.") || found.has(inner.typeName)) continue;
      found.set(inner.typeName, inner);
      visit(inner);
    }
  };
  for (const { input, output } of service.methods) {
    if (!output.typeName.startsWith("google.")) found.set(output.typeName, output);
    visit(input);
    visit(output);
  }
  for (const { input } of service.methods) found.delete(input.typeName);
  if (found.size === 0) return [];
  const described = [...found.values()].map((message) =>
    [
      `### ${message.name}`,
      escapeText(comments(message.typeName)),
      message.fields.length === 0 ? "" : describeFields(message, comments),
    ]
      .filter((part) => part !== "")
      .join("\n\n"),
  );
  return ["## Messages", ...described];
}

function nameFieldType(field) {
  if (field.fieldKind === "map") return "map";
  const one = field.message
    ? nameType(field.message)
    : field.enum
      ? describeEnum(field.enum)
      : scalarNames[field.scalar];
  return field.fieldKind === "list" ? `list of ${one}` : one;
}

function nameType({ typeName, name }) {
  return `\`${typeName.startsWith("google.") ? typeName : name}\``;
}

function describeEnum({ values }) {
  return values.map(({ name }) => `\`${name}\``).join(", ");
}

const scalarNames = {
  1: "double",
  2: "float",
  3: "int64",
  4: "uint64",
  5: "int32",
  8: "bool",
  9: "string",
  12: "bytes",
  13: "uint32",
};

/** The text of a comment: outside of code, what looks like a tag is not one. */
function escapeText(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll("<", "&lt;").replaceAll("*", "\\*").replaceAll("_", "\\_")))
    .join("");
}
