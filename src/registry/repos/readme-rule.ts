// What a readme may hold. A renderer of Markdown passes HTML through as it
// stands, code blocks aside, and renderers differ in where those end: so the
// rule looks at the whole text and refuses what could do harm anywhere in it.
import type { FieldRule } from "../../pipeline/resource/rules.js";
import { isText } from "./repo-rules.js";

/** How long a readme is at most, in characters. */
const MAX_README = 256 * 1024;
/** The largest request that changes a readme, in bytes. */
export const MAX_README_REQUEST = 512 * 1024;

// What runs, loads, submits or changes how the rest is read.
const HARMFUL = new Set(
  `applet audio base bdi body button dialog embed fieldset form frame frameset head html iframe input isindex link
  listing marquee math meta noembed noframes noscript object option param plaintext portal select slot source style
  script svg template textarea title track video xmp`.split(/\s+/),
);
// A tag, an autolink, a comment or anything else that a renderer takes for HTML.
const MARKUP = /<(?=[a-z/!?])(?:[^<>]*>)?/gi;
const COMMENT = /<!--[^<>]*-->/g;
const PLAIN_TAG = /^<\/?([a-z][a-z0-9-]*)\s*\/?>$/i;
const AUTOLINK = /^<(?:https?:|mailto:)[^\s<>]*>$|^<[\w.+-]+@[\w.-]+>$/i;
const SAFE_TAG =
  /^<(?:a|code|img|p|div|h[1-6])(?:\s+(?:(?:alt|title)="[^"<>]*"|(?:width|height)="[0-9]+%?"|align="[a-z]+"|class="language-[\w-]+"|(?:href|src)="(?:https?:\/\/|mailto:|#|\.{0,2}\/)[^"<>\s]*"))*\s*\/?>$/i;
const HARMFUL_SCHEME = /(?:javascript|vbscript|livescript):|data:(?:text|image\/svg|application)/;

/** The rule for readmes: Markdown whose HTML does nothing by itself. */
export const isReadme: FieldRule = (value, field) => {
  const text = String(value);
  if (text.length > MAX_README) return `${field} must be at most ${MAX_README} characters`;
  if (!isText(text)) return `${field} must not contain control characters`;
  return isHarmless(text) ? undefined : `${field} must not contain unsafe HTML`;
};

function isHarmless(text: string): boolean {
  const tags = text.replace(COMMENT, "").match(MARKUP) ?? [];
  return tags.every(isHarmlessTag) && !HARMFUL_SCHEME.test(asRead(text));
}

function isHarmlessTag(tag: string): boolean {
  const plain = PLAIN_TAG.exec(tag);
  if (plain) return !HARMFUL.has(plain[1]?.toLowerCase() ?? "");
  return AUTOLINK.test(tag) || SAFE_TAG.test(tag);
}

// As a browser reads the address of a link: without what it skips, character references resolved.
function asRead(text: string): string {
  return text
    .replace(/&#x([0-9a-f]{1,6});?/gi, (_, digits: string) => character(Number.parseInt(digits, 16)))
    .replace(/&#([0-9]{1,7});?/g, (_, digits: string) => character(Number(digits)))
    .replace(/&(?:tab|newline);/gi, "")
    .replace(/&colon;/gi, ":")
    .replace(/[\s\\\p{Cc}]/gu, "")
    .toLowerCase();
}

function character(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : "";
}
