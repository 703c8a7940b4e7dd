// The credentials of operations. Nearly all take an API token; those that issue one take another credential.
import type { MethodEntry } from "../../pipeline/method-table.js";
import type { Schema } from "./value-schema.js";

const API_TOKEN = "bearer";
const FOREIGN_TOKEN = "foreignToken";
const REFRESH_TOKEN = "refreshToken";

// Methods that authenticate their callers themselves declare no credential in their options.
const OTHER_BEARERS: Readonly<Record<string, string>> = {
  "chainguard.platform.auth.Auth.Register": FOREIGN_TOKEN,
  "chainguard.platform.oidc.SecurityTokenService.Exchange": FOREIGN_TOKEN,
  "chainguard.platform.oidc.SecurityTokenService.ExchangeRefreshToken": REFRESH_TOKEN,
};

const schemes: Readonly<Record<string, Schema>> = {
  [API_TOKEN]: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "An API token, such as `arbor auth token` prints or `/sts/exchange` answers with.",
  },
  [FOREIGN_TOKEN]: {
    type: "http",
    scheme: "bearer",
    description:
      "What proves who its bearer is: an OIDC token of another issuer, or for an identity of AWS a signed request, in " +
      "base64url.",
  },
  [REFRESH_TOKEN]: {
    type: "http",
    scheme: "bearer",
    description: "The refresh token of a login. Each is good once.",
  },
};

/** The security of operations unless they have their own. */
export const defaultSecurity: Schema[] = [{ [API_TOKEN]: [] }];

/** Builds the `security` of an operation, if it is not {@link defaultSecurity}. */
export function buildSecurity(entry: MethodEntry): { security?: Schema[] } {
  const name = schemeOf(entry);
  if (name === API_TOKEN) return {};
  return { security: name === undefined ? [] : [{ [name]: [] }] };
}

/** Builds the security schemes of `entries`, by name (OpenAPI 3.1, "Security Scheme Object"). */
export function buildSecuritySchemes(entries: readonly MethodEntry[]): Record<string, Schema> {
  const used = new Set([API_TOKEN, ...entries.map(schemeOf)]);
  return Object.fromEntries(Object.entries(schemes).filter(([name]) => used.has(name)));
}

// Undefined for methods without authentication.
function schemeOf({ auth, desc }: MethodEntry): string | undefined {
  return OTHER_BEARERS[`${desc.parent.typeName}.${desc.name}`] ?? (auth.mode === "guarded" ? API_TOKEN : undefined);
}
