// The documents with which others verify tokens of this service: OpenID Connect Discovery 1.0, section 4, and the
// public keys (RFC 7517, section 5).
import { sha256 } from "../kernel/digest.js";
import { publicPage, type WebRequest, type WebResponse, type WebRoutes } from "../kernel/web.js";
import type { KeyRing } from "./keys/key-ring.js";

export interface WellKnownOptions {
  readonly keys: Pick<KeyRing, "listPublicJwks" | "refresh">;
  /** The issuer URL. */
  readonly issuer: string;
  /** The max-age of the documents, in seconds. */
  readonly maxAgeS: number;
  /** The names of the service's login providers. */
  readonly connections: readonly string[];
}

/** The path of the public keys, relative to the issuer. */
const JWKS_PATH = "/.well-known/jwks.json";

/** Creates the routes of both documents, with CORS for all origins. */
export function createWellKnownRoutes({ keys, issuer, maxAgeS, connections }: WellKnownOptions): WebRoutes {
  const cacheControl = `public, max-age=${maxAgeS}`;
  return [
    // Stale keys must not be cached for another max-age: a new key would be used before all caches have it, or its
    // algorithm. When the store cannot be read, the request fails.
    publicPage("/.well-known/openid-configuration", async (request) => {
      await keys.refresh();
      const algorithms = [...new Set(keys.listPublicJwks().map(({ alg }) => String(alg)))];
      return respondWithDocument(
        request,
        "application/json",
        buildDiscovery(issuer, algorithms, connections),
        cacheControl,
      );
    }),
    publicPage(JWKS_PATH, async (request) => {
      await keys.refresh();
      return respondWithDocument(request, "application/jwk-set+json", { keys: keys.listPublicJwks() }, cacheControl);
    }),
  ];
}

function buildDiscovery(issuer: string, algorithms: readonly string[], connections: readonly string[]): object {
  return {
    issuer,
    jwks_uri: `${issuer}${JWKS_PATH}`,
    authorization_endpoint: `${issuer}/oauth`,
    token_endpoint: `${issuer}/oauth/token`,
    device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    response_types_supported: ["code"],
    grant_types_supported: [
      "authorization_code",
      "refresh_token",
      "urn:ietf:params:oauth:grant-type:device_code",
      "urn:ietf:params:oauth:grant-type:token-exchange",
    ],
    code_challenge_methods_supported: ["S256"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: algorithms,
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    // RFC 9207: authorization responses name their issuer.
    authorization_response_iss_parameter_supported: true,
    scopes_supported: ["openid"],
    // No standard: what the parameter `connection` of the authorization endpoint may be (docs/login.md#endpoints).
    connections_supported: connections,
    claims_supported: ["iss", "sub", "aud", "iat", "exp", "jti", "act", "cap", "email", "email_verified", "upstream"],
  };
}

function respondWithDocument(request: WebRequest, type: string, content: object, cacheControl: string): WebResponse {
  const body = JSON.stringify(content);
  const etag = computeEtag(type, body);
  const headers = { "cache-control": cacheControl, etag, "access-control-allow-origin": "*" };
  if (matchesEtag(request.header("if-none-match"), etag)) return { status: 304, headers };
  return { status: 200, headers: { ...headers, "content-type": type }, body };
}

// The last body of each type and its ETag, so that an unchanged body is not hashed again.
const etags = new Map<string, { readonly body: string; readonly etag: string }>();

function computeEtag(type: string, body: string): string {
  const last = etags.get(type);
  if (last?.body === body) return last.etag;
  const etag = `"${sha256(body).toString("base64url")}"`;
  etags.set(type, { body, etag });
  return etag;
}

// RFC 9110, section 13.1.2: a list of tags, weak or strong, or "*". The tags of this service have no comma.
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => ["*", etag, `W/${etag}`].includes(tag.trim()));
}
