// What operations take for the bearer of a call. Nearly all take an API token;
// those that lead to one take what proves who asks for it.
import type { MethodEntry } from "../../pipeline/method-table.js";
import type { Schema } from "./value-schema.js";

const API_TOKEN = "bearer";
const FOREIGN_TOKEN = "foreignToken";
const REFRESH_TOKEN = "refreshToken";

// Methods that authenticate their callers by themselves have no option that says by what.
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

/** What operations need unless they say otherwise. */
export const defaultSecurity: Schema[] = [{ [API_TOKEN]: [] }];

/** The `security` of an operation, where it is not {@link defaultSecurity}. */
export function buildSecurity(entry: MethodEntry): { security?: Schema[] } {
  const name = schemeOf(entry);
  if (name === API_TOKEN) return {};
  return { security: name === undefined ? [] : [{ [name]: [] }] };
}

/** The ways to say who calls that any of `entries` takes, by name (OpenAPI 3.1, "Security Scheme Object"). */
export function buildSecuritySchemes(entries: readonly MethodEntry[]): Record<string, Schema> {
  const used = new Set([API_TOKEN, ...entries.map(schemeOf)]);
  return Object.fromEntries(Object.entries(schemes).filter(([name]) => used.has(name)));
}

// Undefined for what is open to everybody.
function schemeOf({ auth, desc }: MethodEntry): string | undefined {
  return OTHER_BEARERS[`${desc.parent.typeName}.${desc.name}`] ?? (auth.mode === "guarded" ? API_TOKEN : undefined);
}
