// Renderers of Markdown pass HTML through, code blocks aside, and they differ in where a code block ends. So the
// rule for readmes looks at the whole text and rejects HTML that could do harm anywhere in it.
import { breakRule } from "../../kernel/errors.js";
import type { FieldRule } from "../../pipeline/resource/rules.js";
import { isText } from "./repo-rules.js";

/** The longest readme, in characters. */
const MAX_README = 256 * 1024;
/** The largest request that changes a readme, in bytes. */
export const MAX_README_REQUEST = 512 * 1024;

// Elements that run code, load or submit something, or change how the rest is parsed.
const HARMFUL = new Set(
  `applet audio base bdi body button dialog embed fieldset form frame frameset head html iframe input isindex link
  listing marquee math meta noembed noframes noscript object option param plaintext portal select slot source style
  script svg template textarea title track video xmp`.split(/\s+/),
);
// A tag, an autolink, a comment and anything else that a renderer parses as HTML.
const MARKUP = /<(?=[a-z/!?])(?:[^<>]*>)?/gi;
const COMMENT = /<!--[^<>]*-->/g;
const PLAIN_TAG = /^<\/?([a-z][a-z0-9-]*)\s*\/?>$/i;
const AUTOLINK = /^<(?:https?:|mailto:)[^\s<>]*>$|^<[\w.+-]+@[\w.-]+>$/i;
const SAFE_TAG =
  /^<(?:a|code|img|p|div|h[1-6])(?:\s+(?:(?:alt|title)="[^"<>]*"|(?:width|height)="[0-9]+%?"|align="[a-z]+"|class="language-[\w-]+"|(?:href|src)="(?:https?:\/\/|mailto:|#|\.{0,2}\/)[^"<>\s]*"))*\s*\/?>$/i;
const HARMFUL_SCHEME = /(?:javascript|vbscript|livescript):|data:(?:text|image\/svg|application)/;

/** The rule for readmes: Markdown with harmless HTML. */
export const isReadme: FieldRule = (value, field) => {
  const text = String(value);
  if (text.length > MAX_README) return breakRule(field, `must be at most ${MAX_README} characters`);
  if (!isText(text)) return breakRule(field, "must not contain control characters");
  return isHarmless(text) ? undefined : breakRule(field, "must not contain unsafe HTML");
};

function isHarmless(text: string): boolean {
  const tags = text.replace(COMMENT, "").match(MARKUP) ?? [];
  return tags.every(isHarmlessTag) && !HARMFUL_SCHEME.test(normalizeLinks(text));
}

function isHarmlessTag(tag: string): boolean {
  const plain = PLAIN_TAG.exec(tag);
  if (plain) return !HARMFUL.has(plain[1]?.toLowerCase() ?? "");
  return AUTOLINK.test(tag) || SAFE_TAG.test(tag);
}

// Normalizes as a browser does with the address of a link: white space removed, character references resolved.
function normalizeLinks(text: string): string {
  return text
    .replace(/&#x([0-9a-f]{1,6});?/gi, (_, digits: string) => decodeCharacter(Number.parseInt(digits, 16)))
    .replace(/&#([0-9]{1,7});?/g, (_, digits: string) => decodeCharacter(Number(digits)))
    .replace(/&(?:tab|newline);/gi, "")
    .replace(/&colon;/gi, ":")
    .replace(/[\s\\\p{Cc}]/gu, "")
    .toLowerCase();
}

function decodeCharacter(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : "";
}
