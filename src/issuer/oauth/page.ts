// The layout of every page. Pages have no script and load nothing, are readable on small screens and in dark mode, and
// work with keyboard and screen reader.
import { sha256 } from "../../kernel/digest.js";
import type { WebResponse } from "../../kernel/web.js";
import { Html, html } from "./html.js";

const STYLE = `
:root { color-scheme: light dark; --back: #f3f5f8; --card: #fff; --text: #1a1f26; --soft: #525c69; --line: #7b8694;
  --main: #0a56a6; --on-main: #fff; --mark: #0a56a6 }
@media (prefers-color-scheme: dark) { :root { --back: #12161b; --card: #1c2229; --text: #e9edf2; --soft: #aab4c0;
  --line: #7f8b99; --main: #8fc1ff; --on-main: #08213d; --mark: #8fc1ff } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: flex; flex-direction: column; align-items: center;
  padding: clamp(1rem, 8vh, 5rem) 1rem 2rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
main { width: 100%; max-width: 27rem; background: var(--card); padding: clamp(1.25rem, 5vw, 2rem);
  border-radius: .75rem; box-shadow: 0 1px 3px rgb(0 0 0 / .2), 0 8px 24px rgb(0 0 0 / .06) }
header, footer { width: 100%; max-width: 27rem; padding: 0 .25rem; color: var(--soft); overflow-wrap: anywhere }
header { margin-bottom: .75rem; font-weight: 600; letter-spacing: .02em }
footer { margin-top: .75rem; font-size: .875rem }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25 }
h2 { margin: 1.75rem 0 .5rem; font-size: 1.0625rem }
p { margin: 0 0 1rem; overflow-wrap: anywhere }
dl { margin: 0 0 1.25rem; display: grid; grid-template-columns: max-content 1fr; gap: .375rem 1rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere; font-weight: 600 }
label { display: block; margin-bottom: .25rem; font-weight: 600; overflow-wrap: anywhere }
.hint { margin: 0 0 .5rem; color: var(--soft); font-size: .9375rem }
.whole { white-space: nowrap }
.hint.after { margin: 1rem 0 0 }
input[type=text], select { width: 100%; min-height: 3rem; padding: .5rem .75rem; margin: 0 0 1rem; color: inherit;
  background: transparent; border: 1px solid var(--line); border-radius: .5rem; font: inherit }
select { background: var(--card) }
input.code { font: 600 1.375rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  letter-spacing: .12em; text-transform: uppercase }
.choices { list-style: none; margin: 0; padding: 0; display: grid; gap: .625rem }
.button { display: block; width: 100%; min-height: 3rem; padding: .6875rem 1rem; text-align: center; cursor: pointer;
  border: 1px solid var(--main); border-radius: .5rem; background: var(--main); color: var(--on-main);
  font: inherit; font-weight: 600; text-decoration: none; overflow-wrap: anywhere }
.button.plain { background: transparent; color: var(--main) }
.button:hover { text-decoration: underline }
.buttons { display: grid; grid-template-columns: 1fr 1fr; gap: .625rem }
details { margin: 0 0 1.25rem }
summary { min-height: 2.75rem; padding: .5rem 0; color: var(--main); font-weight: 600; cursor: pointer }
.rights { margin: 0; padding: 0 0 0 1.25rem; columns: 11rem; font-size: .9375rem }
.rights li { overflow-wrap: anywhere }
.note { color: var(--soft); font-weight: 400 }
.wrong { margin: 0 0 1rem; padding: .5rem .75rem; border-left: .25rem solid currentcolor; font-weight: 600 }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px }
`;

const STYLE_HASH = sha256(STYLE).toString("base64");

// Some browsers apply form-action to every redirect that follows a form. So no form leads to a provider, and a form
// whose response redirects to a program on the same machine names its origin. The policy has no notation for IPv6
// addresses.
function securityPolicy(formLeadsTo: string | undefined): string {
  const program = formLeadsTo === undefined ? undefined : new URL(formLeadsTo);
  const origin = program?.hostname.startsWith("[") ? "http:" : program?.origin;
  return [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    origin === undefined ? "form-action 'self'" : `form-action 'self' ${origin}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join("; ");
}

/** Header fields of responses with secrets in the body or in the Location. */
const PRIVATE_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

export interface HtmlPage {
  readonly title: string;
  /** The content below the title. */
  readonly body: Html;
  /** The host name of this service, such as `iam.example.com`. */
  readonly host: string;
  /** The default is 200. */
  readonly status?: number;
  /** The Set-Cookie header, where there is one. */
  readonly cookie?: string | undefined;
  /** The URL of the program that the response to the page's form redirects to, if any. */
  readonly formLeadsTo?: string | undefined;
  /** The Retry-After header, in seconds. */
  readonly retryAfterS?: number | undefined;
}

export function renderPage({
  title,
  body,
  host,
  status = 200,
  cookie,
  formLeadsTo,
  retryAfterS,
}: HtmlPage): WebResponse {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} - ${host}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<header>${host}</header>
<main>
<h1>${title}</h1>
${body}
</main>
<footer>Arbor</footer>
</body>
</html>
`;
  return {
    status,
    headers: {
      ...PRIVATE_HEADERS,
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": securityPolicy(formLeadsTo),
      "x-frame-options": "DENY",
      ...(cookie !== undefined && { "set-cookie": cookie }),
      ...(retryAfterS !== undefined && { "retry-after": String(retryAfterS) }),
    },
    body: document.markup,
  };
}

/** Builds a redirect that browsers follow with GET, also after a POST. */
export function redirect(location: string, cookie?: string): WebResponse {
  return {
    status: 303,
    headers: { ...PRIVATE_HEADERS, location, ...(cookie !== undefined && { "set-cookie": cookie }) },
  };
}
