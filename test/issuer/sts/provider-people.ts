// An organisation's own provider and the people who came through it, for tests.
import { signIn } from "../../../src/iam/people/sign-in.js";
import { builtinRoleUid, providerPersonUid } from "../../../src/kernel/ids.js";
import { directoryContext } from "../../support/directory-context.js";
import { ask } from "./ask.js";
import type { ExchangeWorld, Somebody } from "./exchange-world.js";

/** A provider and how its people get in. */
export interface ProviderKit {
  readonly uid: string;
  /** The provider's client, which its tokens are for. */
  readonly client: string;
  /** A token of the provider. */
  token(claims: Readonly<Record<string, unknown>>): string;
  /** Signs a person in through the provider, for the first time or again; returns the uid. */
  signIn(subject: string, claims?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Maps a group of the directory to a role at the root; returns the uid of the mapping. */
  map(externalGroupId: string, roleUid: string): Promise<string>;
}

/** What a provider may differ in. */
export interface ProviderValues {
  readonly group?: string;
  readonly owner?: Somebody;
  readonly defaultRole?: string;
  readonly client?: string;
}

/** Makes a provider by the API: the issuer that the service's own login provider has too. */
export async function makeProvider(world: ExchangeWorld, values: ProviderValues = {}): Promise<ProviderKit> {
  const { group = world.root, owner = world.owner, defaultRole = "viewer", client = "client-of-ours" } = values;
  const post = async (path: string, json: object) => {
    const { status, json: made, text } = await ask(world.url, path, { method: "POST", json, bearer: owner.token });
    if (status !== 200) throw new Error(text);
    return String(made.uid);
  };
  const { issuer } = world.people;
  const uid = await post(`/iam/v2beta1/identityProviders/${group}`, {
    name: "directory",
    defaultRole: builtinRoleUid(defaultRole),
    oidc: { issuer, clientId: client, clientSecret: "s3cr3t", groupsClaim: "groups" },
  });
  return {
    uid,
    client,
    token: (claims) => world.people.token({ aud: client, ...claims }),
    async signIn(subject, claims = {}) {
      const signInRequest = { issuer, subject, claims: { aud: client, ...claims }, providerUid: uid, register: false };
      const { identityUid } = await world.write((tx) => signIn(tx, signInRequest, directoryContext()));
      if (identityUid !== providerPersonUid(uid, issuer, subject)) throw new Error("somebody else signed in");
      return identityUid;
    },
    map: (externalGroupId, roleUid) =>
      post(`/iam/v2beta1/externalGroupRoleMappings/${uid}`, { externalGroupId, roleUid, scope: group }),
  };
}
