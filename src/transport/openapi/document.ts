// The OpenAPI 3.1 document of the gateway, built from its routes and the comments of the protos, so that it always
// agrees with them.

import type { Comments } from "../../codec/proto-comments.js";
import type { HttpBinding } from "../http/http-binding.js";
import { buildErrorSchemas, errorResponse } from "./error-schema.js";
import { buildOperation } from "./operation.js";
import { buildDocumentPaths } from "./paths.js";
import { createSchemas } from "./schema.js";
import { buildSecuritySchemes, defaultSecurity } from "./security.js";
import { compareServices, formatTag } from "./tags.js";
import { buildDescription, type Json, type Schema } from "./value-schema.js";

/** The properties of the service in the document. */
export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** The base URL of the service; if empty, the origin of the document. */
  readonly baseUrl: string;
}

const HTTP_METHODS: ReadonlySet<string> = new Set([
  "delete",
  "get",
  "head",
  "options",
  "patch",
  "post",
  "put",
  "trace",
]);

/**
 * Builds the document in steps of some milliseconds, so that other work can run between them. Routes for any HTTP
 * method, or for one that OpenAPI does not have, are left out.
 *
 * @throws TypeError when two routes differ only in what OpenAPI cannot express, such as `*` and `**`
 */
export function* buildOpenApiDocument(
  all: readonly HttpBinding[],
  comments: Comments,
  info: DocumentInfo,
): Generator<void, Schema> {
  const routes = all.filter(({ method }) => HTTP_METHODS.has(method.toLowerCase()));
  const schemas = createSchemas(comments);
  const ids = operationIdsOf(routes);
  const paths: Record<string, Schema> = {};
  for (const [i, path] of buildDocumentPaths(routes).entries()) {
    const route = routes[i];
    if (route === undefined) continue;
    yield;
    const method = route.method.toLowerCase();
    const item = paths[path.template] ?? {};
    if (item[method] !== undefined) {
      throw new TypeError(`${route.name}: ${route.method} ${route.template.text} has the same path as another route`);
    }
    paths[path.template] = item;
    item[method] = buildOperation(route, ids[i] ?? "", path, { schemas, comments });
  }
  const services = [...new Set(routes.map(({ entry }) => entry.desc.parent))].sort((one, other) =>
    compareServices(one.typeName, other.typeName),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: info.title,
      version: info.version,
      description: `${info.description}\n\n${ALSO_ACCEPTED}`,
      license: LICENSE,
    },
    servers: serversOf(info.baseUrl),
    security: defaultSecurity,
    tags: services.map(({ typeName }) => ({
      name: typeName,
      // The extension that pages about the API show in place of the name.
      "x-displayName": formatTag(typeName),
      ...buildDescription(comments(typeName)),
    })),
    paths: paths as Json,
    components: {
      securitySchemes: buildSecuritySchemes(routes.map(({ entry }) => entry)),
      responses: { Error: errorResponse },
      schemas: sortByName({ ...schemas.components(), ...buildErrorSchemas() }),
    },
  };
}

function serversOf(baseUrl: string): Schema[] {
  const here = { url: "/", description: "Where this document came from." };
  return baseUrl === "" ? [here] : [{ url: baseUrl }, here];
}

function sortByName(schemas: Record<string, Schema>): Record<string, Schema> {
  return Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
}

// `v2beta1_GroupsService_GetGroup`: short, and unique for each version of a service. Where two services would have the
// same, the ids contain the package. Additional bindings have a number.
function operationIdsOf(routes: readonly HttpBinding[]): string[] {
  const services = routes.map(({ name }) => name.slice(0, name.lastIndexOf(".")));
  const owners = new Map<string, Set<string>>();
  for (const service of services) {
    const short = shortenName(service);
    owners.set(short, (owners.get(short) ?? new Set()).add(service));
  }
  const seen = new Map<string, number>();
  return routes.map(({ entry }, i) => {
    const service = services[i] ?? "";
    const short = shortenName(service);
    const id = `${owners.get(short)?.size === 1 ? short : service.replaceAll(".", "_")}_${entry.desc.name}`;
    const times = (seen.get(id) ?? 0) + 1;
    seen.set(id, times);
    return times === 1 ? id : `${id}_${times}`;
  });
}

function shortenName(service: string): string {
  const parts = service.split(".");
  const version = /^v[0-9]/.test(parts.at(-2) ?? "") ? `${parts.at(-2)}_` : "";
  return `${version}${parts.at(-1)}`;
}

// What the schemas leave out, because it cannot be expressed or would make the types of generated clients worse.
const ALSO_ACCEPTED =
  "Requests are read more widely than the schemas say. Properties and parameters may be spelled as in the protos or in " +
  "lower camel case, such as `page_size` and `pageSize`. Numbers may be strings, 64-bit integers may be numbers, and " +
  "enums in queries may be numbers. Null for a property is as if it were absent, in an update as if it were empty. A " +
  "description says which properties exclude each other.";

const LICENSE = { name: "Apache-2.0", identifier: "Apache-2.0" };
