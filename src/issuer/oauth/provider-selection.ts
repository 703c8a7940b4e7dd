// Which providers a request may lead to.
import { oidcFromJson } from "../../iam/identity-providers/identity-provider.js";
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { CALLBACK, callbackPathOf, type WebHandler } from "../../kernel/web.js";
import type { IdentityProviderRow, Store, Tx } from "../../store/port.js";
import type { MasterKey } from "../keys/master-key.js";
import type { LoginProvider } from "./login-providers.js";
import { type Failure, failure } from "./oauth-error.js";
import type { NamedProvider, SentTo } from "./state.js";

/** An OpenID Provider to sign in with. */
export interface Provider {
  /** The name of a login provider of the service, or the uid of an organisation's provider. */
  readonly id: string;
  readonly title: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: readonly string[];
  /** The path that it sends browsers back to, as no other provider does. */
  readonly callbackPath: string;
  /** Set where it is an organisation's own, which vouches for people of that organisation alone. */
  readonly providerUid?: string;
}

/** The providers there are. */
export interface Providers {
  /**
   * Those that a request may mean: the one it names, or all login providers of the service.
   *
   * @throws ApiError INVALID_ARGUMENT when it names one that there is not.
   */
  named(named: NamedProvider): Promise<readonly Provider[]>;
  /** The one with this id, if it is still there. */
  withId(id: string): Promise<Provider | undefined>;
}

const SCOPES = ["openid", "email", "profile"];
/** An organisation has few. */
const MAX_OF_ORGANISATION = 20;

interface ProvidersDeps {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly loginProviders: readonly LoginProvider[];
}

/** Creates them. */
export function createProviders({ store, masterKey, loginProviders }: ProvidersDeps): Providers {
  const own: readonly Provider[] = loginProviders.map((provider) => ({
    ...provider,
    id: provider.name,
    callbackPath: loginCallbackPath(provider, loginProviders),
  }));

  async function ofOrganisation(idpId: string): Promise<readonly Provider[]> {
    const rows = await store.read(async (tx) => {
      const uids = isUidp(idpId) ? [idpId] : await providersOfVerified(tx, idpId, MAX_OF_ORGANISATION);
      const found: IdentityProviderRow[] = [];
      for (const uid of uids) {
        const row = await tx.identityProviders.get(uid);
        if (row) found.push(row);
      }
      return found;
    });
    return rows.map(providerOf);
  }

  function providerOf({ uid, name, oidc, sealedSecret }: IdentityProviderRow): Provider {
    const { issuer, clientId, additionalScopes } = oidcFromJson(oidc);
    const clientSecret =
      sealedSecret === "" ? undefined : masterKey.unseal(sealedSecret, `client secret ${uid}`).toString();
    const scopes = [...new Set([...SCOPES, ...additionalScopes])];
    const callbackPath = callbackPathOf(uid);
    return { id: uid, title: name, issuer, clientId, clientSecret, scopes, callbackPath, providerUid: uid };
  }

  return {
    async named({ connection, idpId }) {
      if (idpId !== undefined) {
        const found = await ofOrganisation(idpId);
        if (found.length > 0) return found;
        const rule = "idp_id must be the uid of an identity provider or the name of a verified organisation with one";
        throw invalidArgument({ field: "idp_id", description: rule });
      }
      if (connection === undefined) return own;
      const found = own.filter(({ id }) => id === connection);
      if (found.length > 0) return found;
      const rule = "connection must be the name of a login provider of this service";
      throw invalidArgument({ field: "connection", description: rule });
    },

    async withId(id) {
      if (id.includes("/")) return (await ofOrganisation(id))[0];
      return own.find((provider) => provider.id === id);
    },
  };
}

/**
 * The provider that somebody was sent to, as long as it is the same: what it says would otherwise be taken for what
 * another says.
 */
export async function findSentTo(
  providers: Pick<Providers, "withId">,
  { id, issuer, clientId }: SentTo,
): Promise<Provider | Failure> {
  const provider = await providers.withId(id);
  if (provider?.issuer === issuer && provider.clientId === clientId) return provider;
  return failure("access_denied", "the login provider was changed in the meantime", 403);
}

/**
 * The path that a login provider of the service sends browsers back to. Where it is the only one of them, that is
 * the path that was the only one before providers had their own.
 */
export function loginCallbackPath({ name }: Pick<LoginProvider, "name">, all: readonly unknown[]): string {
  return all.length === 1 ? CALLBACK : callbackPathOf(name);
}

/**
 * The uids of the identity providers of the one verified organisation that has this name. Names that
 * were not verified stand for nothing: anybody can give a group any name.
 *
 * @param limit how many at most
 */
export async function providersOfVerified(tx: Tx, name: string, limit: number): Promise<string[]> {
  const root = await tx.groups.verifiedRoot(name);
  // Asked in any case, so that the time does not tell which names are verified.
  return tx.identityProviders.uidsWhere("groupUid", root?.uid ?? "", limit);
}

/**
 * `GET /orgcheck?name=`: whether people of an organisation can sign in by its name: `true` when one
 * verified organisation has that name and an identity provider. Everything else looks alike: `false`.
 */
export function orgCheck({ store }: Pick<ProvidersDeps, "store">): WebHandler {
  return async ({ query }) => {
    const providers = await store.read((tx) => providersOfVerified(tx, query.get("name") ?? "", 1));
    return {
      status: 200,
      headers: { "content-type": "application/json", "cache-control": "no-store" },
      body: String(providers.length > 0),
    };
  };
}
