// `/token`: clients of the registry get their tokens here, by distribution's "Token Authentication Specification"
// (GET) and its OAuth 2.0 variant (POST). Neither `offline_token` nor `access_type=offline` yields a refresh token:
// refresh tokens of the service rotate, which docker does not support, and one that does not rotate would extend an
// API token of an hour to 30 days. The refresh token that docker sends, its "identity token", may be an API token.
import { Code } from "@connectrpc/connect";
import type { KeyRing } from "../../issuer/keys/key-ring.js";
import type { FailureLimits, FailureThrottle } from "../../issuer/sts/failure-throttle.js";
import { ApiError, invalidArgument, rejectReasonOf } from "../../kernel/errors.js";
import { ANONYMOUS_UID, type Ids } from "../../kernel/ids.js";
import { publicForm, publicPage, type WebRequest, type WebResponse, type WebRoutes } from "../../kernel/web.js";
import type { Store } from "../../store/store.js";
import {
  type Credential,
  type CredentialDeps,
  isApiToken,
  parseBasic,
  requireCredential,
  verifyCredential,
} from "./credential.js";
import { REGISTRY_TOKEN_LIFE_S, signRegistryToken } from "./registry-token.js";
import { parseScopes, resolveAccess } from "./scope.js";

export interface TokenDeps extends CredentialDeps {
  readonly store: Store;
  readonly keys: Pick<KeyRing, "at">;
  readonly ids: Ids;
  /** The name of the registry, as its own configuration has it. */
  readonly service: string;
  /** The base URL of the service. */
  readonly baseUrl: string;
  /** Slows down callers with wrong credentials, beyond {@link TOKEN_FAILURES}. */
  readonly failures: FailureThrottle;
  /** Records that an identity got a token, at a time in epoch milliseconds. */
  readonly onToken: (identityUid: string, nowMs: number) => void;
}

/** How many wrong credentials pass before the limiter slows them down. Valid ones always pass. */
export const TOKEN_FAILURES: FailureLimits = {
  perName: { points: 20, seconds: 60 },
  perAddress: { points: 200, seconds: 4 },
};

/** The largest form: tokens of other issuers may list the groups of a directory. */
const MAX_FORM_BYTES = 32 * 1024;

/** The user name that docker sends with a refresh token. */
const REFRESH_USER = "<token>";

export function tokenRoutes(deps: TokenDeps): WebRoutes {
  async function respond(
    parameters: URLSearchParams,
    request: WebRequest,
    read: () => Credential | undefined,
  ): Promise<WebResponse> {
    const given = parameters.getAll("service").filter(Boolean);
    if (given.length !== 1 || given[0] !== deps.service) {
      throw invalidArgument({ field: "service", rule: `must be ${deps.service}` });
    }
    const requested = parseScopes(parameters.getAll("scope"));
    try {
      const credential = read();
      if (credential === undefined) return await issue(credential, requested, request);
      const claimant = { remoteAddress: request.remoteAddress, name: credential.user };
      const work = () => issue(credential, requested, request);
      // All API tokens have the same user name. They cannot be guessed and cost little to verify, so a valid one never
      // waits for the wrong ones of its address.
      const { failures, issuer } = deps;
      return await (isApiToken(credential.password, issuer)
        ? failures.count(claimant, work)
        : failures.run(claimant, work));
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.Unauthenticated) {
        return { ...buildUnauthorized(deps.baseUrl), rejection: rejectReasonOf(error) };
      }
      throw error;
    }
  }

  async function issue(
    credential: Credential | undefined,
    requested: ReturnType<typeof parseScopes>,
    request: WebRequest,
  ): Promise<WebResponse> {
    const resolvePrincipal = await verifyCredential(credential, request, deps);
    const { issuer, service, ids, keys } = deps;
    const { subject, granted, elsewhere, endTimeMs, signingKey } = await deps.store.read(async (tx) => {
      const principal = await resolvePrincipal(tx);
      const signingKey = (await keys.at(tx)).getRegistrySigningKey();
      return { subject: principal.identityUid, ...(await resolveAccess(tx, principal, requested)), signingKey };
    });
    // A client that mounts blobs requests several scopes, and uploads what it may not mount.
    if (granted.length === 0 && elsewhere.length > 0) return buildDenied(elsewhere);
    const nowMs = deps.clock();
    const issuedAt = Math.floor(nowMs / 1000);
    // The registry asks nobody until the token expires, so the rights in it must not end before.
    const lifeS = Math.min(
      REGISTRY_TOKEN_LIFE_S,
      endTimeMs === null ? Infinity : Math.floor(endTimeMs / 1000) - issuedAt,
    );
    const expiresAt = issuedAt + Math.max(0, lifeS);
    const claims = { issuer, service, subject, access: granted, tokenId: ids.newId(), issuedAt, expiresAt };
    const token = signRegistryToken(claims, signingKey);
    if (subject !== ANONYMOUS_UID) deps.onToken(subject, nowMs);
    // `token` and `issued_at` are for clients of registries, `scope` and `token_type` for those of OAuth 2.0 (RFC 6749,
    // section 5.1).
    return json(200, {
      token,
      access_token: token,
      token_type: "Bearer",
      scope: granted.map(({ type, name, actions }) => `${type}:${name}:${actions.join(",")}`).join(" "),
      expires_in: expiresAt - issuedAt,
      issued_at: new Date(issuedAt * 1000).toISOString(),
    });
  }

  return [
    publicPage("/token", (request) =>
      respond(request.query, request, () => {
        const authorization = request.header("authorization");
        return authorization === undefined ? undefined : parseBasic(authorization);
      }),
    ),
    publicForm(
      "/token",
      async (request) => {
        const form = await request.form();
        return respond(form, request, () => requireCredential(parseCredential(form)));
      },
      MAX_FORM_BYTES,
    ),
  ];
}

function parseCredential(form: URLSearchParams): Credential {
  switch (form.get("grant_type")) {
    case "password":
      return { user: form.get("username") ?? "", password: form.get("password") ?? "" };
    case "refresh_token":
      return { user: REFRESH_USER, password: form.get("refresh_token") ?? "" };
    default:
      throw invalidArgument({ field: "grant_type", rule: "must be password or refresh_token" });
  }
}

// Every invalid credential gets the same response, so that the endpoint is no oracle.
function buildUnauthorized(baseUrl: string): WebResponse {
  const message =
    "the user name or the password is not valid here: it takes an API token with any user name, or a token of the " +
    "platform with the uid of its identity as the user name; the log of Arbor has the reason";
  return json(
    401,
    { errors: [{ code: "UNAUTHORIZED", message, detail: null }] },
    { "www-authenticate": `Basic realm="${baseUrl}/token", charset="UTF-8"` },
  );
}

// Clients show the message of an error in this form (OCI distribution specification, "Error codes").
function buildDenied(paths: readonly string[]): WebResponse {
  const errors = paths.map((path) => ({
    code: "DENIED",
    message: `the path of this repository is ${path}`,
    detail: { repository: path },
  }));
  return json(403, { errors });
}

function json(status: number, body: object, headers: Readonly<Record<string, string>> = {}): WebResponse {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}
