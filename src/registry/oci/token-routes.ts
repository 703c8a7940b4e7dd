// `/token`: where clients of the registry get their tokens, by distribution's
// "Token Authentication Specification" (GET) and its OAuth 2.0 variant (POST).
// Neither `offline_token` nor `access_type=offline` yields a refresh token. They
// are rotated here, which docker cannot follow, and one that is not would make a
// credential of 30 days out of an API token of an hour. What docker sends as a
// refresh token, its "identity token", may be an API token.
import { Code } from "@connectrpc/connect";
import type { KeyRing } from "../../issuer/keys/key-ring.js";
import { createFailureThrottle } from "../../issuer/sts/failure-throttle.js";
import { ApiError, invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID, type Ids } from "../../kernel/ids.js";
import { publicForm, publicPage, type WebAnswer, type WebRequest, type WebRoutes } from "../../kernel/web.js";
import type { Store } from "../../store/port.js";
import { basicIn, type Credential, type CredentialDeps, requireCredential, verifyCredential } from "./credential.js";
import { grantedAccess } from "./grant.js";
import { REGISTRY_TOKEN_LIFE_S, signRegistryToken } from "./registry-token.js";
import { parseScopes } from "./scope.js";

/** What the routes need. */
export interface TokenDeps extends CredentialDeps {
  readonly store: Store;
  readonly keys: Pick<KeyRing, "registrySigning">;
  readonly ids: Ids;
  /** What the registry calls itself. */
  readonly service: string;
  /** Where clients reach this service, asked each time: the address may be known late. */
  readonly baseUrl: () => string;
  /** Told who got a token, and when in epoch milliseconds. */
  readonly seen: (identityUid: string, nowMs: number) => void;
}

/** Wrong credentials that pass at full speed. Passwords are tokens, which nobody guesses: a good one always passes. */
const FAILURES = { perName: { points: 20, seconds: 60 }, perAddress: { points: 200, seconds: 4 } };

/** A password may be a token of another issuer with the groups of a directory. */
const MAX_FORM_BYTES = 32 * 1024;

/** What docker sends as a user name where the password is a refresh token. */
const REFRESH_USER = "<token>";

/** The routes. */
export function tokenRoutes(deps: TokenDeps): WebRoutes {
  const limiter = createFailureThrottle(FAILURES);

  async function answer(
    parameters: URLSearchParams,
    { remoteAddress }: WebRequest,
    read: () => Credential | undefined,
  ): Promise<WebAnswer> {
    const given = parameters.getAll("service");
    if (given.length !== 1 || given[0] !== deps.service) {
      throw invalidArgument({ field: "service", description: `service must be ${deps.service}` });
    }
    const asked = parseScopes(parameters.getAll("scope"));
    try {
      const credential = read();
      return credential === undefined
        ? await issue(credential, asked, remoteAddress)
        : await limiter.run({ remoteAddress, name: credential.user }, () => issue(credential, asked, remoteAddress));
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.Unauthenticated) return refusal(deps.baseUrl());
      throw error;
    }
  }

  async function issue(
    credential: Credential | undefined,
    asked: ReturnType<typeof parseScopes>,
    remoteAddress: string | undefined,
  ): Promise<WebAnswer> {
    const decide = await verifyCredential(credential, remoteAddress, deps);
    const { subject, access } = await deps.store.read(async (tx) => {
      const principal = await decide(tx);
      return { subject: principal.identityUid, access: await grantedAccess(tx, principal, asked) };
    });
    const nowMs = deps.clock();
    const issuedAt = Math.floor(nowMs / 1000);
    const { issuer, service, ids, keys } = deps;
    const claims = { issuer: issuer(), service, subject, access, tokenId: ids.newId(), issuedAt };
    const token = signRegistryToken(claims, keys.registrySigning());
    if (subject !== ANONYMOUS_UID) deps.seen(subject, nowMs);
    return json(200, {
      token,
      access_token: token,
      expires_in: REGISTRY_TOKEN_LIFE_S,
      issued_at: new Date(issuedAt * 1000).toISOString(),
    });
  }

  return [
    publicPage("/token", (request) =>
      answer(request.query, request, () => {
        const authorization = request.header("authorization");
        return authorization === undefined ? undefined : basicIn(authorization);
      }),
    ),
    publicForm(
      "/token",
      async (request) => {
        const form = await request.form();
        return answer(form, request, () => requireCredential(credentialIn(form)));
      },
      MAX_FORM_BYTES,
    ),
  ];
}

function credentialIn(form: URLSearchParams): Credential {
  switch (form.get("grant_type")) {
    case "password":
      return { user: form.get("username") ?? "", password: form.get("password") ?? "" };
    case "refresh_token":
      return { user: REFRESH_USER, password: form.get("refresh_token") ?? "" };
    default:
      throw invalidArgument({ field: "grant_type", description: "grant_type must be password or refresh_token" });
  }
}

// One answer for every credential that is not good, so that it is no oracle.
function refusal(baseUrl: string): WebAnswer {
  const message = "the user name or the password is not valid here";
  return json(
    401,
    { errors: [{ code: "UNAUTHORIZED", message, detail: null }] },
    { "www-authenticate": `Basic realm="${baseUrl}/token", charset="UTF-8"` },
  );
}

function json(status: number, body: object, headers: Readonly<Record<string, string>> = {}): WebAnswer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}
