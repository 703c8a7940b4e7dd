// `/` for people who open the service in a browser, and `/version`. Both need no authentication and contain nothing
// about the installation but its version.
import { sha256 } from "../../kernel/digest.js";
import { CONSOLE_PATH } from "../../kernel/web.js";
import { prefersJson } from "../http/content-negotiation.js";
import type { RouteGroup } from "../http/health-routes.js";
import type { Request } from "../http/request.js";
import { answerWith, createStaticDocument, type StaticDocument } from "../http/static-document.js";

/** The path of the version. */
export const VERSION_PATH = "/version";

export interface HomeOptions {
  readonly version: string;
  /** Whether the console is served. */
  readonly hasConsole: boolean;
  /** Whether a mounted service answers `/`. */
  readonly isRootTaken: boolean;
}

interface Link {
  readonly href: string;
  readonly name: string;
  readonly what: string;
}

const CONSOLE: Link = {
  href: CONSOLE_PATH,
  name: "Console",
  what: "organisations, people and their access, in the browser",
};
const links: readonly Link[] = [
  {
    href: "/docs/",
    name: "Documentation",
    what: "how to start, tasks, reference and operation, of the version that runs",
  },
  { href: "/docs/api", name: "API reference", what: "every operation over REST, with a form to try it" },
  { href: "/openapi.json", name: "OpenAPI document", what: "the same for programs" },
  { href: "/.well-known/openid-configuration", name: "Discovery", what: "the issuer of API tokens" },
  { href: "/healthz", name: "Health", what: "whether the service runs" },
  { href: "/readyz", name: "Readiness", what: "whether it can serve" },
  { href: VERSION_PATH, name: "Version", what: "which version runs" },
];

const STYLE = `
:root { color-scheme: light dark; --back: #f3f5f8; --card: #fff; --text: #1a1f26; --soft: #525c69; --main: #0a56a6 }
@media (prefers-color-scheme: dark) { :root { --back: #12161b; --card: #1c2229; --text: #e9edf2; --soft: #aab4c0;
  --main: #8fc1ff } }
* { box-sizing: border-box }
body { margin: 0; padding: clamp(1rem, 8vh, 5rem) 1rem 2rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
main { max-width: 36rem; margin: 0 auto; padding: clamp(1.25rem, 5vw, 2rem); background: var(--card);
  border-radius: .75rem; box-shadow: 0 1px 3px rgb(0 0 0 / .2), 0 8px 24px rgb(0 0 0 / .06) }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25 }
p { margin: 0 0 1rem }
dl { margin: 0 0 1.25rem }
dd { margin: 0 0 .75rem; color: var(--soft) }
a { color: var(--main); font-weight: 600 }
a:focus-visible { outline: 3px solid var(--main); outline-offset: 2px }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${sha256(STYLE).toString("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Formats a page that needs nothing but its own style. @param content HTML */
export function formatPage(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`;
}

// The links are relative, because a proxy may serve all paths below a prefix.
const formatHome = (shown: readonly Link[]) =>
  formatPage(
    "Arbor",
    `<h1>Arbor</h1>
<p>A platform API: organisations, identities, roles and access, over gRPC, Connect and REST on this address.</p>
<dl>
${shown.map(({ href, name, what }) => `<dt><a href="${href.slice(1)}">${name}</a></dt>\n<dd>${what}</dd>`).join("\n")}
</dl>`,
  );

const FRESH = { "cache-control": "no-cache" };
/** The header fields of such a page. */
export const PAGE_HEADERS = { ...FRESH, "content-security-policy": POLICY, "referrer-policy": "no-referrer" };
const CHOSEN = { vary: "accept" };

/** Creates the routes. */
export function createHomeRoutes({
  version,
  hasConsole,
  isRootTaken,
}: HomeOptions): RouteGroup & { readonly paths: readonly string[] } {
  const shown = hasConsole ? [CONSOLE, ...links] : links;
  const json = (value: object, headers: Readonly<Record<string, string>>) =>
    createStaticDocument({ contentType: "application/json", headers, load: () => JSON.stringify(value) });
  const page = createStaticDocument({
    contentType: "text/html; charset=utf-8",
    headers: { ...PAGE_HEADERS, ...CHOSEN },
    load: () => formatHome(shown),
  });
  const list = json(Object.fromEntries(shown.map(({ href, name }) => [toKey(name), href])), {
    ...FRESH,
    ...CHOSEN,
  });
  const versionJson = json({ version }, FRESH);

  function findDocument(path: string, request: Request): StaticDocument | undefined {
    if (path === VERSION_PATH) return versionJson;
    if (path !== "/" || isRootTaken) return undefined;
    return prefersJson(request.fields.accept) ? list : page;
  }

  return {
    paths: isRootTaken ? [VERSION_PATH] : [VERSION_PATH, "/"],
    handle(request, path) {
      return answerWith(findDocument(path, request), request);
    },
  };
}

// `API reference` becomes `apiReference`.
function toKey(name: string): string {
  const [first = "", ...rest] = name.split(" ");
  return [first.toLowerCase(), ...rest.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`)].join("");
}
