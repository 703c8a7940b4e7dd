// The OpenAPI 3.1 document of what the gateway serves, from the very routes it
// serves by and from the comments of the protos: it cannot disagree with them.
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { HttpBinding } from "../binding.js";
import { exampleOf } from "./example.js";
import type { Comments } from "./proto-comments.js";
import { queryParametersOf } from "./query-parameters.js";
import { createSchemas, described, type Json, type Schema, type Schemas } from "./schema.js";

/** What the document says of the service as a whole. */
export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** Where it is served; empty: where the document came from. */
  readonly baseUrl: string;
}

const HTTP_METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** Makes the document. */
export function openApiDocument(routes: readonly HttpBinding[], comments: Comments, info: DocumentInfo): Json {
  const schemas = createSchemas(comments);
  const paths: Record<string, Record<string, Json>> = {};
  const names = pathNames(routes);
  for (const route of routes) {
    const method = route.method.toLowerCase();
    // A rule for any method, or for one that OpenAPI has no word for, cannot be told.
    if (!HTTP_METHODS.includes(method)) continue;
    const path = names.get(shapeOf(route)) ?? [];
    const key = templateOf(route, path);
    const item = paths[key] ?? {};
    paths[key] = item;
    item[method] = operationOf(route, path, schemas, comments);
  }
  const services = [...new Set(routes.map(({ entry }) => entry.desc.parent))];
  return {
    openapi: "3.1.0",
    info: { title: info.title, version: info.version, description: info.description, license: LICENSE },
    ...(info.baseUrl !== "" && { servers: [{ url: info.baseUrl }] }),
    security: [{ bearer: [] }],
    tags: services.map((desc) => ({ name: desc.typeName, ...described(comments(desc.typeName)) })),
    paths: paths as Json,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
      responses: { Error: errorResponse },
      schemas: { ...schemas.components(), "google.rpc.Status": statusSchema },
    },
  };
}

function operationOf(route: HttpBinding, names: readonly string[], schemas: Schemas, comments: Comments): Json {
  const { entry, name, body, additional } = route;
  const { desc } = entry;
  const comment = comments(name);
  const operationId = `${desc.parent.name}_${desc.name}${additional ? `_${route.template.text.length}` : ""}`;
  const requestBody = body === "none" ? undefined : requestBodyOf(desc.input, body, schemas);
  return {
    operationId,
    tags: [desc.parent.typeName],
    summary: comment.split(/(?<=\.)\s/)[0] ?? desc.name,
    ...described(comment),
    parameters: [...pathParametersOf(route, names, comments), ...queryParametersOf(route, schemas, comments)],
    ...(requestBody && { requestBody }),
    responses: { "200": answerOf(route, schemas), "4XX": ERROR, "5XX": ERROR },
    ...(entry.auth.mode !== "guarded" && { security: [] }),
  };
}

function requestBodyOf(input: DescMessage, body: "all" | DescField, schemas: Schemas): Schema {
  const message = body === "all" ? input : body.message;
  if (message?.typeName === HTTP_BODY) return { content: { "*/*": { schema: {} } } };
  const schema = body === "all" ? schemas.refTo(input) : schemas.ofField(body);
  const example = message ? { example: exampleOf(message, "request") } : {};
  return { content: { "application/json": { schema, ...example } } };
}

function answerOf(route: HttpBinding, schemas: Schemas): Schema {
  const { output } = route.entry.desc;
  if (output.typeName === HTTP_BODY) return { description: "The content.", content: { "*/*": { schema: {} } } };
  if (output.typeName === "google.protobuf.Empty" && route.method === "DELETE")
    return { description: "Done; no body." };
  const schema = route.responseBody ? schemas.ofField(route.responseBody) : schemas.refTo(output);
  const example = route.responseBody ? {} : { example: exampleOf(output, "response") };
  return { description: "The answer.", content: { "application/json": { schema, ...example } } };
}

function pathParametersOf(
  { template, variables, entry }: HttpBinding,
  names: readonly string[],
  comments: Comments,
): Schema[] {
  return variables.map(({ field }, i) => {
    const { first, last } = template.variables[i] ?? { first: 0, last: 0 };
    const several = first !== last || first === template.star2;
    const comment = comments(`${(field.parent ?? entry.desc.input).typeName}.${field.name}`);
    const note = several ? " May hold slashes, as uids do; they may be sent as they are or as `%2F`." : "";
    return {
      name: names[i] ?? field.name,
      in: "path",
      required: true,
      ...described(comment + note),
      schema: { type: "string" },
    };
  });
}

// OpenAPI forbids paths that differ in the names of their variables alone, so
// routes of one shape share the names that the first of them gives.
function pathNames(routes: readonly HttpBinding[]): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const route of routes) {
    const shape = shapeOf(route);
    if (names.has(shape)) continue;
    const taken: string[] = [];
    for (const { field } of route.variables) {
      taken.push(taken.includes(field.name) ? `${field.name}_${taken.length + 1}` : field.name);
    }
    names.set(shape, taken);
  }
  return names;
}

function shapeOf(route: HttpBinding): string {
  return templateOf(route, []);
}

function templateOf({ template }: HttpBinding, names: readonly string[]): string {
  let variable = 0;
  return template.text.replace(/\{[^}]*\}/g, () => `{${names[variable++] ?? ""}}`);
}

const ERROR: Schema = { $ref: "#/components/responses/Error" };
const HTTP_BODY = "google.api.HttpBody";
const LICENSE = { name: "Apache-2.0", identifier: "Apache-2.0" };

const statusSchema: Schema = {
  type: "object",
  description: "What went wrong (google.rpc.Status, AIP-193).",
  required: ["code", "message", "details"],
  properties: {
    code: { type: "integer", description: "The google.rpc.Code.", minimum: 1, maximum: 16 },
    message: { type: "string", description: "What went wrong, for people." },
    details: {
      type: "array",
      description: "What went wrong, for programs: google.rpc.ErrorInfo always, others where they apply.",
      items: { type: "object", required: ["@type"], properties: { "@type": { type: "string" } } },
    },
  },
};

const errorResponse: Schema = {
  description: "The error; the HTTP status follows from its code.",
  content: {
    "application/json": {
      schema: { $ref: "#/components/schemas/google.rpc.Status" },
      example: {
        code: 3,
        message: "Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$",
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "INVALID_ARGUMENT",
            domain: "iam.example.org",
          },
          {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            fieldViolations: [{ field: "name", description: "name must match ^[a-z0-9 ._-]{1,}$" }],
          },
        ],
      },
    },
  },
};
