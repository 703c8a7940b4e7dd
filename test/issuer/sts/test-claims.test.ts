// Which condition of the exchange a token or its claims fail, and that testing them has no effect.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { after, before, describe, it, type TestContext } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { Condition } from "#gen/arbor/access/v1/access_pb.js";
import { notAssumable } from "../../../src/issuer/sts/audience.js";
import { describeFailure, describeUnreadable } from "../../../src/issuer/sts/failed-condition.js";
import { databaseBusy, unavailable } from "../../../src/kernel/errors.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type LocalIssuer, signToken, startLocalIssuer } from "../../support/local-issuer.js";
import { createRandom } from "../../support/openapi/random.js";
import { audienceEdits, EDITABLE, type Edit, issuerEdits, strangeClaims, textEdits } from "../strangers/texts.js";
import { farTimes, wrongTimes } from "../strangers/times.js";
import { createTokenKit } from "../strangers/token-kit.js";
import { strangeTokens, tokensBeyondHeaders } from "../strangers/tokens.js";
import { createClaimsTester, type TestClaims, type Tested, testOverRest } from "./claims-tester.js";
import { type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";
import { role as awsRole, bearerOf, serveSts, signRequest } from "./sts.js";

const SUBJECT = "repo:acme/app";
const OTHER = "https://elsewhere.example";
const SERVICE_PRINCIPAL = "SERVICE_PRINCIPAL_COSIGNED";

let world: ExchangeWorld;
let stranger: LocalIssuer;
let testClaims: TestClaims;
let stopSts = () => {};
let stsOrigin: string;
const pair = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const stored = pair();
const foreign = pair();

before(async () => {
  const stops: (() => void)[] = [];
  const sts = await serveSts({ after: (stop: () => void) => void stops.push(stop) } as unknown as TestContext);
  stopSts = () => stops.forEach((stop) => void stop());
  stsOrigin = sts.origin;
  world = await startExchangeWorld({ awsStsOrigins: sts.origin, trustedIssuers: sts.origin });
  stranger = await startLocalIssuer();
  testClaims = testOverRest(world);
});

after(async () => {
  await world?.stop();
  await stranger?.stop();
  stopSts();
});

const nowS = () => Math.floor(Date.now() / 1000);
const token = (claims: object = {}) => world.token({ sub: SUBJECT, ...claims });
const claimMatch = (more: object = {}) => {
  const literal = { issuer: world.workloads.issuer, subject: SUBJECT };
  const kept = Object.entries({ ...literal, ...more }).filter(([, value]) => value !== undefined);
  return { claimMatch: Object.fromEntries(kept) };
};
const staticKeys = (more: object = {}) => ({
  staticKeys: {
    ...{ issuer: OTHER, subject: SUBJECT, expirationTime: "2099-01-01T00:00:00Z" },
    issuerKeys: JSON.stringify({ keys: [{ ...stored.publicKey.export({ format: "jwk" }), kid: "k" }] }),
    ...more,
  },
});
const keyToken = (claims: object = {}, key: KeyObject = stored.privateKey, kid = "k") =>
  signToken(
    { alg: "ES256", kid },
    { iss: OTHER, sub: SUBJECT, aud: world.url, iat: nowS(), exp: nowS() + 600, ...claims },
    key,
  );
const awsIdentity = (more: object = {}) => {
  const { account: awsAccount, arn, userId } = awsRole;
  return { awsIdentity: { awsAccount, arn, userId, ...more } };
};

interface Signed {
  readonly identity?: string;
  readonly audience?: string;
  readonly secret?: string;
  readonly ageMs?: number;
  readonly method?: string;
  readonly signed?: readonly string[];
}

const signAws = (identity: string, { audience = world.url, ageMs = 0, ...more }: Signed = {}) =>
  bearerOf(
    signRequest({
      origin: stsOrigin,
      ...more,
      headers: {
        accept: "application/json",
        "chainguard-audience": audience,
        "chainguard-identity": more.identity ?? identity,
        "x-amz-date": new Date(Date.now() - ageMs).toISOString().replace(/[-:]|\.\d+/g, ""),
      },
    }),
  );

/** Tests a token, and asserts that the exchange accepts it or not as well. */
async function testToken(identity: string, bearer: string): Promise<Tested> {
  const tested = await testClaims(identity, { case: "token", value: bearer });
  const { status } = await world.exchange({ identity }, bearer);
  assert.equal(status === 200, tested.accepted === true, `the exchange answers ${status}`);
  return tested;
}

interface Row {
  readonly name: string;
  readonly relationship: () => object;
  /** Tokens that differ in the condition alone. */
  readonly fails: (identity: string) => string;
  readonly passes?: (identity: string) => string;
  readonly expected: () => Tested;
}

const issuer = () => world.workloads.issuer;
const no = (condition: string, message: string, claim: object = {}) => ({
  failed: `CONDITION_${condition}`,
  ...claim,
  message,
});

/** Conditions whose cause is found with the keys of the issuer; every other cause is one of form. */
const conditionOf: Readonly<Record<string, string>> = {
  "is signed with an algorithm that is not that of the key": "SIGNATURE",
  "has a signature that does not verify": "SIGNATURE",
  "names no key of its issuer that can be used": "SIGNATURE",
  "lives longer than allowed": "TIME",
};

// One of each cause, and those without a dot, which might be signed requests to AWS.
const forms = [
  ...new Map(strangeTokens().map((one) => [one.upstream, one])).values(),
  ...strangeTokens().filter(({ differs }) => ["a word", "one part", "a request that is not signed"].includes(differs)),
].flatMap(({ differs, make, upstream }): Row[] => {
  if (upstream === undefined) return [];
  const fails = () => make(createTokenKit(world.workloads.goodParts({ sub: SUBJECT, aud: world.url })));
  const condition = conditionOf[upstream] ?? "FORM";
  const expected = () =>
    no(
      condition,
      fails().includes(".") ? `The token ${upstream}.` : "The token is neither a JWT nor a signed request to AWS.",
    );
  const name = `${condition.toLowerCase()}: ${differs}`;
  return [{ name, relationship: claimMatch, fails, passes: () => token(), expected }];
});

/** Rows of one claim. */
function differing(claim: "iss" | "sub" | "aud", edits: Readonly<Record<string, Edit>>, of: RowOf): readonly Row[] {
  const [what, message] = {
    iss: ["ISSUER", "The issuer of the token is not the one that the identity accepts."],
    sub: ["SUBJECT", "The subject of the token is not one that the identity accepts."],
    aud: ["AUDIENCE", "The token has no audience that the identity accepts."],
  }[claim] as [string, string];
  return Object.entries(edits).map(([differs, edit]) => {
    const { relationship, stated, make, isOwn = false } = of;
    const told = isOwn
      ? "The token is for another audience than this service, and the identity accepts no other."
      : message;
    return {
      name: `${what.toLowerCase()}: ${of.name}: ${differs}`,
      relationship,
      fails: () => make({ [claim]: edit(stated()) }),
      passes: () => make({ [claim]: stated() }),
      expected: () => no(what, told, { claim, expected: stated(), ...actualOf(edit(stated())) }),
    };
  });
}

interface RowOf {
  readonly name: string;
  readonly relationship: () => object;
  readonly stated: () => string;
  readonly make: (claims: object) => string;
  /** Whether the audience is that of this service, and not one that the identity states. */
  readonly isOwn?: boolean;
}

// JSON leaves out empty fields.
const actualOf = (actual: string) => (actual === "" ? {} : { actual });

const rows: readonly Row[] = [
  ...forms,
  {
    name: "relationship: a request to AWS for a claim match",
    relationship: claimMatch,
    fails: signAws,
    passes: () => token(),
    expected: () =>
      no(
        "RELATIONSHIP",
        "The identity is assumed with a token whose claims match, and not with a request that is signed for AWS.",
      ),
  },
  {
    name: "relationship: a request to AWS for static keys",
    relationship: staticKeys,
    fails: signAws,
    passes: () => keyToken(),
    expected: () =>
      no(
        "RELATIONSHIP",
        "The identity is assumed with a token that its keys verify, and not with a request that is signed for AWS.",
      ),
  },
  {
    name: "relationship: a token for an AWS role",
    relationship: awsIdentity,
    fails: () => token(),
    passes: signAws,
    expected: () =>
      no(
        "RELATIONSHIP",
        "The identity is assumed with a GetCallerIdentity request that an AWS user or role has signed.",
      ),
  },
  {
    name: "relationship: a token for a component of the service",
    relationship: () => ({ servicePrincipal: SERVICE_PRINCIPAL }),
    fails: () => token(),
    expected: () => no("RELATIONSHIP", "The identity is that of a component of the service, and no token assumes it."),
  },
  {
    name: "relationship: a token for an identity without one",
    relationship: () => ({}),
    fails: () => token(),
    expected: () => no("RELATIONSHIP", "The identity has no relationship, so that no token assumes it."),
  },
  {
    name: "form: 16 KiB and more",
    relationship: claimMatch,
    fails: () => token({ padding: "x".repeat(13_000) }),
    passes: () => token(),
    expected: () => no("FORM", "The token is too long."),
  },
  ...differing("iss", issuerEdits, { name: "claim match", relationship: claimMatch, stated: issuer, make: token }),
  ...differing("iss", issuerEdits, {
    name: "static keys",
    relationship: staticKeys,
    stated: () => OTHER,
    make: keyToken,
  }),
  ...differing("sub", textEdits, {
    ...{ name: "claim match", relationship: () => claimMatch({ subject: EDITABLE }) },
    ...{ stated: () => EDITABLE, make: token },
  }),
  ...differing("sub", textEdits, {
    ...{ name: "static keys", relationship: () => staticKeys({ subject: EDITABLE }) },
    ...{ stated: () => EDITABLE, make: keyToken },
  }),
  ...differing("aud", audienceEdits, {
    ...{ name: "none of this service", relationship: claimMatch, stated: () => world.url, make: token, isOwn: true },
  }),
  ...differing("aud", textEdits, {
    ...{ name: "claim match", relationship: () => claimMatch({ audience: EDITABLE }) },
    ...{ stated: () => EDITABLE, make: token },
  }),
  ...differing("aud", textEdits, {
    ...{ name: "static keys", relationship: () => staticKeys({ audiences: [EDITABLE] }) },
    ...{ stated: () => EDITABLE, make: keyToken },
  }),
  {
    name: "issuer: another one than the pattern",
    relationship: () => claimMatch({ issuer: undefined, issuerPattern: `${issuer()}/?` }),
    fails: () => token({ iss: `${issuer()}/x` }),
    passes: () => token(),
    expected: () =>
      no("ISSUER", "The issuer of the token is not the one that the identity accepts.", {
        ...{ claim: "iss", expected: `${issuer()}/?`, actual: `${issuer()}/x` },
      }),
  },
  {
    name: "issuer: this service",
    relationship: claimMatch,
    fails: () => token({ iss: world.url }),
    passes: () => token(),
    expected: () =>
      no("ISSUER", "The token was issued by this service.", { claim: "iss", expected: issuer(), actual: world.url }),
  },
  {
    name: "subject: another one than the pattern",
    relationship: () => claimMatch({ subject: undefined, subjectPattern: "repo:acme/[a-z]+" }),
    fails: () => token({ sub: `${SUBJECT}1` }),
    passes: () => token(),
    expected: () =>
      no("SUBJECT", "The subject of the token is not one that the identity accepts.", {
        ...{ claim: "sub", expected: "repo:acme/[a-z]+", actual: `${SUBJECT}1` },
      }),
  },
  ...[
    { what: "ARN", differing: { arn: `${awsRole.arn}x` }, expected: `${awsRole.arn}x`, actual: awsRole.arn },
    {
      ...{ what: "account", differing: { awsAccount: "000000000000" } },
      ...{ expected: "000000000000", actual: awsRole.account },
    },
    { what: "user id", differing: { userId: "x" }, expected: "x", actual: awsRole.userId },
  ].map(({ what, differing, ...texts }) => ({
    name: `subject: another ${what} of AWS`,
    relationship: () => awsIdentity(differing),
    fails: signAws,
    expected: () => no("SUBJECT", `The ${what} that AWS names is not that of the identity.`, texts),
  })),
  {
    name: "audience: none of this service",
    relationship: claimMatch,
    fails: () => token({ aud: [OTHER, "b"] }),
    passes: () => token({ aud: [OTHER, world.url] }),
    expected: () =>
      no("AUDIENCE", "The token is for another audience than this service, and the identity accepts no other.", {
        ...{ claim: "aud", expected: world.url, actual: `${OTHER}, b` },
      }),
  },
  {
    name: "audience: another one than the pattern",
    relationship: () => claimMatch({ audiencePattern: "https://.+" }),
    fails: () => token(),
    passes: () => token({ aud: OTHER }),
    expected: () =>
      no("AUDIENCE", "The token has no audience that the identity accepts.", {
        ...{ claim: "aud", expected: "https://.+", actual: world.url },
      }),
  },
  {
    name: "audience: a request to AWS for another service",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { audience: OTHER }),
    passes: signAws,
    expected: () =>
      no("AUDIENCE", "The chainguard-audience of the signed request is not this service.", { expected: world.url }),
  },
  {
    name: "audience: a request to AWS for another identity",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { identity: "another" }),
    passes: signAws,
    expected: () => no("AUDIENCE", "The chainguard-identity of the signed request is another identity."),
  },
  ...strangeClaims.map(({ differs, stated, given, claim, rule }) => ({
    name: `claim: ${differs}`,
    relationship: () => claimMatch(stated),
    fails: () => token(given),
    expected: () => {
      const expected = { ...stated.claims, ...stated.claimPatterns }[claim];
      const value = Object.hasOwn(given, claim) ? given[claim] : "";
      const actual = typeof value === "string" ? value : JSON.stringify(value);
      return no("CLAIM", `The claim ${claim} ${rule}.`, { claim, expected, ...actualOf(actual) });
    },
  })),
  {
    name: "claim: none, of a token that has all",
    relationship: () => claimMatch({ claims: { ref: "v1" }, claimPatterns: { ref: "v.", constructor: "a+" } }),
    fails: () => token({ ref: "v1", constructor: "b" }),
    passes: () => token({ ref: "v1", constructor: "aa" }),
    expected: () => {
      const texts = { claim: "constructor", expected: "a+", actual: "b" };
      return no("CLAIM", "The claim constructor is not what the identity accepts.", texts);
    },
  },
  ...[...wrongTimes, ...farTimes].flatMap(({ differs, rule, make }) => {
    const times = () => make(nowS(), 300, { leewayS: 60, maxLifeS: 25 * 3600 });
    const expected = () => no("TIME", `The token ${rule}.`);
    const forKeys = { relationship: staticKeys, fails: () => keyToken(times()), passes: () => keyToken() };
    return [
      {
        name: `time: ${differs}`,
        relationship: claimMatch,
        fails: () => token(times()),
        passes: () => token(),
        expected,
      },
      { name: `time of static keys: ${differs}`, ...forKeys, expected },
    ];
  }),
  {
    name: "time: a request to AWS that has expired",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { ageMs: 3_600_000 }),
    passes: signAws,
    expected: () => no("TIME", "The signed request has expired."),
  },
  {
    name: "time: a request to AWS of the future",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { ageMs: -3_600_000 }),
    passes: signAws,
    expected: () => no("TIME", "The signed request is dated in the future."),
  },
  {
    name: "signature: another key",
    relationship: claimMatch,
    fails: () => world.workloads.token({ aud: world.url, sub: SUBJECT }, { key: foreign.privateKey }),
    passes: () => token(),
    expected: () => no("SIGNATURE", "The token has a signature that does not verify."),
  },
  {
    name: "signature: another key than the stored one",
    relationship: staticKeys,
    fails: () => keyToken({}, foreign.privateKey),
    passes: () => keyToken(),
    expected: () => no("SIGNATURE", "The token has a signature that does not verify."),
  },
  {
    name: "signature: a key that is not stored",
    relationship: staticKeys,
    fails: () => keyToken({}, stored.privateKey, "other"),
    passes: () => keyToken(),
    expected: () => no("SIGNATURE", "The token names no key of its issuer that can be used."),
  },
  {
    name: "signature: stored keys that have expired",
    relationship: () => staticKeys({ expirationTime: "2020-01-01T00:00:00Z" }),
    fails: () => keyToken(),
    expected: () => no("SIGNATURE", "The token is for an identity whose keys have expired."),
  },
  {
    name: "signature: a request that AWS rejects",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { secret: "another secret" }),
    passes: signAws,
    expected: () => no("SIGNATURE", "AWS rejects the signed request: status 403."),
  },
  {
    name: "signature: a request to AWS that does not cover the audience",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { signed: ["accept", "chainguard-identity", "host", "x-amz-date"] }),
    passes: signAws,
    expected: () =>
      no("SIGNATURE", "The signature does not cover host, x-amz-date, chainguard-audience and chainguard-identity."),
  },
  {
    name: "form: a request to AWS that is no POST",
    relationship: awsIdentity,
    fails: (identity) => signAws(identity, { method: "GET" }),
    passes: signAws,
    expected: () => no("FORM", "The signed request to AWS is not accepted: the method is not POST."),
  },
  {
    name: "keys: an issuer that cannot be reached",
    relationship: () => claimMatch({ issuer: undefined, issuerPattern: "http://127.0.0.1:[0-9]+" }),
    fails: () => token({ iss: "http://127.0.0.1:1" }),
    passes: () => token(),
    expected: () => no("ISSUER_KEYS", "The keys of the token's issuer cannot be obtained."),
  },
];

describe("a token fails exactly one condition", () => {
  for (const { name, relationship, fails, passes, expected } of rows) {
    it(name, async () => {
      const identity = await world.assumable(relationship());
      assert.deepEqual(await testToken(identity, fails(identity)), expected());
      if (passes) assert.deepEqual(await testToken(identity, passes(identity)), { accepted: true });
    });
  }

  it("and every condition has a row", () => {
    const names = rows.map(({ name }) => name.split(/[ :]/)[0]);
    const conditions = ["form", "relationship", "issuer", "subject", "audience", "claim", "time", "signature", "keys"];
    assert.deepEqual(new Set(names), new Set(conditions));
  });

  it("and of several that fail, the first in the order of the exchange is told", async () => {
    const identity = await world.assumable(claimMatch({ audience: OTHER, claims: { ref: "main" } }));
    const wrong = { iat: nowS() - 1_000, exp: nowS() - 500, sub: "x", aud: "y" };
    const failed = async (bearer: string) => (await testToken(identity, bearer)).failed;
    assert.equal(await failed(token({ ...wrong, iss: stranger.issuer })), "CONDITION_TIME");
    const { sub, aud } = wrong;
    assert.equal(await failed(token({ sub, aud, iss: stranger.issuer })), "CONDITION_ISSUER");
    const forged = world.workloads.token({ sub, aud }, { key: foreign.privateKey });
    assert.equal(await failed(forged), "CONDITION_SIGNATURE");
    assert.equal(await failed(token({ sub, aud })), "CONDITION_SUBJECT");
    assert.equal(await failed(token({ aud })), "CONDITION_AUDIENCE");
    assert.equal(await failed(token({ aud: OTHER })), "CONDITION_CLAIM");
    assert.equal(await failed(token({ aud: OTHER, ref: "main" })), undefined);
  });
});

for (const { differs, make, upstream } of tokensBeyondHeaders) {
  // Fields of requests are checked before.
  if (differs === "nothing" || differs === "NUL after it") continue;
  it(`a token that no header holds is none: ${differs}`, async () => {
    const identity = await world.assumable(claimMatch());
    const kit = createTokenKit(world.workloads.goodParts({ sub: SUBJECT, aud: world.url }));
    const tested = await testClaims(identity, { case: "token", value: make(kit) });
    assert.deepEqual(tested, no("FORM", `The token ${upstream}.`));
  });
}

describe("claims are compared without signature and times", () => {
  const test = (identity: string, claims: object) =>
    testClaims(identity, { case: "claims", value: claims as JsonObject });
  const good = () => ({ iss: issuer(), sub: SUBJECT, aud: world.url });

  it("with a claim match", async () => {
    const identity = await world.assumable(claimMatch({ claims: { ref: "main", protected: "true" } }));
    const all = { ...good(), ref: "main", protected: true };
    assert.deepEqual(await test(identity, all), { accepted: true });
    assert.deepEqual(await test(identity, { ...all, aud: ["x", world.url] }), { accepted: true });
    const failing: readonly [object, string, string, string, string][] = [
      [{ iss: OTHER }, "ISSUER", "iss", issuer(), OTHER],
      [{ iss: world.url }, "ISSUER", "iss", issuer(), world.url],
      [{ sub: "x" }, "SUBJECT", "sub", SUBJECT, "x"],
      [{ aud: ["x", "y"] }, "AUDIENCE", "aud", world.url, "x, y"],
      [{ ref: "dev" }, "CLAIM", "ref", "main", "dev"],
      [{ protected: false }, "CLAIM", "protected", "true", "false"],
    ];
    for (const [change, condition, claim, expected, actual] of failing) {
      const { message, ...rest } = await test(identity, { ...all, ...change });
      assert.deepEqual(rest, { failed: `CONDITION_${condition}`, claim, expected, actual });
      assert.match(String(message), /^[A-Z].+\.$/);
    }
  });

  it("but never with those of a token of this service, which cannot be exchanged", async () => {
    const identity = await world.assumable(claimMatch({ issuer: undefined, issuerPattern: ".+" }));
    assert.deepEqual(await test(identity, good()), { accepted: true });
    const { failed, message } = await test(identity, { ...good(), iss: world.url });
    assert.deepEqual([failed, message], ["CONDITION_ISSUER", "The token was issued by this service."]);
  });

  it("with static keys, even if these have expired", async () => {
    const expirationTime = "2020-01-01T00:00:00Z";
    const identity = await world.assumable(staticKeys({ audiences: ["a"], expirationTime }));
    const all = { iss: OTHER, sub: SUBJECT, aud: "a" };
    assert.deepEqual(await test(identity, all), { accepted: true });
    assert.equal((await test(identity, { ...all, iss: issuer() })).failed, "CONDITION_ISSUER");
    assert.equal((await test(identity, { ...all, sub: "x" })).failed, "CONDITION_SUBJECT");
    assert.equal((await test(identity, { ...all, aud: world.url })).failed, "CONDITION_AUDIENCE");
  });

  it("and fail for identities that no token assumes", async () => {
    for (const relationship of [awsIdentity(), { servicePrincipal: SERVICE_PRINCIPAL }, {}]) {
      const identity = await world.assumable(relationship);
      assert.equal((await test(identity, good())).failed, "CONDITION_RELATIONSHIP", JSON.stringify(relationship));
    }
  });

  it("and are fetched for nothing", async () => {
    const before = { ...world.workloads.requests };
    await test(await world.assumable(claimMatch()), good());
    assert.deepEqual(world.workloads.requests, before);
  });

  const issRule = "claims.iss must be a text of 1 to 255 characters";
  const subRule = "claims.sub must be a text of 1 to 1024 characters";
  const audRule = "claims.aud must be a text, or a list of 1 to 16 texts";
  const invalid: readonly (readonly [change: object, message: string])[] = [
    ...[undefined, "", 7, null, ["x"], "x".repeat(256)].map((iss) => [{ iss }, `claims.iss: ${issRule}`] as const),
    ...[undefined, "", true, {}, "x".repeat(1025)].map((sub) => [{ sub }, `claims.sub: ${subRule}`] as const),
    ...[undefined, 7, [], [7], {}, Array(17).fill("x")].map((aud) => [{ aud }, `claims.aud: ${audRule}`] as const),
    [{ iss: 1, sub: 1, aud: 1 }, `claims.iss: ${issRule}; claims.sub: ${subRule}; claims.aud: ${audRule}`],
  ];
  for (const [change, message] of invalid) {
    it(`unless ${JSON.stringify(change).slice(0, 60)} is among them`, async () => {
      const identity = await world.assumable(claimMatch());
      const claims = Object.fromEntries(
        Object.entries({ ...good(), ...change }).filter(([, value]) => value !== undefined),
      );
      assert.deepEqual(await test(identity, claims), {
        code: "INVALID_ARGUMENT",
        message: `Invalid argument: ${message}`,
      });
    });
  }
});

describe("a test needs", () => {
  const subject = () => ({ case: "token", value: token() }) as const;

  it("a token or claims", async () => {
    const identity = await world.assumable(claimMatch());
    for (const nothing of [undefined, { case: "token", value: "" } as const]) {
      assert.deepEqual(await testClaims(identity, nothing), {
        code: "INVALID_ARGUMENT",
        message: "Invalid argument: token: set either token or claims",
      });
    }
  });

  it("an identity that exists", async () => {
    const missing = randomIds.newUid(world.root);
    const notFound = { code: "NOT_FOUND", message: `Not found: identity: there is no identity ${missing}` };
    for (const one of [subject(), { case: "token", value: "garbage" } as const]) {
      assert.deepEqual(await testClaims(missing, one), notFound);
    }
    const claims = { iss: "a", sub: "b", aud: "c" };
    assert.deepEqual(await testClaims(missing, { case: "claims", value: claims }), notFound);
  });

  it("the right to change the identity, which strangers and viewers lack", async () => {
    const identity = await world.assumable(claimMatch());
    const testAs = async (role: string) => {
      const uid = await world.workload(role, { role });
      return testOverRest(world, await world.harness.token(uid))(identity, subject());
    };
    const foreignTest = testOverRest(world, world.foreignOwner.token);
    assert.equal((await foreignTest(identity, subject())).code, "PERMISSION_DENIED");
    assert.equal((await testAs("viewer")).code, "PERMISSION_DENIED");
    assert.deepEqual(await testAs("owner"), { accepted: true });
  });
});

describe("an identity that is changed while the keys of its issuer are fetched", () => {
  /** Tests the usual token, and changes the relationship after the first half. */
  async function change(from: object, to: object): Promise<Tested> {
    const identity = await world.assumable(from);
    const changing = createClaimsTester(world, [], ({ issuers }) => ({
      issuers: {
        async verify(...given) {
          const verified = await issuers.verify(...given);
          await world.write((tx) => tx.table(identityKind).update(identity, { relationship: to }, Date.now()));
          return verified;
        },
      },
    }));
    return changing(identity, { case: "token", value: token() });
  }

  it("is compared with the token again", async () => {
    assert.deepEqual(await change(claimMatch(), claimMatch({ audience: world.url })), { accepted: true });
    const { failed, expected } = await change(claimMatch(), claimMatch({ subject: "new" }));
    assert.deepEqual([failed, expected], ["CONDITION_SUBJECT", "new"]);
  });

  it("cannot be told why the token failed before", async () => {
    assert.deepEqual(await change(claimMatch({ subject: "old" }), claimMatch()), {
      code: "ABORTED",
      message: "Aborted: the identity was changed while the token was verified, try again",
    });
  });
});

describe("the exchange and the test agree", () => {
  const SUBJECTS = [SUBJECT, "repo:acme/api", "repo:other/app"];

  async function createIdentities(): Promise<string[]> {
    const issuers = [
      { issuer: issuer() },
      { issuer: undefined, issuerPattern: `${issuer()}.*` },
      { issuer: undefined, issuerPattern: `${stranger.issuer}|${issuer()}` },
    ];
    const subjects = [{}, { subject: undefined, subjectPattern: "repo:acme/.+" }];
    const audiences = [{}, { audience: OTHER }, { audiencePattern: `(${OTHER}|${world.url})` }];
    const claims = [{}, { claims: { ref: "main" } }, { claimPatterns: { ref: "ma.+|true" } }];
    const all = issuers.flatMap((a) =>
      subjects.flatMap((b) => audiences.flatMap((c) => claims.map((d) => claimMatch({ ...a, ...b, ...c, ...d })))),
    );
    const others = [staticKeys(), staticKeys({ audiences: [OTHER] }), awsIdentity(), {}];
    return Promise.all([...all, ...others].map((one) => world.assumable(one)));
  }

  /** A random token, half of which are good for most identities. */
  function draw({ pick, chance }: ReturnType<typeof createRandom>): string {
    const claims = {
      sub: chance(0.7) ? SUBJECT : pick(SUBJECTS),
      aud: chance(0.5) ? [world.url, OTHER] : pick([world.url, OTHER, [OTHER, "x"], "x"]),
      ...(chance(0.8) && { ref: pick(["main", "main", "mai", true, 7, ["main"]]) }),
      ...(chance(0.05) && { exp: nowS() - 3_600, iat: nowS() - 7_200 }),
      ...(chance(0.05) && { exp: nowS() + 26 * 3_600 }),
      ...(chance(0.05) && { sub: undefined }),
    };
    if (chance(0.15)) return keyToken(claims, pick([stored.privateKey, stored.privateKey, foreign.privateKey]));
    if (chance(0.1)) return stranger.token(claims);
    return world.workloads.token(claims, chance(0.05) ? { key: foreign.privateKey } : {});
  }

  it("about random identities and tokens, and with a broken matcher they do not", async () => {
    const random = createRandom(20_261_127);
    const identities = await createIdentities();
    const broken = [
      createClaimsTester(world, [stsOrigin], () => ({ ownUrls: [OTHER], audiences: [OTHER] })),
      createClaimsTester(world, [stsOrigin], ({ issuers }) => ({
        issuers: {
          async verify(...given) {
            const verified = await issuers.verify(...given);
            return { ...verified, claims: { ...verified.claims, ref: "main" } };
          },
        },
      })),
    ];
    const differing = broken.map(() => 0);
    let accepted = 0;
    for (let i = 0; i < 400; i++) {
      const [identity, bearer] = [random.pick(identities), draw(random)];
      const subject = { case: "token", value: bearer } as const;
      const isAccepted = (await world.exchange({ identity }, bearer)).status === 200;
      const tested = await testClaims(identity, subject);
      assert.equal(tested.accepted === true, isAccepted, `${i}: ${JSON.stringify(tested)}`);
      assert.equal(tested.failed !== undefined, !isAccepted, `${i}: ${JSON.stringify(tested)}`);
      if (isAccepted) accepted++;
      for (const [n, test] of broken.entries()) {
        const differs = ((await test(identity, subject)).accepted === true) !== isAccepted;
        if (differs) differing[n] = (differing[n] ?? 0) + 1;
      }
    }
    assert.ok(accepted > 60 && accepted < 340, `${accepted} are accepted`);
    for (const [n, count] of differing.entries()) assert.ok(count > 10, `${count} differ with broken matcher ${n}`);
  });
});

it("a person signs in, and no token assumes one", () => {
  // No role reaches beyond groups, so nobody may change the identity of a person.
  const error = notAssumable("p", "identity_relationship");
  const tested = { relationship: { case: undefined }, isPerson: true, claims: undefined, audience: "" };
  assert.deepEqual(describeFailure(error, tested), {
    accepted: false,
    failed: Condition.RELATIONSHIP,
    message: "The identity is a person, who signs in with a login provider, and no token assumes it.",
  });
});

it("a fault of the service is an error and no condition", () => {
  const tested = { relationship: { case: undefined }, isPerson: false, claims: undefined, audience: "" };
  for (const fault of [new Error("x"), unavailable("the database cannot be reached"), databaseBusy()]) {
    assert.throws(
      () => describeFailure(fault, tested),
      (error) => error === fault,
    );
    assert.throws(
      () => describeUnreadable(fault),
      (error) => error === fault,
    );
  }
});
