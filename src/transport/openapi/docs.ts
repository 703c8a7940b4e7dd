// `/openapi.json` and, to read it with, Swagger UI at `/docs/api`, served from the
// installed package: nothing is loaded from elsewhere.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { RouteGroup } from "../http/health-routes.js";
import { answerWith, createStaticDocument, type StaticDocument } from "../http/static-document.js";

/** The path of the page. */
export const API_PAGE_PATH = "/docs/api";

const require = createRequire(import.meta.url);
const UI = dirname(require.resolve("swagger-ui-dist/package.json"));
const { version: UI_VERSION } = JSON.parse(readFileSync(join(UI, "package.json"), "utf8")) as { version: string };

// The version in their URLs lets browsers cache the files for ever. The URLs are relative, because a proxy may serve all paths
// below a prefix.
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Arbor API</title>
    <link rel="stylesheet" href="swagger-ui.css?v=${UI_VERSION}">
    <link rel="stylesheet" href="page.css">
    <link rel="icon" href="favicon-32x32.png?v=${UI_VERSION}">
  </head>
  <body>
    <main>
      <header class="swagger-ui wrapper">
        <p><a href="./">Documentation</a></p>
        <h1>API</h1>
        <p>Find an operation, read its request and response, and try it with your token. Every operation is a gRPC method
        too, on the same host and port. <a href="resources.html">API by resource</a> has the same without a form, and
        <a href="../openapi.json">openapi.json</a> for programs.</p>
      </header>
      <div id="ui"></div>
    </main>
    <script src="swagger-ui-bundle.js?v=${UI_VERSION}"></script>
    <script src="start.js"></script>
  </body>
</html>
`;

// Shows the document as people read it: resources by their names, and one field for whatever token an operation takes. The
// filter finds resources, paths and what operations do. No validator, which would send the document to another service.
const START = `const BEARER = "bearer";

function forPeople(document) {
  const schemes = document.components.securitySchemes;
  const names = new Map();
  for (const tag of document.tags) {
    const shown = tag["x-displayName"];
    names.set(tag.name, [...names.values()].includes(shown) ? tag.name : shown);
    tag.name = names.get(tag.name);
  }
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    operation.tags = operation.tags.map((name) => names.get(name));
    const [other] = (operation.security ?? []).flatMap((one) => Object.keys(one));
    if (other === undefined) continue;
    operation.security = [{ [BEARER]: [] }];
    operation.description = [operation.description, "The token is another one: " + schemes[other].description]
      .filter(Boolean).join("\\n\\n");
  }
  document.servers = [{ url: new URL("..", location.href).href.replace(/\\/$/, "") }];
  document.components.securitySchemes = { [BEARER]: schemes[BEARER] };
  return document;
}

function filterOperations(groups, phrase) {
  const has = (value) => String(value ?? "").toLowerCase().includes(phrase.toLowerCase());
  const isFound = (one) => has(one.get("path")) || ["summary", "operationId"].some((name) => has(one.getIn(["operation", name])));
  return groups
    .map((group, name) => (has(name) ? group : group.update("operations", (all) => all.filter(isFound))))
    .filter((group) => group.get("operations").size > 0);
}

// In place of the layout of Swagger UI, whose headings and landmarks are not those of a page.
function ApiLayout({ React, getComponent }) {
  const show = (name, ...rest) => React.createElement(getComponent(name, true), ...rest);
  return React.createElement("div", { className: "swagger-ui" },
    React.createElement(getComponent("SvgAssets")),
    show("errors"),
    React.createElement("div", { className: "wrapper authorize" }, show("AuthorizeBtnContainer")),
    React.createElement("h2", { className: "wrapper" }, "Resources"),
    show("FilterContainer"),
    show("operations"));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

fetch("../openapi.json")
  .then((response) => response.json())
  .then((document) => SwaggerUIBundle({
    spec: forPeople(document),
    dom_id: "#ui",
    deepLinking: true,
    docExpansion: "none",
    filter: true,
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    validatorUrl: null,
    layout: "ApiLayout",
    plugins: [
      { fn: { opsFilter: filterOperations } },
      ({ React, getComponent }) => ({
        components: {
          ApiLayout: () => ApiLayout({ React, getComponent }),
          // A link in a button can be used by nobody who has no mouse; the address changes without it.
          DeepLink: ({ text }) => React.createElement("span", null, text),
        },
      }),
    ],
  }));
`;

// Names of services and paths are longer than the screen of a telephone is wide, and some colours of Swagger UI cannot be
// told from their background.
const STYLE = `body { margin: 0; }
main { box-sizing: border-box; max-width: 76rem; margin: 0 auto; padding: 0 clamp(1rem, 4vw, 2.5rem) 3rem; }
.swagger-ui.wrapper, .swagger-ui .wrapper { box-sizing: border-box; padding: 0; }
.swagger-ui a, .swagger-ui .btn.authorize, .swagger-ui .btn.authorize span { color: #0a56a6; }
.swagger-ui .btn.authorize { border-color: #0a56a6; }
.swagger-ui .btn.authorize svg { fill: #0a56a6; }
.dark-mode .swagger-ui a, .dark-mode .swagger-ui .btn.authorize, .dark-mode .swagger-ui .btn.authorize span { color: #8fc1ff; }
.dark-mode .swagger-ui .btn.authorize { border-color: #8fc1ff; }
.dark-mode .swagger-ui .btn.authorize svg { fill: #8fc1ff; }
.swagger-ui .opblock-summary-method { background: #33414f !important; color: #fff !important; }
.swagger-ui .opblock.opblock-deprecated { opacity: 1; }
.swagger-ui .parameter__in, .swagger-ui .prop-format, .swagger-ui .parameter__type { color: #3b4151; }
.dark-mode .swagger-ui .parameter__in, .dark-mode .swagger-ui .prop-format,
.dark-mode .swagger-ui .opblock.opblock-deprecated .opblock-summary-path__deprecated { color: #d5dade; }
.swagger-ui .highlight-code pre, .swagger-ui .highlight-code > .microlight {
  max-height: none; overflow: visible !important; white-space: pre-wrap; overflow-wrap: anywhere;
}
.swagger-ui header p { font-size: 16px; line-height: 1.5; }
.swagger-ui .opblock-tag { overflow-wrap: anywhere; }
@media (max-width: 640px) {
  .swagger-ui .opblock-tag { flex-wrap: wrap; font-size: 16px; }
  .swagger-ui .opblock-tag small { flex-basis: 80%; padding: 4px 0; }
  .swagger-ui .opblock-summary-control { min-width: 0; }
  .swagger-ui .opblock .opblock-summary-path-description-wrapper {
    min-width: 0; flex-direction: column; align-items: flex-start;
  }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; padding: 0; overflow-wrap: anywhere; }
  .swagger-ui table.parameters, .swagger-ui .parameters tbody, .swagger-ui .parameters tr, .swagger-ui .parameters td {
    display: block;
  }
  .swagger-ui .opblock .opblock-summary-description { overflow-wrap: anywhere; }
  .swagger-ui .response-col_links { display: none; }
  .swagger-ui .parameters thead { display: none; }
}
`;

// Swagger UI needs inline styles and images in data URLs, and nothing else.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE_HEADERS = {
  "content-security-policy": POLICY,
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
};
const FRESH = { "cache-control": "no-cache" };
const KEPT = { "cache-control": "public, max-age=31536000, immutable" };

const assets: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

/**
 * Creates the routes.
 *
 * @param document builds the OpenAPI document as JSON; called at the first request
 */
export function createDocsRoutes(document: () => Promise<string>): RouteGroup & { readonly paths: readonly string[] } {
  const page = createStaticDocument({
    contentType: "text/html; charset=utf-8",
    headers: PAGE_HEADERS,
    load: () => PAGE,
  });
  const documents = new Map<string, StaticDocument>([
    [API_PAGE_PATH, page],
    [
      "/docs/start.js",
      createStaticDocument({ contentType: "text/javascript; charset=utf-8", headers: FRESH, load: () => START }),
    ],
    [
      "/docs/page.css",
      createStaticDocument({ contentType: "text/css; charset=utf-8", headers: FRESH, load: () => STYLE }),
    ],
    ["/openapi.json", createStaticDocument({ contentType: "application/json", headers: FRESH, load: document })],
  ]);
  for (const [name, contentType] of Object.entries(assets)) {
    const load = () => readFileSync(join(UI, name));
    documents.set(`/docs/${name}`, createStaticDocument({ contentType, headers: KEPT, load }));
  }

  return {
    paths: [...documents.keys()],
    handle(request, path) {
      return answerWith(documents.get(path), request);
    },
  };
}
