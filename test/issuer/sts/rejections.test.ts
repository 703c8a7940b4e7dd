// Rejected exchanges: their code and text, which cases have the same text, and that they change nothing in the
// database.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../../src/kernel/ids.js";
import {
  type Expected,
  FOR_OTHERS,
  invalid,
  notAssumable,
  permissionDenied,
  unauthenticated,
} from "../../contract/expectations.js";
import { type LocalIssuer, startLocalIssuer } from "../../support/local-issuer.js";
import { audienceEdits, issuerEdits, strangeClaims, unequalTexts } from "../strangers/texts.js";
import { wrongTimes } from "../strangers/times.js";
import { createTokenKit } from "../strangers/token-kit.js";
import { strangeTokens } from "../strangers/tokens.js";
import { ask } from "./ask.js";
import { dumpOf, type ExchangeWorld, type Parameters, startExchangeWorld } from "./exchange-world.js";

const LIMITS = { leewayS: 60, maxLifeS: 25 * 3600 };
/** Causes that are found with the keys of the issuer, so that the token might be good for the identity. */
const NEED_KEYS: ReadonlySet<string> = new Set([
  "is signed with an algorithm that is not that of the key",
  "has a signature that does not verify",
  "names no key of its issuer that can be used",
  "lives longer than allowed",
]);
const SUBJECT = "repo:Acme/app:ref:refs/heads/main";
const AUD_RULE = "aud must name audiences of this service";

let world: ExchangeWorld;
let stranger: LocalIssuer;
/** May be assumed by tokens of {@link SUBJECT}; another one, in another organisation, by the same tokens. */
let identity: string;
let twin: string;
let unknown: string;

before(async () => {
  world = await startExchangeWorld();
  stranger = await startLocalIssuer();
  identity = await world.workload(SUBJECT, { role: "viewer" });
  twin = await world.workload(SUBJECT, { group: world.foreign });
  unknown = randomIds.newUid(world.root);
});

after(async () => {
  await world.stop();
  await stranger.stop();
});

const nowS = () => Math.floor(Date.now() / 1000);
const good = (claims: object = {}) => world.token({ sub: SUBJECT, ...claims });
const notFor = (uid: string) => notAssumable(uid);
// A rejected exchange must change nothing.
async function assertRejected(expected: Expected, parameters: Parameters, bearer: string | undefined): Promise<void> {
  const stored = dumpOf(world.data);
  const { outcome, headers, status } = await world.exchange(parameters, bearer);
  assert.deepEqual(outcome, expected);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.has("www-authenticate"), status === 401);
  assert.deepEqual(dumpOf(world.data), stored);
}

it("accepts the token that all rejected ones differ from", async () => {
  assert.equal((await world.exchange({ identity }, good())).status, 200);
  assert.equal((await world.exchange({ identity: twin }, good())).status, 200, "the identity that is named decides");
});

describe("subjects are compared byte by byte", () => {
  const identities = new Map<string, string>();
  for (const { differs, stated, given } of unequalTexts) {
    it(differs, async () => {
      const uid = identities.get(stated) ?? (await world.workload(stated));
      identities.set(stated, uid);
      assert.equal((await world.exchange({ identity: uid }, good({ sub: stated }))).status, 200);
      await assertRejected(notFor(uid), { identity: uid }, good({ sub: given }));
    });
  }
});

describe("malformed tokens, the same for every identity", () => {
  const byCause = new Map(strangeTokens().map((token) => [token.upstream, token]));
  for (const { differs, make, upstream } of byCause.values()) {
    if (upstream === undefined || NEED_KEYS.has(upstream)) continue;
    it(`${differs}, which ${upstream}`, async () => {
      const bearer = make(createTokenKit(world.workloads.goodParts({ aud: world.url, sub: SUBJECT })));
      for (const uid of [identity, unknown]) await assertRejected(unauthenticated(), { identity: uid }, bearer);
    });
  }

  it("a token of this service, whatever the identity states", async () => {
    const issuerPattern = `https?://[a-z0-9.:/-]+`;
    const matching = await Promise.all(
      [{ issuer: world.url }, { issuerPattern }].map((iss) =>
        world.assumable({ claimMatch: { ...iss, subject: world.owner.uid } }),
      ),
    );
    const issuerKeys = await (await fetch(`${world.url}/.well-known/jwks.json`)).text();
    const expirationTime = "2099-01-01T00:00:00Z";
    const staticKeys = { issuer: world.url, subject: world.owner.uid, issuerKeys, expirationTime };
    const keyed = await world.assumable({ staticKeys });
    for (const uid of [identity, unknown, "", ...matching, keyed]) {
      await assertRejected(unauthenticated(), { identity: uid }, world.owner.token);
    }
  });
});

describe("tokens that are not valid now, the same for every identity", () => {
  for (const { differs, make } of wrongTimes) {
    it(`a token that ${differs}`, async () => {
      const times = make(nowS(), 300, LIMITS);
      const forOthers = good({ ...times, aud: ["https://elsewhere.example", `${world.url}.example`] });
      for (const uid of [identity, unknown]) {
        await assertRejected(unauthenticated(), { identity: uid }, good(times));
        await assertRejected(unauthenticated(FOR_OTHERS), { identity: uid }, forOthers);
      }
    });
  }

  for (const [name, make] of [
    ...wrongTimes.map(
      ({ differs, make }) => [`within the leeway: ${differs}`, () => good(make(nowS(), -30, LIMITS))] as const,
    ),
    ["for several, this service among them", () => good({ aud: ["https://elsewhere.example", world.url] })],
  ] as const) {
    it(`but not a token ${name}`, async () => {
      assert.equal((await world.exchange({ identity }, make())).status, 200);
    });
  }
});

describe("callers that may not assume an identity learn nothing about it", () => {
  const keyOf = () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const signWith = (key: KeyObject, claims: object = {}, header?: Readonly<Record<string, unknown>>) =>
    world.workloads.token({ aud: world.url, sub: SUBJECT, ...claims }, { key, ...(header && { header }) });
  let bare: string;
  let keyed: string;
  let lapsed: string;
  let patterned: string;
  before(async () => {
    const { issuer } = world.workloads;
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const issuerKeys = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] });
    const staticKeys = { issuer, subject: SUBJECT, issuerKeys };
    bare = await world.assumable({});
    keyed = await world.assumable({ staticKeys: { ...staticKeys, expirationTime: "2099-01-01T00:00:00Z" } });
    lapsed = await world.assumable({ staticKeys: { ...staticKeys, expirationTime: "2020-01-01T00:00:00Z" } });
    const claims = { repository: "acme/app" };
    patterned = await world.assumable({ claimMatch: { issuer, subject: SUBJECT, claims } });
  });

  const ISSUED_FOR_OTHERS = true;
  const cases: readonly (readonly [name: string, make: () => string, isForOthers?: boolean])[] = [
    ["another subject", () => good({ sub: "somebody else" })],
    ...Object.entries(issuerEdits).map(
      ([differs, edit]) => [`iss: ${differs}`, () => good({ iss: edit(world.workloads.issuer) })] as const,
    ),
    ["an issuer that could be reached", () => stranger.token({ aud: world.url, sub: SUBJECT })],
    ["another key", () => signWith(keyOf())],
    ["another key of a name that nobody knows", () => signWith(keyOf(), {}, { kid: "unknown" })],
    ["another algorithm", () => signWith(keyOf(), {}, { alg: "RS256" })],
    ...Object.entries(audienceEdits).map(
      ([differs, edit]) => [`aud: ${differs}`, () => good({ aud: edit(world.url) }), ISSUED_FOR_OTHERS] as const,
    ),
    ["another subject and audience", () => good({ sub: "x", aud: "https://elsewhere.example" }), ISSUED_FOR_OTHERS],
    ["another key and audience", () => signWith(keyOf(), { aud: "https://elsewhere.example" }), ISSUED_FOR_OTHERS],
  ];
  for (const [name, make, isForOthers = false] of cases) {
    it(name, async () => {
      const bearer = make();
      // Its custom claim is named only to a bearer that matches otherwise.
      const all = [identity, twin, bare, keyed, lapsed, patterned, unknown];
      const texts = new Set<string>();
      const heads = new Set<string>();
      for (const uid of all) {
        const { text, headers, status } = await world.exchange({ identity: uid }, bearer);
        assert.equal(status, 403);
        texts.add(text.replaceAll(uid, "<uid>"));
        heads.add(
          JSON.stringify([...headers].filter(([field]) => !/^(date|x-request-id|content-length)$/.test(field))),
        );
      }
      assert.deepEqual([texts.size, heads.size], [1, 1], [...texts, ...heads].join("\n"));
      for (const uid of [identity, unknown]) {
        await assertRejected(notAssumable(uid, isForOthers), { identity: uid }, bearer);
      }
    });
  }

  for (const { differs, stated, given, claim } of strangeClaims) {
    it(`but which claim differs, once the signature was verified: ${differs}`, async () => {
      const { issuer } = world.workloads;
      const uid = await world.assumable({ claimMatch: { issuer, subject: SUBJECT, ...stated } });
      await assertRejected(permissionDenied(`invalid "${claim}"`), { identity: uid }, good(given));
      await assertRejected(notAssumable(uid), { identity: uid }, signWith(keyOf(), given));
    });
  }

  it("and requests no issuer", () => assert.deepEqual(stranger.requests, { discovery: 0, keys: 0 }));

  it("nothing about identities without a relationship, groups and persons", async () => {
    const [bare, person] = [await world.assumable({}), await world.person("somebody")];
    for (const uid of [bare, world.root, person.uid]) await assertRejected(notFor(uid), { identity: uid }, good());
  });
});

describe("the token request", () => {
  const rule = "identity must be a uid";
  const cases: readonly [name: string, parameters: () => Parameters, broken: readonly [string, string]][] = [
    ["no audience", () => ({ identity, aud: "" }), ["aud", "Audience must be specified"]],
    ["audiences of nothing but commas", () => ({ identity, aud: " , ," }), ["aud", "Audience must be specified"]],
    ["another service", () => ({ identity, aud: "https://elsewhere.example" }), ["aud", AUD_RULE]],
    ["a part of our name", () => ({ identity, aud: "http://127.0.0.1" }), ["aud", AUD_RULE]],
    [
      "two audiences, one of another service",
      () => ({ identity, aud: [world.url, "https://elsewhere.example"] }),
      ["aud", AUD_RULE],
    ],
    [
      "two in a list, one of another service",
      () => ({ identity, aud: `${world.url},https://elsewhere.example` }),
      ["aud", AUD_RULE],
    ],
    [
      "nine audiences",
      () => ({ identity, aud: Array.from({ length: 9 }, (_, i) => `https://${i}.example`).join() }),
      ["aud", "aud must be at most 8 audiences"],
    ],
    ["an identity that is no uid", () => ({ identity: "me" }), ["identity", rule]],
    ["an identity in upper case", () => ({ identity: identity.toUpperCase() }), ["identity", rule]],
    ["an identity with a slash behind", () => ({ identity: `${identity}/` }), ["identity", rule]],
    ["an identity encoded twice", () => ({ identity: identity.replace("/", "%2F") }), ["identity", rule]],
    ["an identity of 5,000 characters", () => ({ identity: "a".repeat(5_000) }), ["identity", rule]],
    [
      "a provider that is no uid",
      () => ({ identityProvider: "me" }),
      ["identityProvider", "identityProvider must be a uid"],
    ],
    [
      "an identity and a provider",
      () => ({ identity, identity_provider: identity }),
      ["identityProvider", "identityProvider must be empty where identity is given"],
    ],
    [
      "a capability that does not exist",
      () => ({ identity, cap: ["groups.list", "groups.fly"] }),
      ["cap", "cap must name capabilities that exist, such as groups.list"],
    ],
    [
      "a group that is none",
      () => ({ identity, scope: "ours" }),
      ["scopes", "scopes must be at most 32 uids of groups or names of verified organisations"],
    ],
    [
      "33 groups",
      () => ({ identity, scopes: Array.from({ length: 33 }, () => randomIds.newUid()) }),
      ["scopes", "scopes must be at most 32 uids of groups or names of verified organisations"],
    ],
  ];
  for (const [name, parameters, broken] of cases) {
    it(`${name} is rejected`, () => assertRejected(invalid(broken), parameters(), good()));
  }

  it("reports all violations at once", async () => {
    const { outcome } = await world.exchange({ identity, aud: "", cap: "x", scope: "y/" }, good());
    const scopes = "scopes must be at most 32 uids of groups or names of verified organisations";
    const cap = "cap must name capabilities that exist, such as groups.list";
    assert.deepEqual(outcome, invalid(["aud", "Audience must be specified"], ["scopes", scopes], ["cap", cap]));
  });
});

describe("a bearer", () => {
  const path = () => `/sts/exchange?aud=${encodeURIComponent(world.url)}&identity=${encodeURIComponent(identity)}`;
  for (const [name, make] of [
    ["that is missing", () => undefined],
    ["by another scheme", () => `Basic ${good()}`],
    ["in two pieces", () => `Bearer ${good()} x`],
    ["given twice", () => `Bearer ${good()}, Bearer ${good()}`],
    ["without a token", () => "Bearer "],
  ] as const) {
    it(`${name} is invalid`, async () => {
      const authorization = make();
      const { outcome } = await ask(
        world.url,
        path(),
        authorization === undefined ? {} : { headers: { authorization } },
      );
      assert.deepEqual(outcome, unauthenticated());
    });
  }

  it("may write its scheme in any case", async () => {
    const headers = { authorization: `bEARER ${good()}` };
    assert.equal((await ask(world.url, path(), { headers })).status, 200);
  });

  it("may have several blanks before it, as everywhere", async () => {
    const headers = { authorization: `Bearer   ${good()}` };
    assert.equal((await ask(world.url, path(), { headers })).status, 200);
    const { outcome } = await ask(world.url, path(), { headers: { authorization: `Bearer \t${good()}` } });
    assert.deepEqual(outcome, unauthenticated());
  });

  it("in the query is ignored", async () => {
    const { outcome } = await ask(world.url, `${path()}&access_token=${good()}`);
    assert.deepEqual(outcome, unauthenticated());
  });
});
