// Who stands behind the name and the password that come with a request for a
// registry token. Passwords are tokens: API tokens, or what is exchanged for one.
import { Code } from "@connectrpc/connect";
import type { Exchanger } from "../../issuer/sts/exchange.js";
import type { Clock } from "../../kernel/clock.js";
import { ApiError, unauthenticated } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import type { Principal } from "../../kernel/principal.js";
import { isUidp } from "../../kernel/uidp.js";
import { keyIdOf } from "../../pipeline/auth/api-token.js";
import type { Authenticate } from "../../pipeline/auth/authenticate.js";
import type { Awaitable, Tx } from "../../store/port.js";
import { REGISTRY_TOKEN_LIFE_S } from "./registry-token.js";

/** A name and a password (RFC 7617). */
export interface Credential {
  /** The uid of the identity to assume; anything else where the password is an API token. */
  readonly user: string;
  readonly password: string;
}

/** What checking credentials needs. */
export interface CredentialDeps {
  readonly authenticate: Authenticate;
  readonly exchanger: Pick<Exchanger, "verifyBearer" | "decide">;
  /** Who issues API tokens, asked each time: the address may be known late. */
  readonly issuer: () => string;
  readonly clock: Clock;
}

/** Says who it is, on what is stored now. */
export type Decide = (tx: Tx) => Awaitable<Principal>;

/** The longest password, in characters: that of a token of another issuer. */
const MAX_PASSWORD = 16 * 1024;

/**
 * Reads an Authorization header of the scheme Basic (RFC 7617).
 *
 * @throws ApiError UNAUTHENTICATED for another scheme, or without a name or a password.
 */
export function basicIn(authorization: string): Credential {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1] ?? "";
  const text = Buffer.from(encoded, "base64").toString();
  const colon = text.indexOf(":");
  return requireCredential({ user: text.slice(0, Math.max(colon, 0)), password: text.slice(colon + 1) });
}

/**
 * Makes sure that both halves are there.
 *
 * @throws ApiError UNAUTHENTICATED
 */
export function requireCredential(credential: Credential): Credential {
  const { user, password } = credential;
  if (user === "" || password === "" || password.length > MAX_PASSWORD) throw unauthenticated();
  return credential;
}

/**
 * Verifies a credential as far as that needs no transaction. With the uid of an identity the password
 * may be whatever that identity is assumed with: an OIDC token, the token of a pull token, or a signed
 * AWS request.
 *
 * @param credential undefined: everybody
 * @param remoteAddress counts refusals against the address
 * @throws ApiError UNAUTHENTICATED, whatever is wrong with it; UNAVAILABLE when an issuer cannot be
 * reached.
 */
export async function verifyCredential(
  credential: Credential | undefined,
  remoteAddress: string | undefined,
  { authenticate, exchanger, issuer, clock }: CredentialDeps,
): Promise<Decide> {
  if (credential === undefined) return () => principalOf(ANONYMOUS_UID, clock());
  const { user, password } = credential;
  return alike(async () => {
    if (!isUidp(user) || isApiToken(password, issuer())) {
      const principal = await authenticate(`Bearer ${password}`);
      return () => principal;
    }
    const claimed = { identity: user, identityProvider: "", asPassword: true };
    const proof = await exchanger.verifyBearer(claimed, password, remoteAddress);
    return (tx: Tx) =>
      alike(async () => {
        const { identityUid, mappings } = await exchanger.decide(tx, proof, remoteAddress);
        return { ...principalOf(identityUid, clock()), ...(mappings.length > 0 && { mappings }) };
      });
  });
}

function principalOf(identityUid: string, nowMs: number): Principal {
  const issuedAt = Math.floor(nowMs / 1000);
  return { identityUid, tokenId: "", issuedAt, expiresAt: issuedAt + REGISTRY_TOKEN_LIFE_S };
}

// Whether it says that it is one, which decides no more than by which door it is refused.
function isApiToken(password: string, issuer: string): boolean {
  if (keyIdOf(password) === undefined) return false;
  try {
    const claims: unknown = JSON.parse(Buffer.from(password.split(".")[1] ?? "", "base64url").toString());
    return typeof claims === "object" && claims !== null && "iss" in claims && claims.iss === issuer;
  } catch {
    return false;
  }
}

// What an exchange tells its caller apart, such as an identity that is not there, looks the same here.
async function alike<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && REFUSED.has(error.code)) throw unauthenticated(error);
    throw error;
  }
}

const REFUSED: ReadonlySet<Code> = new Set([Code.PermissionDenied, Code.InvalidArgument, Code.NotFound]);
