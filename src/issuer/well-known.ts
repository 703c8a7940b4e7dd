// What others need to trust the tokens of this service: OpenID Connect
// Discovery 1.0, section 4, and the public keys (RFC 7517, section 5).
import { createHash } from "node:crypto";
import { publicPage, type WebAnswer, type WebRequest, type WebRoutes } from "../kernel/web.js";
import type { KeyRing } from "./keys/key-ring.js";

/** What the documents are made of. */
export interface WellKnownOptions {
  readonly keys: Pick<KeyRing, "published" | "refresh">;
  /** Who issues the tokens, asked each time: the address may be known late. */
  readonly issuer: () => string;
  /** How long others may keep the documents, in seconds. */
  readonly maxAgeS: number;
}

/** Where the public keys are, behind the issuer. */
const JWKS_PATH = "/.well-known/jwks.json";

/** The routes of both documents, open to scripts of all origins. */
export function wellKnownRoutes({ keys, issuer, maxAgeS }: WellKnownOptions): WebRoutes {
  const cacheControl = `public, max-age=${maxAgeS}`;
  return [
    publicPage("/.well-known/openid-configuration", (request) =>
      document(request, "application/json", discovery(issuer()), cacheControl),
    ),
    publicPage(JWKS_PATH, async (request) => {
      // Nobody may be given for another max-age what was changed meanwhile: then a new key would
      // be used before all have seen it. Without the store nothing is given at all.
      await keys.refresh();
      return document(request, "application/jwk-set+json", { keys: keys.published() }, cacheControl);
    }),
  ];
}

function discovery(issuer: string): object {
  return {
    issuer,
    jwks_uri: `${issuer}${JWKS_PATH}`,
    authorization_endpoint: `${issuer}/oauth`,
    token_endpoint: `${issuer}/oauth/token`,
    device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
    response_types_supported: ["code"],
    grant_types_supported: [
      "authorization_code",
      "refresh_token",
      "urn:ietf:params:oauth:grant-type:device_code",
      "urn:ietf:params:oauth:grant-type:token-exchange",
    ],
    code_challenge_methods_supported: ["S256"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256"],
    token_endpoint_auth_methods_supported: ["none"],
    // RFC 9207: the answer of a login says who gives it.
    authorization_response_iss_parameter_supported: true,
    scopes_supported: ["openid"],
    claims_supported: ["iss", "sub", "aud", "iat", "exp", "jti", "act", "cap", "email", "email_verified", "upstream"],
  };
}

function document(request: WebRequest, type: string, content: object, cacheControl: string): WebAnswer {
  const body = JSON.stringify(content);
  const etag = tagOf(type, body);
  const headers = { "cache-control": cacheControl, etag, "access-control-allow-origin": "*" };
  if (isKept(request.header("if-none-match"), etag)) return { status: 304, headers };
  return { status: 200, headers: { ...headers, "content-type": type }, body };
}

// Hashed again only when the text of that type is another than the last one.
const tagged = new Map<string, { readonly body: string; readonly etag: string }>();

function tagOf(type: string, body: string): string {
  const last = tagged.get(type);
  if (last?.body === body) return last.etag;
  const etag = `"${createHash("sha256").update(body).digest("base64url")}"`;
  tagged.set(type, { body, etag });
  return etag;
}

// RFC 9110, section 13.1.2: any of a list, weak or not, or whatever there is. A tag of ours holds no comma.
function isKept(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => ["*", etag, `W/${etag}`].includes(tag.trim()));
}
