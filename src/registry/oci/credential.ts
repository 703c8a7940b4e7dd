// Verifies the credentials of requests for registry tokens. Passwords are tokens: API tokens, or tokens that can be
// exchanged for one.
import { Code } from "@connectrpc/connect";
import type { Exchanger } from "../../issuer/sts/exchange.js";
import { ApiError, unauthenticated } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import type { Principal } from "../../kernel/principal.js";
import type { Clock } from "../../kernel/time.js";
import { isUidp } from "../../kernel/uidp.js";
import type { WebRequest } from "../../kernel/web.js";
import { parseKeyId } from "../../pipeline/auth/api-token.js";
import type { Authenticate } from "../../pipeline/auth/authenticate.js";
import type { Tx } from "../../store/transaction.js";
import { REGISTRY_TOKEN_LIFE_S } from "./registry-token.js";

/** A name and a password (RFC 7617). */
export interface Credential {
  /** The uid of the identity to assume; anything else where the password is an API token. */
  readonly user: string;
  readonly password: string;
}

export interface CredentialDeps {
  readonly authenticate: Authenticate;
  readonly exchanger: Pick<Exchanger, "verifyBearer" | "decide">;
  /** The issuer of API tokens. */
  readonly issuer: string;
  readonly clock: Clock;
}

export type ResolvePrincipal = (tx: Tx) => Promise<Principal>;

/** The longest password, in characters; tokens of other issuers are the longest. */
const MAX_PASSWORD = 16 * 1024;

/**
 * Parses an Authorization header of the scheme Basic (RFC 7617).
 *
 * @throws ApiError UNAUTHENTICATED for another scheme, or without a name or a password.
 */
export function parseBasic(authorization: string): Credential {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1] ?? "";
  const text = Buffer.from(encoded, "base64").toString();
  const colon = text.indexOf(":");
  return requireCredential({ user: text.slice(0, Math.max(colon, 0)), password: text.slice(colon + 1) });
}

/**
 * Makes sure that user and password are present.
 *
 * @throws ApiError UNAUTHENTICATED
 */
export function requireCredential(credential: Credential): Credential {
  const { user, password } = credential;
  if (user === "" || password === "" || password.length > MAX_PASSWORD) throw unauthenticated();
  return credential;
}

/**
 * Verifies a credential outside a transaction. With the uid of an identity as the user, the password is what the
 * identity is assumed with: an OIDC token, a pull token, or a signed AWS request.
 *
 * @param credential undefined stands for `anonymous`
 * @param request its address is what failures count against
 * @throws ApiError UNAUTHENTICATED, for every invalid credential; UNAVAILABLE when an issuer cannot be
 * reached.
 */
export async function verifyCredential(
  credential: Credential | undefined,
  { remoteAddress, trace, record }: Pick<WebRequest, "remoteAddress" | "trace" | "record">,
  { authenticate, exchanger, issuer, clock }: CredentialDeps,
): Promise<ResolvePrincipal> {
  if (credential === undefined) return async () => buildPrincipal(ANONYMOUS_UID, clock());
  const { user, password } = credential;
  return maskFailure(async () => {
    if (!isUidp(user) || isApiToken(password, issuer)) {
      const principal = await authenticate(`Bearer ${password}`);
      return async () => principal;
    }
    const requested = { identity: user, identityProvider: "", asPassword: true, trace, record };
    const proof = await exchanger.verifyBearer(requested, password, remoteAddress);
    return (tx: Tx) =>
      maskFailure(async () => {
        const { identityUid, mappings } = await exchanger.decide(tx, proof, remoteAddress);
        return { ...buildPrincipal(identityUid, clock()), ...(mappings.length > 0 && { mappings }) };
      });
  });
}

function buildPrincipal(identityUid: string, nowMs: number): Principal {
  const issuedAt = Math.floor(nowMs / 1000);
  return { identityUid, tokenId: "", issuedAt, expiresAt: issuedAt + REGISTRY_TOKEN_LIFE_S };
}

/** Whether a password has the form of an API token. Unverified: it only selects which verification the token gets. */
export function isApiToken(password: string, issuer: string): boolean {
  if (parseKeyId(password) === undefined) return false;
  try {
    const claims: unknown = JSON.parse(Buffer.from(password.split(".")[1] ?? "", "base64url").toString());
    return typeof claims === "object" && claims !== null && "iss" in claims && claims.iss === issuer;
  } catch {
    return false;
  }
}

// Errors that an exchange distinguishes, such as an unknown identity, all become UNAUTHENTICATED here.
async function maskFailure<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && MASKED_CODES.has(error.code)) throw unauthenticated(error);
    throw error;
  }
}

const MASKED_CODES: ReadonlySet<Code> = new Set([Code.PermissionDenied, Code.InvalidArgument, Code.NotFound]);
