// `/docs/`: the documentation as a site, which every package contains, so that it can be read without internet access and
// matches the running version. The build writes its files (site/build.mjs); each is read and compressed at its first
// request, and then sent from memory.
import { readdirSync, readFileSync } from "node:fs";
import { prefersHtml } from "../http/content-negotiation.js";
import type { RouteGroup } from "../http/health-routes.js";
import type { Request } from "../http/request.js";
import { sendBody, sendEmpty } from "../http/send.js";
import { answerWith, createStaticDocument, type StaticDocument } from "../http/static-document.js";
import { formatPage, PAGE_HEADERS } from "./home.js";

/** The path of the documentation. */
export const SITE_PATH = "/docs/";
/** Where the pages were as text. */
const FORMER = "/docs/guide";
const FOLDER = new URL("../../../dist/site/", import.meta.url);

const POLICY = [
  "default-src 'none'",
  ...["script-src", "style-src", "img-src"].map((name) => `${name} 'self'`),
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
const HTML = "text/html; charset=utf-8";
const HTML_HEADERS = { "content-security-policy": POLICY, "referrer-policy": "no-referrer" };
const FRESH = { "cache-control": "no-cache" };
/** Files below assets/ are named after their content. */
const KEPT = { "cache-control": "public, max-age=31536000, immutable" };

const types: Readonly<Record<string, { readonly type: string; readonly headers?: Readonly<Record<string, string>> }>> =
  {
    html: { type: HTML, headers: HTML_HEADERS },
    css: { type: "text/css; charset=utf-8" },
    js: { type: "text/javascript; charset=utf-8" },
    json: { type: "application/json" },
    // A picture has its own style, and nothing else.
    svg: {
      type: "image/svg+xml",
      headers: { "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'" },
    },
    webp: { type: "image/webp" },
  };

/** The page for addresses that do not exist. Its links are relative to that of the documentation. */
const NOT_FOUND = "404.html";
const RELATIVE_LINK = /\b(href|src|data-root)="(?!#|[a-z]+:)/g;
/** A deeper path is no address that a person opened, and the links of the page would be as long as the path. */
const MOST_SEGMENTS = 16;

/** The documentation, and the page for addresses that do not exist. */
export interface Site extends RouteGroup {
  /**
   * Answers a browser that asks for a path that is not served.
   *
   * @returns whether it answered: not for programs, nor if the site is not built
   */
  sendNotFound(request: Request, path: string): boolean;
}

/**
 * Creates the routes.
 *
 * @param folder the files of the site; without it `/docs/` says how to build it
 */
export function createSite(folder: URL = FOLDER): Site {
  let notFound: string | undefined;
  let files: ReadonlyMap<string, StaticDocument> | undefined;

  function readFiles(): ReadonlyMap<string, StaticDocument> {
    const found = listFiles(folder).map((name): [string, StaticDocument] => [
      SITE_PATH + name,
      createFile(name, folder),
    ]);
    const index = new Map(found).get(`${SITE_PATH}index.html`) ?? NOT_BUILT;
    const readable = found.filter(([path]) => path !== SITE_PATH + NOT_FOUND);
    return new Map([...readable, [SITE_PATH, index]]);
  }

  function readNotFound(): string {
    try {
      return readFileSync(new URL(NOT_FOUND, folder), "utf8");
    } catch {
      return "";
    }
  }

  return {
    paths: [SITE_PATH.slice(0, -1), `${SITE_PATH}*`],
    handle(request, path) {
      if (!`${path}/`.startsWith(SITE_PATH)) return false;
      files ??= readFiles();
      const { method } = request;
      const target = redirectOf(path, files);
      if (target === undefined || (method !== "GET" && method !== "HEAD"))
        return answerWith(files.get(target === undefined ? path : SITE_PATH), request);
      sendEmpty(request, 308, { location: target, ...FRESH });
      return true;
    },
    sendNotFound(request, path) {
      const { method, fields } = request;
      const depth = path.split("/").length - 2;
      const isRead = method === "GET" || method === "HEAD";
      if (!isRead || depth > MOST_SEGMENTS || !prefersHtml(fields.accept)) return false;
      notFound ??= readNotFound();
      if (notFound === "") return false;
      // Relative, because a proxy may serve all paths below one of its own.
      const root = "../".repeat(depth) + SITE_PATH.slice(1);
      const page = Buffer.from(notFound.replace(RELATIVE_LINK, `$1="${root}`));
      const headers = { ...HTML_HEADERS, "cache-control": "no-store", vary: "accept" };
      if (method === "GET") sendBody(request, 404, HTML, page, headers);
      else {
        const described = { "content-type": HTML, "content-length": page.length, "x-content-type-options": "nosniff" };
        sendEmpty(request, 404, { ...headers, ...described });
      }
      return true;
    },
  };
}

// Relative, because a proxy may serve all paths below one of its own.
function redirectOf(path: string, files: ReadonlyMap<string, StaticDocument>): string | undefined {
  if (`${path}/` === SITE_PATH) return "docs/";
  if (path === FORMER) return "./";
  if (!path.startsWith(`${FORMER}/`)) return undefined;
  const name = path.slice(FORMER.length + 1);
  const page = name.replace(/\.md$/, ".html");
  if (name !== "" && !files.has(SITE_PATH + page)) return undefined;
  return "../".repeat(name.split("/").length) + page;
}

/** The files below a folder; empty if there is none. */
function listFiles(folder: URL): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, encoding: "utf8" });
    return entries.map((name) => name.replaceAll("\\", "/")).filter((name) => typeOf(name) !== undefined);
  } catch {
    return [];
  }
}

function typeOf(name: string) {
  const ending = name.slice(name.lastIndexOf(".") + 1);
  return Object.hasOwn(types, ending) ? types[ending] : undefined;
}

function createFile(name: string, folder: URL): StaticDocument {
  const { type = "", headers } = typeOf(name) ?? {};
  return createStaticDocument({
    contentType: type,
    headers: { ...headers, ...(name.startsWith("assets/") ? KEPT : FRESH) },
    load: () => readFileSync(new URL(name, folder)),
  });
}

const NOT_BUILT = createStaticDocument({
  contentType: HTML,
  headers: PAGE_HEADERS,
  load: () =>
    formatPage(
      "Arbor: documentation",
      `<h1>Documentation</h1>
<p>This checkout has not been built: <code>npm run build</code> writes the documentation. Its sources are in
<code>docs/</code>.</p>
<p><a href="api">API</a></p>`,
    ),
});
