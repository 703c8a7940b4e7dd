// Somebody whom the methods know that authenticate their callers by themselves,
// and all that these methods want to see, in any number.
import { generateKeyPairSync } from "node:crypto";
import { completeHeadlessSession } from "../../src/issuer/oauth/headless.js";
import { createTokens } from "../../src/issuer/tokens.js";
import { builtinRoleUid, personUid, providerPersonUid, randomIds } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { CLIENT, type ExchangeWorld, type Somebody } from "../issuer/sts/exchange-world.js";
import { identityRow } from "../support/rows.js";

const viewer = builtinRoleUid("viewer");

/** A caller with an account at the login provider of the service. */
export interface KnownCaller {
  /** The uid of the person that its ID tokens speak of. */
  readonly person: string;
  /** The uid of the identity that it may assume, which lies in the organisation. */
  readonly identity: string;
  /** The uid of the organisation's provider, whose ID tokens are the same. */
  readonly provider: string;
  /** An ID token that is good for all of them; `claims` change it. */
  oidcToken(claims?: Readonly<Record<string, unknown>>): string;
  /** Refresh tokens, each of a login of its own. */
  refreshTokens(count: number): Promise<string[]>;
  /** Codes of headless logins that somebody has completed in a browser. */
  headlessCodes(count: number): Promise<string[]>;
  /** People, each with an API token of its own. */
  people(count: number): Promise<Somebody[]>;
}

/** Makes one, known to an organisation by the uid of its root. */
export async function createKnownCaller(world: ExchangeWorld, organisation: string): Promise<KnownCaller> {
  const { issuer } = world.people;
  const subject = "known caller";
  const { uid: person } = await world.person(subject);
  const identity = await world.assumable({ claimMatch: { issuer, subject } }, { group: organisation });
  const provider = randomIds.newUid(organisation);
  await world.write(async (tx) => {
    const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
    const oidc = { issuer, clientId: CLIENT, groupsClaim: "", additionalScopes: [] };
    const scim = { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "e" };
    const labels = {
      name: "login",
      description: "",
      groupUid: organisation,
      defaultRole: viewer,
      lacksDefaultRole: false,
      sealedSecret: "",
    };
    await tx.table(identityProviderKind).insert({ uid: provider, ...labels, oidc, scim, ...times });
    const uid = providerPersonUid(provider, issuer, subject);
    await tx.table(identityKind).insert(identityRow(uid, { issuer, subject, providerUid: provider }));
  });
  const { keys } = world.harness.app.installation;
  const tokens = createTokens({ keys, ids: randomIds, issuer: world.url });

  return {
    person,
    identity,
    provider,
    // For the service as well as for its client, so that workload and person may show the same.
    oidcToken: (claims) => world.people.token({ sub: subject, aud: [CLIENT, world.url], azp: CLIENT, ...claims }),
    refreshTokens: (count) =>
      world.write(async (tx) => {
        const made: string[] = [];
        while (made.length < count) {
          made.push(await tokens.createRefreshToken(tx, person, { audience: world.url }, Date.now()));
        }
        return made;
      }),
    headlessCodes: (count) =>
      world.write(async (tx) => {
        const codes = Array.from({ length: count }, newHeadlessCode);
        for (const code of codes) await completeHeadlessSession(tx, code, "an ID token", Date.now());
        return codes;
      }),
    async people(count) {
      const uids = Array.from({ length: count }, () => personUid(issuer, randomIds.newId()));
      await world.write(async (tx) => {
        for (const uid of uids) await tx.table(identityKind).insert(identityRow(uid, { issuer }));
      });
      return Promise.all(uids.map(async (uid) => ({ uid, token: await world.harness.token(uid) })));
    },
  };
}

function newHeadlessCode(): string {
  return String(generateKeyPairSync("x25519").publicKey.export({ format: "jwk" }).x);
}
