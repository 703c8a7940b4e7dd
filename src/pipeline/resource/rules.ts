import { breakRule, invalidArgument } from "../../kernel/errors.js";
import type { FieldRule } from "../../kernel/field-rules.js";
import { isUidp } from "../../kernel/uidp.js";

export {
  breakPattern,
  type FieldRule,
  isDescription,
  isIssuerUrl,
  isName,
  isPrintable,
} from "../../kernel/field-rules.js";

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

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

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
