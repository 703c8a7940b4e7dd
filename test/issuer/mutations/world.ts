// A service with an owner, an issuer that it trusts, and identities that foreign
// tokens may assume, each in another way.
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { generateTokenKey, unsealKeyPair } from "../../../src/issuer/keys/key-generation.js";
import { randomIds } from "../../../src/kernel/ids.js";
import type { SigningKey, TokenAlgorithm } from "../../../src/kernel/jws.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type Harness, startHarness } from "../../support/harness.js";
import type { Random } from "../../support/openapi/random.js";
import { identityRow } from "../../support/rows.js";
import { waitUntil } from "../../support/wait-until.js";
import { type ForeignIssuer, type Listener, serve, startIssuer, testKey } from "../upstream/foreign-issuer.js";
import type { Claims, ForeignFacts } from "./reference.js";

/** An audience that the service admits only when its guard is broken on purpose. */
export const STRANGE_AUDIENCE = "https://api.example.net";

/** An identity that foreign tokens may assume. */
export interface Assumable extends ForeignFacts {
  readonly uid: string;
  /** Whom a good token is for, of whom it speaks, and what else it says. */
  claims(random: Random): Claims;
}

/** All of it. */
export interface World {
  readonly harness: Harness;
  readonly url: string;
  /** The other names of the service. */
  readonly names: readonly string[];
  readonly ownName: RegExp;
  /** The keys of API tokens: that of RS256 signs them, and that of ES256 did before. */
  readonly tokenKeys: Readonly<Record<TokenAlgorithm, SigningKey>>;
  /** The root group, and the identity that owns it. */
  readonly group: string;
  readonly owner: string;
  readonly issuer: ForeignIssuer;
  readonly assumable: readonly Assumable[];
  /** An address that only a token contains; it must not be requested. */
  readonly trap: { readonly url: string; readonly calls: number };
  stop(): Promise<void>;
}

/** Starts it. */
export async function startWorld(): Promise<World> {
  const published = testKey("ES256", "key-0");
  const issuer = await startIssuer([published]);
  const harness = await startHarness({ trustedIssuers: new URL(issuer.issuer).origin, tokenAlgorithm: "RS256" });
  const tokenKeys = { RS256: harness.app.installation.keys.getSigningKey(), ES256: await addFormerKey(harness) };
  const trap = await serve((_req, res) => res.end());
  const { url } = harness;
  const { group, identity: owner } = await harness.organisation("example");
  const { port } = new URL(url);
  const names = [`http://localhost:${port}`, `http://[::1]:${port}`];
  // Any of its URLs, with a trailing slash or without the scheme (docs/security.md).
  const ownName = new RegExp(`^(http://)?(127\\.0\\.0\\.1|localhost|\\[::1\\]):${port}/?$`);
  const identities: readonly Given[] = [
    literal(issuer.issuer, published.privateKey, ownName, url),
    byPattern(issuer.issuer, published.privateKey),
    withKeys(ownName, url),
  ];
  const assumable = await Promise.all(identities.map((given) => registerIdentity(harness, group, given)));
  return { harness, url, names, ownName, group, owner, issuer, assumable, tokenKeys, trap: trapOf(trap), stop };

  async function stop() {
    trap.close();
    await harness.stop();
    issuer.close();
  }
}

async function addFormerKey({ app }: Harness): Promise<SigningKey> {
  const { store, keys, masterKey, clock } = app.installation;
  const row = await generateTokenKey("ES256", masterKey, clock() - 1);
  await store.write((tx) => tx.keys.insert({ ...row, state: "verify" }));
  await waitUntil(() => keys.findVerifyingKey(row.kid), 20_000);
  return { kid: row.kid, key: unsealKeyPair(row, masterKey).privateKey };
}

function trapOf(listener: Listener): World["trap"] {
  return {
    url: listener.origin,
    get calls() {
      return listener.connections;
    },
  };
}

interface Given extends Omit<Assumable, "uid"> {
  /** What is stored: the number of its type, and the relationship. */
  readonly relation: number;
  readonly relationship: object;
}

async function registerIdentity(harness: Harness, group: string, given: Given): Promise<Assumable> {
  const { relation, relationship, ...facts } = given;
  const uid = randomIds.newUid(group);
  await harness.app.installation.store.write((tx) =>
    tx.table(identityKind).insert(identityRow(uid, { relation, relationship })),
  );
  await harness.bind(uid, "viewer", group);
  return { ...facts, uid };
}

function literal(issuer: string, key: KeyObject, audience: RegExp, url: string): Given {
  const subject = "repo:octo/app:ref:refs/heads/main";
  return {
    relation: 1,
    relationship: { claimMatch: { issuer, subject, claims: { repository: "octo/app", verified: "true" } } },
    issuer,
    key,
    kid: "key-0",
    subject: /^repo:octo\/app:ref:refs\/heads\/main$/,
    audience,
    more: { repository: /^octo\/app$/, verified: /^true$/ },
    claims: () => ({ sub: subject, aud: url, repository: "octo/app", verified: true, run: 7 }),
  };
}

function byPattern(issuer: string, key: KeyObject): Given {
  return {
    relation: 1,
    relationship: {
      claimMatch: {
        issuer,
        subjectPattern: "repo:octo/[a-z]+:environment:(prod|test)",
        audience: "sts.example.org",
        claims: { owner: "octo" },
        claimPatterns: { ref: "refs/heads/(main|release-[0-9]+)" },
      },
    },
    issuer,
    key,
    kid: "key-0",
    subject: /^repo:octo\/[a-z]+:environment:(prod|test)$/,
    audience: /^sts\.example\.org$/,
    more: { owner: /^octo$/, ref: /^refs\/heads\/(main|release-[0-9]+)$/ },
    claims: (random) => ({
      sub: `repo:octo/${random.text("abcxyz", 8, 1)}:environment:${random.pick(["prod", "test"])}`,
      aud: random.pick<unknown>(["sts.example.org", ["https://example.org", "sts.example.org"]]),
      owner: "octo",
      ref: `refs/heads/release-${random.int(100)}`,
    }),
  };
}

function withKeys(audience: RegExp, url: string): Given {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "static-0", alg: "ES256", use: "sig" };
  const issuer = "https://cluster.example.org";
  const subject = "system:serviceaccount:build:pusher";
  const expirationTime = new Date(Date.now() + 24 * 3600 * 1000).toISOString();
  return {
    relation: 2,
    relationship: {
      staticKeys: { issuer, subject, issuerKeys: JSON.stringify({ keys: [jwk] }), expirationTime, audiences: [] },
    },
    issuer,
    key: privateKey,
    kid: "static-0",
    subject: /^system:serviceaccount:build:pusher$/,
    audience,
    more: {},
    claims: () => ({ sub: subject, aud: url, namespace: "build" }),
  };
}
