import { type BrokenRule, breakRule, invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";

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

/** The rule for fields without rules of their own. */
export const isAnything: FieldRule = () => undefined;

/** The rule for fields that must hold a uid. */
export const isRequiredUid: FieldRule = (value, field) => {
  if (typeof value !== "string" || value === "") return breakRule(field, "is required");
  return isUidp(value) ? undefined : breakRule(field, "must be a uid, such as the service assigns");
};

/** The rule for fields that may hold a uid. */
export const isOptionalUid: FieldRule = (value, field) => (value === "" ? undefined : isRequiredUid(value, field));

/**
 * Makes sure that the field of a filter is a uid, or empty for no filter, and returns it.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireUidFilter(field: string, value: string): string {
  const broken = isOptionalUid(value, field);
  if (broken !== undefined) throw invalidArgument({ ...broken, field });
  return value;
}

const MAX_ISSUER = 255;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

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

/**
 * Makes sure that the keys of an issuer are fetched over https. Cleartext is allowed on this machine and for
 * origins that the operator trusts.
 *
 * @param trustedOrigins origins of issuers that may be http
 * @param field the field that has the issuer
 * @throws ApiError INVALID_ARGUMENT naming `field`
 */
export function requireSecureIssuer(issuer: string, field: string, trustedOrigins: readonly string[]): void {
  const { protocol, hostname, origin } = new URL(issuer);
  if (protocol === "https:" || LOOPBACK.has(hostname) || trustedOrigins.includes(origin)) return;
  throw invalidArgument({
    ...breakRule(`${field}.issuer`, "must be an https URL without user, query or fragment"),
    field,
  });
}
