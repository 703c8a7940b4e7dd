// How long keys are cached, and how often an issuer is requested.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { createIssuers, type Issuers, type Registration } from "../../../src/issuer/upstream/issuers.js";
import { type ParsedToken, parseUpstreamToken, type VerifiedToken } from "../../../src/issuer/upstream/token.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";
import { withResolvers } from "../../support/feature/streamed.js";
import { chooseScale } from "../../support/scale.js";
import {
  DISCOVERY,
  type ForeignIssuer,
  goodClaims,
  JWKS,
  json,
  MAX_LIFE_S,
  NOW_S,
  serve,
  signToken,
  startIssuer,
  testKey,
} from "./foreign-issuer.js";

const OPERATOR = { organisation: undefined };
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const UNKNOWN = chooseScale(10_000, 200);
const AT_ONCE = chooseScale(1_000, 200);
const first = testKey("ES256", "first");
const second = testKey("ES256", "second");
let nowMs = 0;
let other: ForeignIssuer;
let issuers: Issuers;
let problems = 0;

beforeEach(async () => {
  nowMs = NOW_S * 1000;
  problems = 0;
  other = await startIssuer([first]);
  issuers = issuersTrusting(new URL(other.issuer).origin);
});

afterEach(() => other.close());

function issuersTrusting(origin: string): Issuers {
  const fetch = createGuardedFetch({ trustedOrigins: [origin] });
  return createIssuers({
    maxTokenLifeS: MAX_LIFE_S,
    fetch,
    clock: () => nowMs,
    isOwnIssuer: () => false,
    onProblem: () => problems++,
  });
}

/** A token that is good at the time of the test. */
function tokenBy(key: typeof first, issuer = other.issuer): ParsedToken {
  const iat = nowMs / 1000;
  return parseUpstreamToken(signToken(key, { ...goodClaims(issuer), iat, exp: iat + 600 }));
}

const verify = async (key: typeof first): Promise<VerifiedToken> => issuers.verify(tokenBy(key), OPERATOR);
const times = (path: string) => other.requests.filter((requested) => requested === path).length;
const isError = (code: Code) => (error: unknown) => error instanceof ApiError && error.code === code;
const assertRejected = (key: typeof first) => assert.rejects(verify(key), isError(Code.Unauthenticated));
const isUnavailable = (key: typeof first) => assert.rejects(verify(key), isError(Code.Unavailable));
const breakDown = () => other.answers.set(JWKS, (res) => json(res, {}, 503));

test("keys are used for ten minutes without a request, and then fetched again", async () => {
  await verify(first);
  nowMs += 10 * MINUTE - 1;
  assert.equal(issuers.verify(tokenBy(first), OPERATOR) instanceof Promise, false);
  assert.equal(times(JWKS), 1);
  nowMs += 1;
  await verify(first);
  assert.deepEqual([times(DISCOVERY), times(JWKS)], [2, 2]);
});

test(`${AT_ONCE} tokens at once make one request for the metadata and one for the keys`, async () => {
  await Promise.all(Array.from({ length: AT_ONCE }, () => verify(first)));
  assert.deepEqual(other.requests, [DISCOVERY, JWKS]);
});

test("a key that was published a second ago is found at once, and a withdrawn one is gone then", async () => {
  await verify(first);
  nowMs += SECOND;
  other.keys = [second];
  await verify(second);
  assert.equal(times(JWKS), 2);
  nowMs += 30 * SECOND;
  await assertRejected(first);
});

test("an unknown key id causes one request in 30 s, however many tokens have it", async () => {
  await verify(first);
  nowMs += SECOND;
  await assertRejected(second);
  await Promise.all(Array.from({ length: 100 }, () => assertRejected(second)));
  assert.equal(times(JWKS), 2);
  nowMs += 30 * SECOND;
  await assertRejected(second);
  assert.equal(times(JWKS), 3);
});

/** How many tokens were UNAUTHENTICATED, and how many UNAVAILABLE with a time to retry. */
async function judge(
  tokens: readonly ParsedToken[],
): Promise<{ rejected: number; unavailable: number; waits: Set<bigint> }> {
  const outcomes = { rejected: 0, unavailable: 0, waits: new Set<bigint>() };
  await Promise.all(
    tokens.map(async (token) => {
      try {
        await issuers.verify(token, OPERATOR);
      } catch (error) {
        if (isError(Code.Unauthenticated)(error)) outcomes.rejected++;
        if (!isError(Code.Unavailable)(error)) return;
        outcomes.unavailable++;
        for (const { value } of (error as ApiError).details)
          outcomes.waits.add((value as { retryDelay: { seconds: bigint } }).retryDelay.seconds);
      }
    }),
  );
  return outcomes;
}

const withoutKid = (key: typeof first) => {
  const iat = nowMs / 1000;
  const claims = { ...goodClaims(other.issuer), iat, exp: iat + 600 };
  return parseUpstreamToken(signToken(key, claims, { alg: key.alg }));
};

for (const [kind, unknownAt] of [
  ["unknown key ids", (i: number) => tokenBy({ ...first, kid: `unknown ${i}` })],
  ["tokens without a kid that no key verifies", () => withoutKid(second)],
] as const) {
  test(`${UNKNOWN} ${kind} cause four requests in 30 s beside that for the keys; the others may come again`, async () => {
    await verify(first);
    nowMs += SECOND;
    const unknown = Array.from({ length: UNKNOWN }, (_, i) => unknownAt(i));
    const { rejected, unavailable, waits } = await judge(unknown);
    assert.deepEqual([rejected, unavailable, [...waits]], [4, UNKNOWN - 4, [29n]]);
    assert.deepEqual([times(DISCOVERY), times(JWKS)], [5, 5]);
    // Those that the issuer was asked for stay rejected.
    assert.equal((await judge(unknown)).rejected, 4);
    assert.equal(times(JWKS), 5);
    // The keys that are known verify meanwhile, without a request.
    await verify(first);
    // A key that is published now is not found before the time that callers were told, and then it is.
    other.keys = [first, second];
    await isUnavailable(second);
    nowMs += 29 * SECOND;
    await verify(second);
    await verify(first);
    assert.equal(times(JWKS), 6);
  });
}

test("tokens without a kid are verified with a key that was published a second ago", async () => {
  await issuers.verify(withoutKid(first), OPERATOR);
  nowMs += SECOND;
  other.keys = [first, second];
  await issuers.verify(withoutKid(second), OPERATOR);
  await issuers.verify(withoutKid(first), OPERATOR);
  assert.equal(times(JWKS), 2);
});

test("a token that waits for a request that began before its key was published causes another one", async () => {
  await verify(first);
  nowMs += SECOND;
  const { promise: asked, resolve: noteAsked } = withResolvers();
  const { promise: published, resolve: publish } = withResolvers();
  // The response has the keys of the time when it was asked for.
  other.answers.set(JWKS, async (res) => {
    other.answers.delete(JWKS);
    noteAsked();
    await published;
    json(res, { keys: [first.publicJwk] });
  });
  const forged = assertRejected({ ...first, kid: "unknown" });
  await asked;
  other.keys = [first, second];
  const waiting = verify(second);
  publish();
  await forged;
  await waiting;
  assert.equal(times(JWKS), 3);
});

test("a key of a kid that is known is not looked for again, whatever signs with it", async () => {
  await verify(first);
  nowMs += MINUTE;
  await assertRejected({ ...second, kid: first.kid });
  assert.equal(times(JWKS), 1);
});

test("keys that cannot be fetched because others hang are unavailable for unknown key ids too", async () => {
  const tarpit = await serve(() => {});
  const fetch = createGuardedFetch({ trustedOrigins: [new URL(other.issuer).origin, tarpit.origin] });
  issuers = createIssuers({ maxTokenLifeS: MAX_LIFE_S, fetch, clock: () => nowMs, isOwnIssuer: () => false });
  const registration = { organisation: "a" };
  await issuers.verify(tokenBy(first), registration);
  const hanging = Array.from({ length: 36 }, (_, i) =>
    Promise.resolve(issuers.verify(tokenBy(first, `${tarpit.origin}/${i}`), registration)).catch(() => "hung"),
  );
  try {
    await assert.rejects(async () => issuers.verify(tokenBy(second), registration), isError(Code.Unavailable));
    await issuers.verify(tokenBy(first), registration);
    await Promise.all(hanging);
  } finally {
    tarpit.close();
  }
});

test("keys are used for an hour while the issuer fails, with one request in 30 s", async () => {
  await verify(first);
  breakDown();
  nowMs += 11 * MINUTE;
  await verify(first);
  await verify(first);
  assert.deepEqual([times(JWKS), problems], [2, 1]);
  nowMs += 30 * SECOND;
  await verify(first);
  assert.equal(times(JWKS), 3);
  nowMs = NOW_S * 1000 + 60 * MINUTE - 1;
  await verify(first);
  nowMs += 1;
  await isUnavailable(first);
  nowMs += 30 * SECOND;
  await isUnavailable(first);
  other.answers.clear();
  nowMs += 30 * SECOND;
  await verify(first);
});

test("a key that is not known of an issuer that fails may be a new one: try again later", async () => {
  await verify(first);
  breakDown();
  nowMs += MINUTE;
  await isUnavailable(second);
  await verify(first);
  assert.equal(times(JWKS), 2);
});

test("an issuer that withdraws all its keys is believed", async () => {
  await verify(first);
  other.keys = [];
  nowMs += 10 * MINUTE;
  await assertRejected(first);
});

test("an issuer that failed is not requested again for 30 s, and callers get the retry time", async () => {
  breakDown();
  await isUnavailable(first);
  nowMs += 10 * SECOND;
  await assert.rejects(verify(first), (error: ApiError) => {
    assert.deepEqual(
      error.details.map(({ value }) => value),
      [{ retryDelay: { seconds: 20n, nanos: 0 } }],
    );
    return true;
  });
  await Promise.all(Array.from({ length: 100 }, () => isUnavailable(first)));
  assert.deepEqual([other.requests.length, problems], [2, 1]);
  other.answers.clear();
  nowMs += 20 * SECOND;
  await verify(first);
});

test("a clock that is set back makes nothing younger", async () => {
  await verify(first);
  nowMs -= 60 * MINUTE;
  await verify(first);
  assert.equal(times(JWKS), 2);
  breakDown();
  nowMs -= MINUTE;
  await isUnavailable(first);
});

/** An issuer for every path below its origin except those that begin with `bad`; it records the requests. */
async function manyIssuers() {
  const requested: string[] = [];
  const server = await serve((req, res) => {
    const [, name = ""] = (req.url ?? "").split("/");
    requested.push(req.url ?? "");
    if (name.startsWith("bad")) json(res, {}, 404);
    else if (req.url?.endsWith("/keys")) json(res, { keys: [first.publicJwk] });
    else json(res, { issuer: `${server.origin}/${name}`, jwks_uri: `${server.origin}/${name}/keys` });
  });
  issuers = issuersTrusting(server.origin);
  const at = (name: string) => `${server.origin}/${name}`;
  return {
    requested,
    close: () => server.close(),
    verifyAt: async (name: string, registration: Registration = OPERATOR) =>
      issuers.verify(tokenBy(first, at(name)), registration),
    /** An unsigned token with the issuer and its key. */
    verifyUnsigned: async (name: string, registration: Registration) => {
      const token = tokenBy(first, at(name));
      const forged = { ...token, signature: Buffer.alloc(token.signature.length, 1) };
      await assert.rejects(async () => issuers.verify(forged, registration), isError(Code.Unauthenticated));
    },
  };
}

test("the 200 most recently used issuers are cached; issuers that fail evict none of them", async () => {
  const { requested, close, verifyAt } = await manyIssuers();
  try {
    for (let i = 0; i < 200; i++) await verifyAt(`good${i}`);
    for (let i = 0; i < 210; i++) await assert.rejects(verifyAt(`bad${i}`), isError(Code.Unavailable));
    requested.length = 0;
    for (let i = 0; i < 200; i++) await verifyAt(`good${i}`);
    assert.deepEqual(requested, []);
    await verifyAt("good200");
    nowMs += MINUTE;
    requested.length = 0;
    for (const name of ["good1", "good200", "good0"]) await verifyAt(name);
    assert.deepEqual(requested, ["/good0/.well-known/openid-configuration", "/good0/keys"]);
  } finally {
    close();
  }
});

test("unsigned tokens that name 210 issuers push out none that a token was verified of", async () => {
  const { requested, close, verifyAt, verifyUnsigned } = await manyIssuers();
  const own = { organisation: "own", byPattern: true };
  const other = { organisation: "other" };
  try {
    await verifyAt("good", own);
    await verifyAt("good", other);
    await verifyAt("good");
    for (let i = 0; i < 210; i++) await verifyUnsigned(`forged${i}`, own);
    requested.length = 0;
    for (const registration of [own, other, OPERATOR]) await verifyAt("good", registration);
    assert.deepEqual(requested, [], "all are still known");
    // Control: entries of issuers that never verified a token were evicted.
    await verifyUnsigned("forged0", own);
    assert.equal(requested.length, 2);
  } finally {
    close();
  }
});

test("an evicted issuer is requested again at once", async () => {
  const { requested, close, verifyAt, verifyUnsigned } = await manyIssuers();
  const own = { organisation: "own", byPattern: true };
  try {
    for (let i = 0; i < 60; i++) await verifyUnsigned(`forged${i}`, own);
    requested.length = 0;
    await verifyAt("forged0", own);
    assert.equal(requested.length, 2);
  } finally {
    close();
  }
});

test("an issuer that fails for one organisation is not paused for another", async () => {
  breakDown();
  await assert.rejects(async () => issuers.verify(tokenBy(first), { organisation: "a" }), isError(Code.Unavailable));
  other.answers.clear();
  await issuers.verify(tokenBy(first), { organisation: "b" });
  await assert.rejects(async () => issuers.verify(tokenBy(first), { organisation: "a" }), isError(Code.Unavailable));
});

test("an issuer that was not requested because others hang is not paused", async () => {
  const tarpit = await serve(() => {});
  const both = [new URL(other.issuer).origin, tarpit.origin];
  const fetch = createGuardedFetch({ trustedOrigins: both });
  const own = createIssuers({ maxTokenLifeS: MAX_LIFE_S, fetch, clock: () => nowMs, isOwnIssuer: () => false });
  const registration = { organisation: "a" };
  const hanging = Array.from({ length: 36 }, (_, i) =>
    Promise.resolve(own.verify(tokenBy(first, `${tarpit.origin}/${i}`), registration)).catch(() => "hung"),
  );
  try {
    await assert.rejects(
      async () => own.verify(tokenBy(first), registration),
      (error: ApiError) => {
        assert.deepEqual(error.details[0]?.value, { retryDelay: { seconds: 1n, nanos: 0 } });
        return true;
      },
    );
    await Promise.all(hanging);
    await own.verify(tokenBy(first), registration);
  } finally {
    tarpit.close();
  }
});
