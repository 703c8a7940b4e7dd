// How each method is called: an example of its request and response from the OpenAPI document, which the page of the API shows
// as well, and the command that does the same.
import { readFileSync } from "node:fs";
import { hasOption } from "@bufbuild/protobuf";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { examples } from "../src/cli/examples.ts";
import { fillAll } from "../src/cli/lazy-command.ts";
import { createProgram } from "../src/cli/program.ts";
import { readMethods } from "../src/cli/remote/api/catalogue.ts";
import { findCommands } from "../src/cli/remote/api/run.ts";
import { runSync } from "../src/kernel/time.ts";
import { declareMethod, readAuthRule } from "../src/pipeline/method-table.ts";
import { buildBindings } from "../src/transport/http/http-binding.ts";
import { buildOpenApiDocument } from "../src/transport/openapi/document.ts";
import { formatTag } from "../src/transport/openapi/tags.ts";

const INFO = { title: "Arbor", version: "", description: "", baseUrl: "" };

/**
 * Describes how methods are called.
 *
 * @param services the descriptors of the API
 * @param comments the comments of the protos
 * @returns by the full name of a method such as `package.Service.Method`: its address on the page of the API, and examples
 */
export async function describeOperations(services, comments) {
  const methods = services.flatMap((service) => service.methods);
  const routes = methods
    .filter(({ methodKind }) => /^(?:unary|server_streaming)$/.test(methodKind))
    .flatMap((method) => buildRoutes(method, comments));
  const document = runSync(buildOpenApiDocument(routes, comments, INFO));
  const commands = await readCommands();
  const operations = new Map();
  const all = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation })),
  );
  for (const { path, verb, operation } of all) {
    const [service] = operation.tags;
    const name = `${service}.${nameMethod(operation.operationId)}`;
    // A further route of a method ends before a variable.
    if (operations.has(name)) {
      operations.get(name).others.push({ route: `${verb} ${path}`, summary: operation.summary });
      continue;
    }
    operations.set(name, {
      others: [],
      address: `api#/${encodeURIComponent(formatTag(service))}/${operation.operationId}`,
      curl: formatCurl(path, verb, operation),
      command: formatCommand(commands.get(name.replace(/\.(?=\w+$)/, "/"))),
      response: operation.responses["200"].content?.["application/json"]?.example,
    });
  }
  return operations;
}

function buildRoutes(desc, comments) {
  const entry = declareMethod(desc, readAuthRule(desc, !hasOption(desc, iam)));
  const [binding] = buildBindings(entry);
  const { field } = binding?.template.star2 >= 0 ? binding.variables.at(-1) : {};
  const allowEmptyPath =
    field !== undefined && /\bEmpty: creates /.test(comments(`${field.parent.typeName}.${field.name}`));
  return buildBindings({ ...entry, allowEmptyPath });
}

async function readCommands() {
  const program = await createProgram();
  await fillAll(program);
  return findCommands(program, readMethods());
}

// `v2_GroupsService_CreateGroup` and `Groups_Create_2` end in the name of the method, and perhaps a number.
function nameMethod(operationId) {
  return /_([A-Za-z]+)(?:_\d+)?$/.exec(operationId)?.[1] ?? "";
}

function formatCurl(path, verb, { parameters, requestBody, security }) {
  const formatExample = ({ example }) => (Array.isArray(example) ? example.join(",") : String(example ?? ""));
  const inPath = new Map(parameters.filter((one) => one.in === "path").map((one) => [one.name, formatExample(one)]));
  const query = parameters
    .filter((one) => one.in === "query" && one.required)
    .map((one) => `${one.name}=${encodeURIComponent(formatExample(one))}`);
  const address = path.replace(/\{([^}]*)\}/g, (_, name) => inPath.get(name) || name.toUpperCase());
  const body = requestBody?.content["application/json"]?.example;
  const parts = [
    `curl${verb === "GET" ? "" : ` -X ${verb}`}${formatAuthorization(security)}`,
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`]),
    `"$ARBOR_API${address}${query.length === 0 ? "" : `?${query.join("&")}`}"`,
    ...(body === undefined ? [] : [`-d '${JSON.stringify(body, undefined, 2).replaceAll("'", "'\\''")}'`]),
  ];
  return parts.join(" \\\n  ").replace(/^curl \\\n */, "curl ");
}

// The variable in which the pages keep a token of a security scheme.
const tokens = { bearer: "TOKEN", foreignToken: "OIDC_TOKEN", refreshToken: "REFRESH_TOKEN" };

function formatAuthorization(security = [{ bearer: [] }]) {
  const [scheme] = security.flatMap((one) => Object.keys(one));
  return scheme === undefined ? "" : ` -H "Authorization: Bearer $${tokens[scheme]}"`;
}

function formatCommand(command) {
  if (command === undefined) return undefined;
  const [first] = examples[command.replace(/^arbor /, "")] ?? [];
  return first === undefined ? undefined : `# ${first[0]}\n${first[1]}`;
}

/**
 * Reads which method of version 2 replaces one of version 1, from the tables of docs/migration.md.
 *
 * @returns the names of both without their packages, such as `GroupsService.ListGroups` by `Groups.List`
 */
export function readSuccessors() {
  const rows = readFileSync("docs/migration.md", "utf8").matchAll(/^\| `(\w+\.\w+)`<br>[^|]*\| `(\w+\.\w+)`<br>/gm);
  return new Map([...rows].map(([, former, current]) => [former, current]));
}
