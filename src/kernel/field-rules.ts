// The rules for the values of single fields. The service applies them to requests, and the command line to files before it
// sends any request.
import { type BrokenRule, breakRule } from "./errors.js";

/** Validates the value of a field, whose path is given: undefined, or the rule that it breaks. */
export type FieldRule = (value: unknown, field: string) => BrokenRule | undefined;

const NAME = /^[a-z0-9 ._-]{1,}$/;
const MAX_NAME = 1_000;
const MAX_DESCRIPTION = 512;
// Control characters, halves of surrogate pairs, line and paragraph separators.
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * Describes the rule that a text breaks which must be there and match a pattern. The text of the rule is part of the
 * API (docs/api-rules.md#errors), and it is the same for a value that is missing.
 */
export function breakPattern(value: unknown, field: string, rule: string): BrokenRule {
  return { ...breakRule(field, rule), isMissing: value === undefined || value === "" };
}

/** The rule for names. */
export const isName: FieldRule = (value, field) => {
  if (typeof value !== "string" || !NAME.test(value)) return breakPattern(value, field, `must match ${NAME.source}`);
  return value.length > MAX_NAME ? breakRule(field, `must be at most ${MAX_NAME} characters`) : undefined;
};

/** The rule for descriptions: one line of at most 512 characters, possibly empty. */
export const isDescription: FieldRule = (value, field) => {
  if (typeof value !== "string" || !isPrintable(value)) return breakRule(field, "must not contain control characters");
  return value.length > MAX_DESCRIPTION && [...value].length > MAX_DESCRIPTION
    ? breakRule(field, `must be at most ${MAX_DESCRIPTION} characters`)
    : undefined;
};

/** Whether `text` has no control characters and no halves of surrogate pairs. Databases reject some of them. */
export function isPrintable(text: string): boolean {
  return !UNPRINTABLE.test(text);
}

const MAX_ISSUER = 255;

/**
 * Whether `text` has the form of an issuer (OpenID Connect Discovery 1.0, section 3): a URL of a host and
 * perhaps a path. It must be spelled as URLs are normalized, because issuers are compared byte by byte.
 */
export function isIssuerUrl(text: string): boolean {
  const url = text.length <= MAX_ISSUER && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.href !== text && url.href !== `${text}/`)) return false;
  if (url.protocol !== "https:" && url.protocol !== "http:") return false;
  // Parsers of URLs disagree about escaped control characters and empty segments.
  return (
    url.username === "" && url.password === "" && !/[?#]|%[01][0-9a-f]|%7f/i.test(text) && !url.pathname.includes("//")
  );
}

const MAX_SINK = 2_048;
// The authority, then the characters that RFC 3986, section 2 allows in a URL, without the `#` of a fragment.
const HTTPS_URL = /^https:\/\/([^/?]+)[\w.~:/?[\]@!$&'()*+,;=%-]*$/i;

/**
 * The rule for sinks: an https URL of at most 2048 characters without user and fragment. The host is
 * not resolved, because its address may change before an event is sent.
 */
export const isSink: FieldRule = (value, field) => {
  if (typeof value !== "string" || value === "") return breakRule(field, "is required");
  const authority = value.length <= MAX_SINK ? HTTPS_URL.exec(value)?.[1]?.toLowerCase() : undefined;
  const host = authority !== undefined && URL.canParse(value) ? new URL(value).host : undefined;
  // URL parsers normalize some hosts, such as 0x7f.1, so the host must be normalized already.
  if (host !== undefined && (authority === host || authority === `${host}:443`)) return undefined;
  return breakRule(field, `must be an https URL of at most ${MAX_SINK} characters without user or fragment`);
};
