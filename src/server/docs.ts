// `/openapi.json` and, to read it with, Swagger UI at `/docs`, served from the
// installed package: nothing is loaded from elsewhere.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Ops } from "./ops.js";
import { type AnyResponse, sendBody, sendJson } from "./refusal.js";

const require = createRequire(import.meta.url);

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Arbor API</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css">
    <link rel="icon" href="/docs/favicon-32x32.png">
  </head>
  <body>
    <main id="ui"></main>
    <noscript>The API is described in <a href="/openapi.json">openapi.json</a>.</noscript>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;
const START = `SwaggerUIBundle({ url: "/openapi.json", dom_id: "#ui", deepLinking: true, docExpansion: "list" });\n`;

// Swagger UI sets styles on elements and shows images of its own as data; it needs nothing else.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const assets: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

/**
 * Creates the routes.
 *
 * @param document makes the OpenAPI document as JSON; called when it is first asked for
 */
export function createDocs(document: () => string): Ops {
  let json: string | undefined;
  const files = new Map<string, Buffer>();

  function asset(name: string): Buffer {
    let bytes = files.get(name);
    if (bytes === undefined) {
      bytes = readFileSync(join(dirname(require.resolve("swagger-ui-dist/package.json")), name));
      files.set(name, bytes);
    }
    return bytes;
  }

  function answer(path: string, res: AnyResponse): void {
    const name = path.slice("/docs/".length);
    if (path === "/openapi.json") {
      json ??= document();
      sendJson(res, 200, json);
    } else if (path === "/docs") {
      sendBody(res, 200, "text/html; charset=utf-8", PAGE, { "content-security-policy": POLICY });
    } else if (name === "start.js") {
      sendBody(res, 200, "text/javascript; charset=utf-8", START);
    } else {
      sendBody(res, 200, assets[name] ?? "", asset(name), { "cache-control": "public, max-age=86400" });
    }
  }

  return {
    handle(method, path, res) {
      const name = path.startsWith("/docs/") ? path.slice("/docs/".length) : undefined;
      const known = name === undefined ? path === "/openapi.json" || path === "/docs" : name === "start.js" || Object.hasOwn(assets, name);
      if (!known) return false;
      if (method === "GET" || method === "HEAD") answer(path, res);
      else sendJson(res, 405, '{"status":"method not allowed"}', { allow: "GET, HEAD" });
      return true;
    },
  };
}
