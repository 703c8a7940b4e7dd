// What an issuer must publish to be believed.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { createIssuers } from "../../../src/issuer/upstream/issuers.js";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";
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
import { isInvalidToken } from "./invalid-token.js";

const key = testKey("ES256", "k1");
const clock = () => NOW_S * 1000;
const OPERATOR = { organisation: undefined };
const OURS = "https://ours.test";

function issuersTrusting(...origins: string[]) {
  const problems: string[] = [];
  const reasons: string[] = [];
  const issuers = createIssuers({
    maxTokenLifeS: MAX_LIFE_S,
    fetch: createGuardedFetch({
      trustedOrigins: origins,
      onFailure: (reason) => reasons.push(reason),
      resolve: () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]),
    }),
    clock,
    isOwnIssuer: (issuer) => issuer === OURS,
    onProblem: (issuer, reason) => problems.push(`${issuer}: ${reason}`),
  });
  return { issuers, problems, reasons };
}

/** Asserts the one error of an issuer that cannot be used: nothing of what it answered is in it. */
function isUnavailable(error: unknown): true {
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.code, error.cause], [Code.Unavailable, undefined]);
  assert.equal(error.message, "Unavailable: the keys of the token's issuer cannot be obtained");
  assert.deepEqual(
    error.details.map(({ value }) => value),
    [{ retryDelay: { seconds: 30n, nanos: 0 } }],
  );
  return true;
}

const tokenOf = (issuer: string) => parseUpstreamToken(signToken(key, goodClaims(issuer)));

async function withIssuer(run: (other: ForeignIssuer, origin: string) => Promise<void>): Promise<void> {
  const other = await startIssuer([key]);
  try {
    await run(other, new URL(other.issuer).origin);
  } finally {
    other.close();
  }
}

test("a token is verified with the keys that its issuer publishes", () =>
  withIssuer(async (other, origin) => {
    const { issuers, problems } = issuersTrusting(origin);
    const verified = await issuers.verify(tokenOf(other.issuer), OPERATOR);
    assert.deepEqual([verified.issuer, verified.subject], [other.issuer, "repo:octo/app"]);
    assert.deepEqual([other.requests, problems], [[DISCOVERY, JWKS], []]);
    const stranger = parseUpstreamToken(signToken(testKey("ES256", "k1"), goodClaims(other.issuer)));
    assert.throws(() => issuers.verify(stranger, OPERATOR), isInvalidToken("has a signature that does not verify"));
    assert.equal(other.requests.length, 2);
  }));

test("an issuer with a trailing slash has the same metadata URL, and is another issuer", () =>
  withIssuer(async (other, origin) => {
    const issuer = `${other.issuer}/`;
    other.answers.set(DISCOVERY, (res) => json(res, { issuer, jwks_uri: `${origin}${JWKS}` }));
    const { issuers, problems } = issuersTrusting(origin);
    assert.equal((await issuers.verify(tokenOf(issuer), OPERATOR)).issuer, issuer);
    await assert.rejects(async () => issuers.verify(tokenOf(other.issuer), OPERATOR), isUnavailable);
    assert.deepEqual(problems, [`${other.issuer}: its metadata are of another issuer`]);
  }));

test("tokens of this service are rejected, and nothing is fetched", async () => {
  const { issuers, problems, reasons } = issuersTrusting();
  assert.throws(() => issuers.verify(tokenOf(OURS), OPERATOR), isInvalidToken("is one of ours"));
  assert.deepEqual([problems, reasons], [[], []]);
});

test("a token that is not valid now causes no request to its issuer", () =>
  withIssuer(async (other, origin) => {
    const { issuers } = issuersTrusting(origin);
    const expired = parseUpstreamToken(signToken(key, { ...goodClaims(other.issuer), exp: NOW_S - 61 }));
    assert.throws(() => issuers.verify(expired, OPERATOR), isInvalidToken("has expired"));
    assert.deepEqual(other.requests, []);
  }));

const PAGE = "it answered with a page";
const NO_OBJECT = "it did not answer with a plain JSON object";
const UNREACHABLE = "it cannot be reached";
const OTHER = "its metadata are of another issuer";
type Answer = (res: ServerResponse, issuer: string) => void;
const responses: readonly { name: string; reason: string; metadata?: Answer; keys?: Answer }[] = [
  { name: "another issuer", reason: OTHER, metadata: (res) => json(res, { issuer: "https://victim.test" }) },
  { name: "a slash more", reason: OTHER, metadata: (res, issuer) => json(res, { issuer: `${issuer}/` }) },
  { name: "another case", reason: OTHER, metadata: (res, issuer) => json(res, { issuer: issuer.toUpperCase() }) },
  { name: "a list of issuers", reason: OTHER, metadata: (res, issuer) => json(res, { issuer: [issuer] }) },
  { name: "no issuer", reason: OTHER, metadata: (res) => json(res, {}) },
  { name: "no jwks_uri", reason: "its metadata have no jwks_uri", metadata: (res, issuer) => json(res, { issuer }) },
  { name: "a list", reason: NO_OBJECT, metadata: (res) => json(res, []) },
  { name: "nothing", reason: NO_OBJECT, metadata: (res) => json(res, "") },
  { name: "no JSON", reason: NO_OBJECT, metadata: (res) => json(res, "secret text of a neighbour") },
  { name: "deep JSON", reason: NO_OBJECT, metadata: (res) => json(res, `{"a":${"[".repeat(40_000)}`) },
  { name: "__proto__", reason: NO_OBJECT, metadata: (res) => json(res, '{"__proto__":{"issuer":"x"}}') },
  {
    name: "a name given twice",
    reason: NO_OBJECT,
    metadata: (res, issuer) => json(res, `{"issuer":"https://a.test","issuer":"${issuer}","jwks_uri":"x"}`),
  },
  { name: "bytes that are not UTF-8", reason: NO_OBJECT, metadata: (res) => res.end(Buffer.from([0x7b, 0xff, 0x7d])) },
  { name: "a page", reason: PAGE, metadata: (res) => res.writeHead(200, { "content-type": "text/html" }).end("{}") },
  ...[201, 204, 400, 401, 404, 429, 500, 503].map((status) => ({
    name: `status ${status}`,
    reason: `it answered with status ${status}`,
    metadata: (res: ServerResponse) => json(res, {}, status),
  })),
  { name: "a redirect", reason: UNREACHABLE, metadata: (res) => res.writeHead(302, { location: JWKS }).end() },
  { name: "more than 100 KiB", reason: UNREACHABLE, metadata: (res) => json(res, `{"a":"${"x".repeat(102_400)}"}`) },
  {
    name: "keys that are no JWK Set",
    reason: "its keys are not a JWK Set",
    keys: (res) => json(res, { keys: {} }),
  },
  { name: "keys in a list", reason: NO_OBJECT, keys: (res) => json(res, [key.publicJwk]) },
  { name: "keys with status 429", reason: "it answered with status 429", keys: (res) => json(res, {}, 429) },
  {
    name: "keys elsewhere",
    reason: UNREACHABLE,
    keys: (res) => res.writeHead(307, { location: "https://a.test/" }).end(),
  },
];

for (const { name, reason, metadata, keys } of responses) {
  test(`an issuer that answers with ${name} is not used, and pollutes nothing`, () =>
    withIssuer(async (other, origin) => {
      if (metadata) other.answers.set(DISCOVERY, (res) => metadata(res, other.issuer));
      if (keys) other.answers.set(JWKS, (res) => keys(res, other.issuer));
      const { issuers, problems } = issuersTrusting(origin);
      await assert.rejects(async () => issuers.verify(tokenOf(other.issuer), OPERATOR), isUnavailable);
      await assert.rejects(async () => issuers.verify(tokenOf(other.issuer), OPERATOR), isUnavailable);
      assert.deepEqual(problems, [`${other.issuer}: ${reason}`]);
      assert.deepEqual(other.requests, metadata ? [DISCOVERY] : [DISCOVERY, JWKS]);
      assert.equal(Object.hasOwn(Object.prototype, "issuer"), false);
    }));
}

test("an issuer without usable keys is one, but verifies nothing", () =>
  withIssuer(async (other, origin) => {
    other.keys = [testKey("RS256", "weak", 1024)];
    const { issuers, problems } = issuersTrusting(origin);
    const noKey = "names no key of its issuer that can be used";
    await assert.rejects(async () => issuers.verify(tokenOf(other.issuer), OPERATOR), isInvalidToken(noKey));
    assert.deepEqual(problems, [`${other.issuer}: it has no usable keys`]);
  }));

const elsewhere: readonly { uri: (port: number) => string; reason: string }[] = [
  { uri: (port) => `http://127.0.0.1:${port}/keys`, reason: "the address is not https" },
  { uri: (port) => `https://127.0.0.1:${port}/keys`, reason: "the port is not 443" },
  { uri: () => "https://127.0.0.1/keys", reason: "the host has an address that is not public" },
  { uri: () => "https://private.test/keys", reason: "the host has an address that is not public" },
  { uri: () => "file:///etc/passwd", reason: "the address is not https" },
  { uri: () => "data:application/json,{}", reason: "the address is not https" },
  { uri: () => "/keys", reason: "it cannot be parsed" },
  { uri: () => "", reason: "the address has characters that URLs do not have" },
  { uri: () => "https://u:p@private.test/keys", reason: "the address has a user name or password" },
];

for (const { uri, reason } of elsewhere) {
  test(`a jwks_uri like ${uri(22)} is rejected: ${reason}`, () =>
    withIssuer(async (other, origin) => {
      const victim = await serve((_req, res) => json(res, { keys: [key.publicJwk] }));
      try {
        other.answers.set(DISCOVERY, (res) => json(res, { issuer: other.issuer, jwks_uri: uri(victim.port) }));
        const { issuers, reasons } = issuersTrusting(origin);
        await assert.rejects(async () => issuers.verify(tokenOf(other.issuer), OPERATOR), isUnavailable);
        assert.deepEqual([reasons.length, reasons[0]?.endsWith(`: ${reason}`)], [1, true], reasons[0]);
        assert.equal(victim.connections, 0);
      } finally {
        victim.close();
      }
    }));
}

const misspelt = [
  "?x",
  "/a?b=c",
  "#x",
  "/a#",
  "/..",
  "/a/../b",
  "//",
  "/a//b",
  "/%0d%0a",
  "/%00",
  "/%2e%2e",
  "\r\n",
  "\t",
  " ",
  "\\x",
  "/é",
];
for (const end of misspelt) {
  test(`an issuer that ends with ${JSON.stringify(end)} is not requested`, () =>
    withIssuer(async (other, origin) => {
      const { issuers, problems, reasons } = issuersTrusting(origin);
      const issuer = other.issuer + end;
      await assert.rejects(async () => issuers.verify(tokenOf(issuer), OPERATOR), isUnavailable);
      assert.deepEqual([problems, reasons, other.requests], [[`${issuer}: it is not written as issuers are`], [], []]);
    }));
}

for (const issuer of [
  "https://EXAMPLE.test",
  "https://example.test:443",
  "https://user:pw@example.test",
  "https://exämple.test",
  "https://2130706433",
  "https://0x7f.1",
  `https://example.test/${"x".repeat(256)}`,
  "example.test",
  "",
  "javascript:0",
]) {
  test(`the issuer ${issuer.slice(0, 40)} is not requested`, async () => {
    const { issuers, reasons } = issuersTrusting();
    const token = { ...tokenOf("https://issuer.test"), issuer };
    await assert.rejects(async () => issuers.verify(token, OPERATOR), isUnavailable);
    assert.ok(reasons.every((reason) => reason.endsWith(": the address is not https")));
  });
}

test("an issuer that is rejected, down or closed is the same error for callers", async () => {
  const closed = await serve(() => {});
  closed.close();
  const { issuers } = issuersTrusting(closed.origin);
  for (const issuer of ["https://10.0.0.1", "https://private.test", "http://public.test", closed.origin])
    await assert.rejects(async () => issuers.verify(tokenOf(issuer), OPERATOR), isUnavailable);
});
