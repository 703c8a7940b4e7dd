// The pages about the API: its OpenAPI document, the page that shows it, the documentation, the console, and the home page.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readComments } from "../codec/proto-comments.js";
import { runInSlices } from "../kernel/time.js";
import { VERSION } from "../kernel/version.js";
import type { HttpBinding } from "../transport/http/http-binding.js";
import { createConsole } from "../transport/openapi/console.js";
import { createDocsRoutes } from "../transport/openapi/docs.js";
import { buildOpenApiDocument } from "../transport/openapi/document.js";
import { createHomeRoutes, VERSION_PATH } from "../transport/openapi/home.js";
import type { Site } from "../transport/openapi/site.js";
import type { Gateway } from "../transport/rest/gateway.js";

/** The image of all protos, which has the comments of the API. */
const IMAGE = fileURLToPath(new URL("../../gen/api.binpb", import.meta.url));

export interface ApiPagesOptions {
  /** The base URL that the document names, and at which people use the console. */
  readonly baseUrl: string;
  /** Whether the console is served. */
  readonly hasConsole: boolean;
  /** The documentation. */
  readonly site: Site;
}

/** Creates the pages. */
export function createApiPages(gateway: Gateway, { baseUrl, hasConsole, site }: ApiPagesOptions) {
  const docs = createDocsRoutes(() => buildOpenApiJson(gateway.routes, baseUrl));
  const home = createHomeRoutes({ version: VERSION, hasConsole, isRootTaken: gateway.methodsAt("/") !== undefined });
  const console = hasConsole ? [createConsole({ baseUrl })] : [];
  return {
    routes: [docs, home, site, ...console],
    /** Their paths, except for `/`, which a mounted service may serve. */
    paths: [...docs.paths, ...site.paths, ...console.flatMap(({ paths }) => paths), VERSION_PATH],
  };
}

async function buildOpenApiJson(routes: readonly HttpBinding[], baseUrl: string): Promise<string> {
  const description =
    "Organisations as a tree of groups, identities, roles and access. Every operation is a gRPC method too, on the same " +
    "host and port.";
  const info = { title: "Arbor", version: VERSION, description, baseUrl };
  const comments = await runInSlices(readComments(readFileSync(IMAGE)));
  return JSON.stringify(await runInSlices(buildOpenApiDocument(routes, comments, info)));
}
