// How identities are assumed, end to end: claims and patterns, audiences, keys
// that stand on the identity, AWS; whom that makes the service ask, and what
// holds when the identity changes in the middle.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it, type TestContext } from "node:test";
import { Code } from "@connectrpc/connect";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type Expected, notAssumable, permissionDenied, unauthenticated } from "../../contract/expectations.js";
import { type LocalIssuer, signToken, startLocalIssuer } from "../../support/local-issuer.js";
import { exchangerOf } from "../mutations/exchanger.js";
import { ask } from "./ask.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";
import { makeProvider } from "./provider-people.js";
import { role as awsRole, bearerOf, serveSts, signRequest } from "./sts.js";

const HOUR_MS = 3_600_000;

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());

const outcomeOf = async (identity: string, bearer: string): Promise<Expected | "OK"> => {
  const { outcome } = await world.exchange({ identity }, bearer);
  return outcome.code === "OK" ? "OK" : outcome;
};
const escapePattern = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

describe("a claim match", () => {
  type Claims = Readonly<Record<string, unknown>>;
  const PERMITTED = "OK";
  const DENIAL = (uid: string) => notAssumable(uid);
  const FOR_OTHERS = (uid: string) => notAssumable(uid, true);
  const invalidClaim = (name: string) => () => permissionDenied(`invalid "${name}"`);
  const cases: readonly {
    readonly name: string;
    readonly match: (issuer: string) => object;
    readonly tokens: readonly (readonly [Claims, typeof PERMITTED | ((uid: string) => Expected)])[];
  }[] = [
    {
      name: "with a pattern of subjects that must match all of them",
      match: (issuer) => ({ issuer, subjectPattern: "repo:acme/[a-z]+|repo:other/x" }),
      tokens: [
        [{ sub: "repo:acme/app" }, PERMITTED],
        [{ sub: "repo:other/x" }, PERMITTED],
        [{ sub: "repo:acme/app:ref" }, DENIAL],
        [{ sub: "my-repo:acme/app" }, DENIAL],
        [{ sub: "repo:other/xy" }, DENIAL],
        [{ sub: "xrepo:other/x" }, DENIAL],
        [{ sub: "repo:acme/app\n" }, DENIAL],
      ],
    },
    {
      name: "with a pattern of issuers",
      match: (issuer) => ({ issuerPattern: `${escapePattern(issuer)}(/tenants/[a-z]+)?`, subject: "s" }),
      tokens: [
        [{ sub: "s" }, PERMITTED],
        [{ sub: "s", iss: "https://127.0.0.1" }, DENIAL],
        [{ sub: "s", iss: "http://127.0.0.1:1/tenants/a" }, DENIAL],
      ],
    },
    {
      name: "that states an audience",
      match: (issuer) => ({ issuer, subject: "s", audience: "sts.example" }),
      tokens: [
        [{ sub: "s", aud: "sts.example" }, PERMITTED],
        [{ sub: "s", aud: ["x", "sts.example"] }, PERMITTED],
        [{ sub: "s" }, DENIAL],
        [{ sub: "s", aud: "sts.example/" }, FOR_OTHERS],
        [{ sub: "s", aud: "STS.example" }, FOR_OTHERS],
        [{ sub: "x", aud: "sts.example" }, FOR_OTHERS],
      ],
    },
    {
      name: "with a pattern of audiences",
      match: (issuer) => ({ issuer, subject: "s", audiencePattern: "api-[0-9]" }),
      tokens: [
        [{ sub: "s", aud: "api-1" }, PERMITTED],
        [{ sub: "s", aud: ["x", "api-2"] }, PERMITTED],
        [{ sub: "s", aud: "api-12" }, FOR_OTHERS],
        [{ sub: "s" }, DENIAL],
      ],
    },
    {
      name: "without one",
      match: (issuer) => ({ issuer, subject: "s" }),
      tokens: [
        [{ sub: "s", aud: ["x", "<us>"] }, PERMITTED],
        [{ sub: "s", aud: "<us>/" }, PERMITTED],
        [{ sub: "s", aud: "<host>" }, PERMITTED],
        [{ sub: "s", aud: "https://elsewhere.example" }, FOR_OTHERS],
        [{ sub: "s", aud: "<us>.example" }, FOR_OTHERS],
        [{ sub: "x", aud: "https://elsewhere.example" }, FOR_OTHERS],
      ],
    },
    {
      name: "with claims",
      match: (issuer) => ({ issuer, subject: "s", claims: { repo: "acme/app", protected: "true", constructor: "x" } }),
      tokens: [
        [{ sub: "s", repo: "acme/app", protected: true, constructor: "x" }, PERMITTED],
        [{ sub: "s", repo: "acme/app", protected: "true", constructor: "x" }, PERMITTED],
        [{ sub: "s", repo: "acme/other", protected: true, constructor: "x" }, invalidClaim("repo")],
        [{ sub: "s", repo: ["acme/app"], protected: true, constructor: "x" }, invalidClaim("repo")],
        [{ sub: "s", repo: { name: "acme/app" }, protected: true, constructor: "x" }, invalidClaim("repo")],
        [{ sub: "s", repo: null, protected: true, constructor: "x" }, invalidClaim("repo")],
        [{ sub: "s", protected: true, constructor: "x" }, invalidClaim("repo")],
        [{ sub: "s", repo: "acme/app", protected: false, constructor: "x" }, invalidClaim("protected")],
        [{ sub: "s", repo: "acme/app", protected: 1, constructor: "x" }, invalidClaim("protected")],
        [{ sub: "s", repo: "acme/app", protected: true }, invalidClaim("constructor")],
        [{ sub: "x", repo: "acme/other" }, DENIAL],
      ],
    },
    {
      name: "with patterns of claims",
      match: (issuer) => ({ issuer, subjectPattern: ".*", claimPatterns: { ref: "refs/(heads|tags)/.+", ci: "true" } }),
      tokens: [
        [{ sub: "s", ref: "refs/heads/main", ci: true }, PERMITTED],
        [{ sub: "s", ref: "refs/heads/", ci: true }, invalidClaim("ref")],
        [{ sub: "s", ref: "x refs/tags/1", ci: true }, invalidClaim("ref")],
        [{ sub: "s", ref: 1, ci: true }, invalidClaim("ref")],
        [{ sub: "s", ref: "refs/tags/1" }, invalidClaim("ci")],
      ],
    },
  ];
  for (const { name, match, tokens } of cases) {
    it(name, async () => {
      const identity = await world.assumable({ claimMatch: match(world.workloads.issuer) });
      const ours = (one: unknown) =>
        typeof one === "string" ? one.replace("<us>", world.url).replace("<host>", new URL(world.url).host) : one;
      for (const [claims, expected] of tokens) {
        const aud = Array.isArray(claims.aud) ? claims.aud.map(ours) : (ours(claims.aud) ?? world.url);
        const outcome = await outcomeOf(identity, world.token({ ...claims, aud }));
        assert.deepEqual(outcome, expected === "OK" ? "OK" : expected(identity), JSON.stringify(claims));
      }
    });
  }
});

describe("static keys", () => {
  const pair = () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return { jwk: { ...publicKey.export({ format: "jwk" }), kid: "k", use: "sig" }, privateKey };
  };
  const ours = pair();
  const create = async (values: object = {}) => {
    const staticKeys = {
      issuer: "https://cluster.example",
      subject: "pod",
      issuerKeys: JSON.stringify({ keys: [ours.jwk] }),
      ...values,
    };
    const json = { name: "cluster", staticKeys };
    const response = await ask(world.url, `/iam/v2beta1/identities/${world.root}`, {
      method: "POST",
      json,
      bearer: world.owner.token,
    });
    assert.equal(response.status, 200, response.text);
    return String(response.json.uid);
  };
  const token = (claims: object = {}, key = ours.privateKey, atMs = Date.now()) => {
    const nowS = Math.floor(atMs / 1000);
    const usual = { iss: "https://cluster.example", sub: "pod", aud: world.url, iat: nowS, exp: nowS + 600 };
    return signToken({ alg: "ES256", kid: "k", typ: "JWT" }, { ...usual, ...claims }, key);
  };

  it("admit tokens of the key, with act", async () => {
    const identity = await create();
    const claims = claimsOf(await world.exchangeToken({ identity }, token()));
    assert.deepEqual(
      [claims.sub, claims.act],
      [identity, { iss: "https://cluster.example", sub: "pod", aud: world.url }],
    );
  });

  it("and no other tokens", async () => {
    const identity = await create();
    const other = await create({ issuerKeys: JSON.stringify({ keys: [pair().jwk] }) });
    const forbidden = permissionDenied(`assuming ${identity}`);
    assert.deepEqual(await outcomeOf(identity, token({}, pair().privateKey)), forbidden);
    assert.deepEqual(await outcomeOf(other, token()), notAssumable(other), "keys of another identity");
    assert.deepEqual(await outcomeOf(identity, token({ sub: "pods" })), forbidden);
    assert.deepEqual(await outcomeOf(identity, token({ iss: "https://cluster.example/" })), forbidden);
    assert.deepEqual(
      await outcomeOf(identity, token({ aud: "https://elsewhere.example" })),
      notAssumable(identity, true),
    );
    const stated = await create({ audiences: ["cluster"] });
    assert.equal(await outcomeOf(stated, token({ aud: "cluster" })), "OK");
    assert.deepEqual(await outcomeOf(stated, token()), permissionDenied(`assuming ${stated}`));
    const unreadable = await create({ issuerKeys: "no keys" });
    assert.deepEqual(await outcomeOf(unreadable, token()), notAssumable(unreadable));
  });

  it("run out", async () => {
    const expirationTime = new Date(Date.now() + HOUR_MS).toISOString();
    const identity = await create({ expirationTime });
    assert.equal(await outcomeOf(identity, token()), "OK");
    world.harness.skewMs = HOUR_MS;
    try {
      const late = token({}, ours.privateKey, Date.now() + HOUR_MS);
      assert.deepEqual(await outcomeOf(identity, late), notAssumable(identity));
    } finally {
      world.harness.skewMs = 0;
    }
  });
});

it("AWS roles are admitted as AWS answers, over the exchange", async (context: TestContext) => {
  const sts = await serveSts(context);
  const own = await startExchangeWorld({ awsStsOrigins: sts.origin, trustedIssuers: sts.origin });
  context.after(() => own.stop());
  const awsIdentity = { awsAccount: awsRole.account, awsArn: awsRole.arn, awsUserIdPattern: "AROAEXAMPLEC2UL7LUB:.+" };
  const { awsArn: arn, awsUserIdPattern: userIdPattern, ...account } = awsIdentity;
  const [identity, other] = [
    await own.assumable({ awsIdentity: { ...account, arn, userIdPattern } }),
    await own.assumable({ awsIdentity: { ...account, arn: `${arn}x`, userIdPattern } }),
  ];
  const matched = await own.workload("ci");
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const bearer = (uid: string, secret?: string) => {
    const headers = {
      accept: "application/json",
      "chainguard-audience": own.url,
      "chainguard-identity": uid,
      "x-amz-date": date,
    };
    return bearerOf(signRequest({ origin: sts.origin, headers, ...(secret && { secret }) }));
  };
  const claims = claimsOf(await own.exchangeToken({ identity }, bearer(identity)));
  const { account: Account, arn: Arn, userId } = awsRole;
  assert.deepEqual(claims.act, { sub: Arn, account: Account, arn: Arn, userId });
  const request = sts.requests.length;
  assert.equal(request, 1);
  const exchangeOutcome = async (uid: string, token: string) => (await own.exchange({ identity: uid }, token)).outcome;
  const unknown = randomIds.newUid(own.root);
  for (const uid of [unknown, matched])
    assert.deepEqual(await exchangeOutcome(uid, bearer(uid)), permissionDenied(`assuming ${uid}`));
  for (const uid of [identity, unknown]) assert.deepEqual(await exchangeOutcome(uid, bearer(other)), unauthenticated());
  assert.equal(sts.requests.length, request, "nobody was asked about what fits no identity");
  assert.deepEqual(await exchangeOutcome(other, bearer(other)), permissionDenied(`assuming ${other}`));
  assert.deepEqual(await exchangeOutcome(identity, bearer(identity, "guessed")), notAssumable(identity));
});

describe("which issuers are requested", () => {
  let own: ExchangeWorld;
  let down: LocalIssuer;
  before(async () => {
    own = await startExchangeWorld();
    down = await startLocalIssuer();
  });
  after(() => own.stop());

  it("only the issuer that the named identity is registered with", async () => {
    const elsewhere = await own.assumable({ claimMatch: { issuer: "https://elsewhere.example", subject: "s" } });
    const pattern = await own.assumable({
      claimMatch: { issuerPattern: "https://elsewhere\\.example/.*", subject: "s" },
    });
    await own.workload("s");
    for (const identity of [randomIds.newUid(own.root), elsewhere, pattern, own.root, own.owner.uid, ""]) {
      assert.notEqual((await own.exchange({ identity }, own.token({ sub: "s" }))).status, 200);
    }
    assert.notEqual(
      (await own.exchange({ identityProvider: randomIds.newUid(own.root) }, own.token({ sub: "s" }))).status,
      200,
    );
    const provider = await makeProvider(own);
    const other = own.token({ sub: "s", aud: provider.client });
    assert.equal((await own.exchange({ identityProvider: provider.uid }, other)).status, 401);
    const registering = await ask(own.url, "/auth/v1/register", {
      method: "POST",
      json: {},
      bearer: own.token({ sub: "s" }),
    });
    assert.equal(registering.status, 400, registering.text);
    assert.deepEqual(
      [own.workloads.requests, own.people.requests],
      [
        { discovery: 0, keys: 0 },
        { discovery: 0, keys: 0 },
      ],
    );
  });

  it("an issuer that is, once for many", async () => {
    const identity = await own.workload("many");
    const bearer = own.token({ sub: "many" });
    const responses = await Promise.all(Array.from({ length: 50 }, () => own.exchange({ identity }, bearer)));
    assert.deepEqual(
      responses.map(({ status }) => status),
      responses.map(() => 200),
    );
    assert.deepEqual(own.workloads.requests, { discovery: 1, keys: 1 });
  });

  it("one that is down makes the exchange unavailable, not the token valid", async () => {
    const identity = await own.assumable({ claimMatch: { issuer: down.issuer, subject: "s" } });
    const bearer = down.token({ aud: own.url, sub: "s" });
    await down.stop();
    const { status, json, headers, text } = await own.exchange({ identity }, bearer);
    assert.deepEqual([status, json.code], [503, Code.Unavailable]);
    assert.equal(json.message, "Unavailable: the keys of the token's issuer cannot be obtained");
    const retryAfterS = Number(headers.get("retry-after"));
    assert.ok(retryAfterS > 0 && retryAfterS <= 30, `retry after ${retryAfterS} s`);
    assert.ok(!/ECONN|127\.0\.0\.1:\d|stack/.test(text.replaceAll(own.url, "")), text);
  });
});

describe("an identity that changes between check and issue", () => {
  const setUp = async () => {
    const identity = await world.workload("before");
    const { installation } = world.harness.app;
    const exchanger = exchangerOf({ installation, url: world.url, trustedOrigins: [world.workloads.issuer] });
    const bearer = world.token({ sub: "before" });
    const request = { aud: [world.url], cap: [], scopes: [], identity, identityProvider: "" };
    const verified = await exchanger.verify(request, bearer, "127.0.0.1");
    const finish = () => installation.store.read((tx) => exchanger.finish(tx, verified, "127.0.0.1"));
    return { identity, finish };
  };
  const { privateKey: _, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuerKeys = JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] });
  const changes: readonly [name: string, relationship: (issuer: string) => object][] = [
    ["to another subject", (issuer) => ({ claimMatch: { issuer, subject: "after" } })],
    ["to another issuer", () => ({ claimMatch: { issuer: "https://elsewhere.example", subject: "before" } })],
    ["to another audience", (issuer) => ({ claimMatch: { issuer, subject: "before", audience: "other" } })],
    ["to static keys", (issuer) => ({ staticKeys: { issuer, subject: "before", issuerKeys } })],
    ["to an AWS account", () => ({ awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "b" } })],
    ["to nothing", () => ({})],
  ];
  for (const [name, relationship] of changes) {
    it(`${name} gives no token`, async () => {
      const { identity, finish } = await setUp();
      assert.equal((await finish()).identityUid, identity, "before the change it would");
      await world.write((tx) =>
        tx.table(identityKind).update(identity, { relationship: relationship(world.workloads.issuer) }, 1),
      );
      await assert.rejects(async () => finish(), { code: Code.PermissionDenied });
    });
  }

  it("and is gone gives no token", async () => {
    const { identity, finish } = await setUp();
    await world.write((tx) => tx.table(identityKind).delete(identity));
    await assert.rejects(async () => finish(), { code: Code.PermissionDenied, message: /assuming/ });
  });

  it("and its tokens are void with it", async () => {
    const identity = await world.workload("gone");
    const token = await world.exchangeToken({ identity }, world.token({ sub: "gone" }));
    const call = () => ask(world.url, "/auth/v1/ok", { bearer: token });
    assert.equal((await call()).status, 200);
    const path = `/iam/v2beta1/identities/${identity}`;
    assert.equal((await ask(world.url, path, { method: "DELETE", bearer: world.owner.token })).status, 200);
    assert.deepEqual((await call()).outcome, unauthenticated());
  });
});
