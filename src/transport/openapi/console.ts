// `/console`: the web console, whose files the build writes (scripts/console.mjs). Every URL below it is answered with the
// same page, whose script shows the view of the URL.
import { readdirSync, readFileSync } from "node:fs";
import { CONSOLE_PATH, CONSOLE_SESSION_PATH } from "../../kernel/web.js";
import type { RouteGroup } from "../http/health-routes.js";
import type { Request } from "../http/request.js";
import { sendEmpty } from "../http/send.js";
import { answerWith, createStaticDocument, type StaticDocument } from "../http/static-document.js";
import { formatPage, PAGE_HEADERS } from "./home.js";

export interface ConsoleOptions {
  /** The base URL from the settings, where people use the console. */
  readonly baseUrl: string;
  /** The files of the console; without it `/console` says how to build it. */
  readonly folder?: URL;
}

const FOLDER = new URL("../../../dist/console/", import.meta.url);
const ASSETS = `${CONSOLE_PATH}/assets/`;

const POLICY = [
  "default-src 'none'",
  ...["script-src", "style-src", "img-src", "connect-src"].map((name) => `${name} 'self'`),
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
  ...["base-uri", "form-action", "frame-ancestors"].map((name) => `${name} 'none'`),
].join("; ");

// Pages of other origins, also those on another port of the host, may neither read nor open any of it.
const OWN = { "cross-origin-resource-policy": "same-origin" };
const HTML = "text/html; charset=utf-8";
const PAGE = {
  ...OWN,
  "cache-control": "no-cache",
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  // With `no-referrer` browsers may send `Origin: null` to the session.
  "referrer-policy": "same-origin",
};
/** Assets are named after their content. */
const KEPT = { ...OWN, "cache-control": "public, max-age=31536000, immutable" };

const types: Readonly<Record<string, { readonly type: string; readonly headers?: Readonly<Record<string, string>> }>> =
  {
    css: { type: "text/css; charset=utf-8" },
    js: { type: "text/javascript; charset=utf-8" },
    svg: {
      type: "image/svg+xml",
      headers: { "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'" },
    },
  };

/** Marks a browser that was redirected to the base URL within the last minute. */
const REDIRECTED = "arbor-console-redirected";

/** Whether the build has written the console. */
export function isConsoleBuilt(folder: URL = FOLDER): boolean {
  return listAssets(folder).length > 0;
}

/** Creates the routes. */
export function createConsole({ baseUrl, folder = FOLDER }: ConsoleOptions): RouteGroup {
  const own = new URL(baseUrl);
  let assets: ReadonlyMap<string, StaticDocument> | undefined;
  let page: StaticDocument | undefined;

  // The sign-in of a page at another spelling of the host could not end there. A proxy may pass on another host than the
  // browser's; the cookie, which is that of the browser's host, then ends the redirects.
  function isElsewhere({ fields, method }: Request): boolean {
    const host = fields[":authority"] ?? fields.host;
    if (host === undefined || (method !== "GET" && method !== "HEAD")) return false;
    if (new URL(`${own.protocol}//${host}`).host === own.host) return false;
    return !(fields.cookie ?? "").includes(`${REDIRECTED}=`);
  }

  return {
    paths: [CONSOLE_PATH, `${CONSOLE_PATH}/*`],
    handle(request, path) {
      if (path === CONSOLE_SESSION_PATH || !`${path}/`.startsWith(`${CONSOLE_PATH}/`)) return false;
      if (path.startsWith(ASSETS)) {
        assets ??= new Map(listAssets(folder).map((name) => [ASSETS + name, createAsset(name, folder)]));
        return answerWith(assets.get(path), request);
      }
      if (isElsewhere(request)) {
        sendEmpty(request, 307, {
          location: own.origin + request.url,
          "cache-control": "no-store",
          "set-cookie": `${REDIRECTED}=1; Path=${CONSOLE_PATH}; Max-Age=60; HttpOnly; SameSite=Lax`,
        });
        return true;
      }
      page ??= createPage(folder);
      return answerWith(page, request);
    },
  };
}

function createPage(folder: URL): StaticDocument {
  if (!isConsoleBuilt(folder)) return NOT_BUILT;
  return createStaticDocument({ contentType: HTML, headers: PAGE, ...filesOf(new URL("index.html", folder)) });
}

function createAsset(name: string, folder: URL): StaticDocument {
  const { type = "", headers } = typeOf(name) ?? {};
  const files = filesOf(new URL(`assets/${name}`, folder));
  return createStaticDocument({ contentType: type, headers: { ...KEPT, ...headers }, ...files });
}

// Their compressed forms are beside the files.
function filesOf(file: URL) {
  return {
    load: () => readFileSync(file),
    loadEncoded: (coding: "br" | "gzip") => readFileSync(new URL(`${file}.${coding === "br" ? "br" : "gz"}`)),
  };
}

/** The names of the assets; none if the console is not built. */
function listAssets(folder: URL): string[] {
  try {
    return readdirSync(new URL("assets/", folder)).filter((name) => typeOf(name) !== undefined);
  } catch {
    return [];
  }
}

function typeOf(name: string) {
  const ending = name.slice(name.lastIndexOf(".") + 1);
  return Object.hasOwn(types, ending) ? types[ending] : undefined;
}

const NOT_BUILT = createStaticDocument({
  contentType: HTML,
  headers: PAGE_HEADERS,
  load: () =>
    formatPage(
      "Arbor: console",
      `<h1>Console</h1>
<p>This checkout has not been built: <code>npm run build</code> writes the console. Its sources are in
<code>console/</code>.</p>
<p><a href="/">Arbor</a></p>`,
    ),
});
