// ID tokens (OpenID Connect Core 1.0, section 2). Programs verify them with the public keys of this service. A device may
// exchange its own once; the store keeps the login until then, so that this holds on all nodes.
import { errors, type JWTHeaderParameters, jwtVerify } from "jose";
import { algorithmOf, encodeJwt } from "../../kernel/jws.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import type { KeyRing } from "../keys/key-ring.js";
import { createSigner, type Signer } from "../signer.js";
import type { RedeemedLogin } from "../sts/identify.js";
import { type RequestedGrant, resolveScopes } from "../sts/token-request.js";
import { isLoginValid, narrowGrant } from "../tokens.js";
import type { IdTokenLogin } from "./state.js";
import { createSecret, type Tickets } from "./tickets.js";

/** How long an ID token is valid, in seconds. */
const LIFE_S = 600;
/** The header `typ`, which no API token has. */
const TYPE = "JWT";

/** The program that an ID token is for. */
interface IdTokenClient {
  readonly clientId: string;
  /** What the program sent to recognize its login. */
  readonly nonce?: string | undefined;
}

/** Issues ID tokens and takes them back. */
export type IdTokens = ReturnType<typeof createIdTokens>;

export function createIdTokens(deps: {
  readonly store: Pick<Store, "write">;
  readonly tickets: Tickets;
  readonly keys: Pick<KeyRing, "at" | "findVerifyingKey" | "refresh">;
  /** The issuer URL. */
  readonly issuer: string;
  /** One of its own unless given. */
  readonly signer?: Signer;
}) {
  const { store, tickets, keys, issuer, signer = createSigner() } = deps;

  // The key determines the algorithm, not the token (RFC 8725, section 3.1).
  async function getKey({ kid = "", alg }: JWTHeaderParameters) {
    // Each ID token is taken once, so that nothing is saved by keys in memory. Another process may have changed them.
    await keys.refresh();
    const key = keys.findVerifyingKey(kid);
    if (key === undefined || algorithmOf(key) !== alg) throw new errors.JWKSNoMatchingKey();
    return key;
  }

  async function verify(idToken: string, nowMs: number): Promise<string | undefined> {
    try {
      const options = { issuer, typ: TYPE, requiredClaims: ["jti"], currentDate: new Date(nowMs) };
      const { payload } = await jwtVerify(idToken, getKey, options);
      return payload.jti;
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  async function prepare(
    tx: Tx,
    { clientId, nonce }: IdTokenClient,
    login: IdTokenLogin,
    nowMs: number,
    jti = createSecret(),
  ): Promise<() => Promise<string>> {
    const { getSigningKey } = await keys.at(tx);
    const { email, email_verified } = login.grant.informative ?? {};
    const iat = Math.floor(nowMs / 1000);
    const claims = { iss: issuer, sub: login.identityUid, aud: clientId, iat, exp: iat + LIFE_S, jti, nonce };
    const payload = { ...claims, ...(email !== undefined && { email, email_verified }) };
    const jwt = encodeJwt(TYPE, payload, getSigningKey());
    return () => signer(jwt, rootOf(login.identityUid));
  }

  return {
    /**
     * Stores a login for an ID token that can be exchanged.
     *
     * @param clientId the audience of the ID token
     * @returns signs the ID token; called after the commit
     */
    async create(tx: Tx, clientId: string, login: IdTokenLogin, nowMs: number): Promise<() => Promise<string>> {
      const jti = createSecret();
      await tickets.put(tx, "id-token", jti, login, nowMs + LIFE_S * 1000);
      return prepare(tx, { clientId }, login, nowMs, jti);
    },

    /**
     * Prepares an ID token that says who signed in and cannot be exchanged, because no login is stored for it.
     *
     * @returns signs the ID token; called after the commit
     */
    prepare(tx: Tx, client: IdTokenClient, login: IdTokenLogin, nowMs: number): Promise<() => Promise<string>> {
      return prepare(tx, client, login, nowMs);
    },

    /**
     * Takes the login of an ID token, which can be taken once. Returns undefined when the ID token is not valid, was
     * taken before, the person was deleted or revoked since, or `identityProvider` names another provider.
     *
     * @param identityProvider the uid of the organisation's provider that the request names; empty where it names none
     * @param requested what to narrow the login to
     * @throws ApiError INVALID_ARGUMENT when it exceeds what the login is valid for, or names an organisation in which the
     * person holds nothing; the ID token stays valid
     */
    async redeem(
      idToken: string,
      identityProvider: string,
      requested: RequestedGrant,
      nowMs: number,
    ): Promise<RedeemedLogin | undefined> {
      const jti = await verify(idToken, nowMs);
      if (jti === undefined) return undefined;
      return store.write(async (tx) => {
        const login = await tickets.find(tx, "id-token", jti, nowMs);
        if (login === undefined) return undefined;
        const { identityUid, grant, providerUid, atMs, revokeTimeMs } = login;
        if (identityProvider !== "" && identityProvider !== providerUid) return undefined;
        if (!(await isLoginValid(tx, identityUid, login))) return undefined;
        const narrowed = narrowGrant(grant, await resolveScopes(tx, requested, { ...grant, identityUid }));
        await tickets.delete(tx, jti);
        return { identityUid, grant: narrowed, atMs, revokeTimeMs };
      });
    },
  };
}
