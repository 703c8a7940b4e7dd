// The providers that a login request can use.
import { IdentityProvider_OIDC_TokenEndpointAuthMethod as TokenEndpointAuthMethod } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { formatSecretContext, oidcFromJson } from "../../iam/identity-providers/identity-provider.js";
import { invalidArgument } from "../../kernel/errors.js";
import type { LoginProvider } from "../../kernel/login-providers.js";
import { isUidp } from "../../kernel/uidp.js";
import { buildCallbackPath, CALLBACK_PATH, type WebHandler } from "../../kernel/web.js";
import { groupKind } from "../../store/iam/groups.js";
import { type IdentityProviderRow, identityProviderKind } from "../../store/iam/identity-providers.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import type { MasterKey } from "../keys/master-key.js";
import { type OAuthError, oauthError } from "./oauth-error.js";
import type { NamedProvider, SentTo } from "./state.js";
import type { ClaimRequest } from "./user-info.js";

/** A way to send a client secret (OpenID Connect Core 1.0, section 9). */
export type SecretMethod = "client_secret_basic" | "client_secret_post";

/** An OpenID Provider to sign in with. */
export interface Provider extends ClaimRequest {
  /** The name of a login provider of the service, or the uid of an organisation's provider. */
  readonly id: string;
  readonly title: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /**
   * How the secret may be sent to the token endpoint, by preference: in the first way that the provider announces, else in
   * the last one.
   */
  readonly secretMethods: readonly SecretMethod[];
  /** The path of its redirect URI, which no other provider has. */
  readonly callbackPath: string;
  /**
   * The uid of an organisation's provider, which authenticates people of that organisation only; undefined for login
   * providers of the service.
   */
  readonly providerUid?: string;
}

const SCOPES = ["openid", "email", "profile"];

const secretMethods: Readonly<Record<TokenEndpointAuthMethod, readonly SecretMethod[]>> = {
  [TokenEndpointAuthMethod.UNSPECIFIED]: ["client_secret_post", "client_secret_basic"],
  [TokenEndpointAuthMethod.CLIENT_SECRET_BASIC]: ["client_secret_basic"],
  [TokenEndpointAuthMethod.CLIENT_SECRET_POST]: ["client_secret_post"],
};
// The default of OpenID Connect Discovery 1.0, section 3, comes first.
const OPERATOR_METHODS: readonly SecretMethod[] = ["client_secret_basic", "client_secret_post"];
/** The number of an organisation's providers that a page lists. */
const MAX_OF_ORGANISATION = 20;

interface ProvidersDeps {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly loginProviders: readonly LoginProvider[];
}

/** The providers of the service and of organisations. */
export type Providers = ReturnType<typeof createProviders>;

export function createProviders({ store, masterKey, loginProviders }: ProvidersDeps) {
  const own: readonly Provider[] = loginProviders.map((provider) => ({
    ...provider,
    id: provider.name,
    secretMethods: OPERATOR_METHODS,
    callbackPath: loginCallbackPath(provider, loginProviders),
  }));

  async function listOfOrganisation(idpId: string): Promise<readonly Provider[]> {
    const rows = await store.read(async (tx) => {
      const uids = isUidp(idpId) ? [idpId] : await findVerifiedProviders(tx, idpId, MAX_OF_ORGANISATION);
      const found: IdentityProviderRow[] = [];
      for (const uid of uids) {
        const row = await tx.table(identityProviderKind).find(uid);
        if (row) found.push(row);
      }
      return found;
    });
    return rows.map(toProvider);
  }

  function toProvider({ uid, name, oidc, sealedSecret }: IdentityProviderRow): Provider {
    const { issuer, clientId, additionalScopes, groupsClaim, tokenEndpointAuthMethod } = oidcFromJson(oidc);
    const clientSecret =
      sealedSecret === "" ? undefined : masterKey.unseal(sealedSecret, formatSecretContext(uid)).toString();
    const scopes = [...new Set([...SCOPES, ...additionalScopes])];
    const callbackPath = buildCallbackPath(uid);
    return {
      id: uid,
      title: name,
      issuer,
      clientId,
      clientSecret,
      secretMethods: secretMethods[tokenEndpointAuthMethod],
      scopes,
      callbackPath,
      providerUid: uid,
      groupsClaim,
    };
  }

  return {
    /**
     * Finds the providers that a request names, or all login providers of the service.
     *
     * @throws ApiError INVALID_ARGUMENT when the named provider does not exist
     */
    async findNamed({ connection, idpId }: NamedProvider): Promise<readonly Provider[]> {
      if (idpId !== undefined) {
        const found = await listOfOrganisation(idpId);
        if (found.length > 0) return found;
        const rule = "must be the uid of an identity provider or the name of a verified organisation with one";
        throw invalidArgument({ field: "idp_id", rule });
      }
      if (connection === undefined) return own;
      const found = own.filter(({ id }) => id === connection);
      if (found.length > 0) return found;
      const rule = "must be the name of a login provider of this service";
      throw invalidArgument({ field: "connection", rule });
    },

    async find(id: string): Promise<Provider | undefined> {
      if (id.includes("/")) return (await listOfOrganisation(id))[0];
      return own.find((provider) => provider.id === id);
    },
  };
}

/**
 * Gets the provider that the browser was sent to. It is an error when its issuer or client changed since then, because
 * a response of the former issuer would be attributed to the new one.
 */
export async function getSentProvider(
  providers: Pick<Providers, "find">,
  { id, issuer, clientId }: SentTo,
): Promise<Provider | OAuthError> {
  const provider = await providers.find(id);
  if (provider?.issuer === issuer && provider.clientId === clientId) return provider;
  return oauthError("access_denied", "the login provider was changed in the meantime", 403);
}

/**
 * The redirect path of a login provider of the service. A single login provider has the path without a name, which
 * installations registered before providers had paths of their own.
 */
export function loginCallbackPath({ name }: Pick<LoginProvider, "name">, all: readonly unknown[]): string {
  return all.length === 1 ? CALLBACK_PATH : buildCallbackPath(name);
}

/**
 * Finds the identity providers of the verified organisation with this name. Unverified names never match, because
 * anybody can give a group any name.
 *
 * @param limit the largest number of uids
 */
async function findVerifiedProviders(tx: Tx, name: string, limit: number): Promise<string[]> {
  const root = await tx.table(groupKind).findVerifiedRoot(name);
  // Read in any case, so that the response time does not reveal which names are verified.
  return tx.table(identityProviderKind).findUidsWhere("groupUid", root?.uid ?? "", limit);
}

/**
 * `GET /orgcheck?name=`: responds with `true` when one verified organisation has this name and an identity provider,
 * otherwise `false`.
 */
export function createOrgCheck({ store }: Pick<ProvidersDeps, "store">): WebHandler {
  return async ({ query }) => {
    const providers = await store.read((tx) => findVerifiedProviders(tx, query.get("name") ?? "", 1));
    return {
      status: 200,
      headers: { "content-type": "application/json", "cache-control": "no-store" },
      body: String(providers.length > 0),
    };
  };
}
