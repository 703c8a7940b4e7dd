import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  type Identity_AWSIdentity,
  Identity_AWSIdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import {
  type AwsCaller,
  AwsRequestError,
  getCallerIdentity,
  parseAwsRequest,
  requireAwsMatch,
} from "../../../src/issuer/sts/aws.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";
import { authorizationOf } from "./sigv4.js";
import {
  bearerOf,
  failure,
  responseOf,
  role,
  type Signing,
  serve,
  serveSts,
  signRequest,
  usualHeaders,
} from "./sts.js";
import { assertNotAssumable, ownUrls, UNAUTHENTICATED, uid } from "./tokens.js";

const nowMs = Date.UTC(2026, 0, 15, 12, 0, 0);
const headers = {
  accept: "application/json",
  "chainguard-audience": ownUrls[0],
  "chainguard-identity": uid,
  "x-amz-date": "20260115T120000Z",
};
const caller: AwsCaller = { account: role.account, arn: role.arn, userId: role.userId };

/** Reads a request signed for the server at `origin` and has that server check it. */
function ask(origin: string, changes: Partial<Signing> = {}): Promise<AwsCaller> {
  const text = signRequest({ origin, ...changes, headers: { ...headers, ...changes.headers } });
  const expected = { stsHosts: [origin], audiences: ownUrls, identity: uid, nowMs };
  return getCallerIdentity(parseAwsRequest(bearerOf(text), expected), createGuardedFetch({ trustedOrigins: [origin] }));
}

test("the signer of these tests signs as AWS documents it", () => {
  const date = "20150830T123600Z";
  const type = "application/x-www-form-urlencoded; charset=utf-8";
  const url = new URL("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
  const scope = { accessKeyId: "AKIDEXAMPLE", secret: role.secret, region: "us-east-1", service: "iam", date };
  const request = { method: "GET", url, headers: { "content-type": type, host: url.host, "x-amz-date": date } };
  assert.equal(
    authorizationOf(request, ["content-type", "host", "x-amz-date"], scope),
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, " +
      "SignedHeaders=content-type;host;x-amz-date, " +
      "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
  );
});

test("AWS answers with the signer, and gets only signed headers", async (t) => {
  const { origin, requests } = await serveSts(t);
  const unsigned = { "x-forwarded-for": "10.0.0.1", "user-agent": "Go-http-client/1.1", cookie: "a=b" };
  assert.deepEqual(await ask(origin, { headers: unsigned }), caller);
  assert.equal(requests.length, 1);
  const [request] = requests;
  assert.deepEqual([request?.method, request?.url], ["POST", "/?Action=GetCallerIdentity&Version=2011-06-15"]);
  for (const name of Object.keys(unsigned)) assert.equal(request?.headers[name], undefined, name);
});

const good: readonly (readonly [what: string, changes: Partial<Signing>])[] = [
  [
    "a session token",
    { headers: { "x-amz-security-token": "FwoGZXIv==" }, signed: [...usualHeaders, "x-amz-security-token"] },
  ],
  ["values with many blanks", { headers: { "chainguard-identity": `  ${uid}   ` } }],
  ["its query in the other order", { target: "/?Version=2011-06-15&Action=GetCallerIdentity" }],
  ["Accept not signed", { headers: { accept: "*/*" }, signed: usualHeaders.slice(1) }],
];

for (const [what, changes] of good) {
  test(`AWS verifies a request with ${what} as it was signed`, async (t) => {
    const { origin } = await serveSts(t);
    assert.deepEqual(await ask(origin, changes), caller);
  });
}

async function failureOf(requests: Promise<unknown>): Promise<ApiError> {
  const error = await requests.then(
    () => assert.fail("a caller was named"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

function assertRejected(error: ApiError): void {
  assert.deepEqual([error.code, error.message], [Code.Unauthenticated, UNAUTHENTICATED]);
  assert.ok(error.cause instanceof AwsRequestError);
  assert.equal(error.cause.outcome, "rejected by AWS");
}

test("a request signed with another key is rejected by AWS", async (t) => {
  const { origin } = await serveSts(t);
  assertRejected(await failureOf(ask(origin, { secret: "another" })));
});

test("a request whose binding was changed after it was signed is rejected by AWS", async (t) => {
  const { origin } = await serveSts(t);
  const text = signRequest({ origin, headers: { ...headers, "chainguard-identity": "stolen-from-another" } });
  const changed = text.replace("stolen-from-another", uid);
  const expected = { stsHosts: [origin], audiences: ownUrls, identity: uid, nowMs };
  const request = parseAwsRequest(bearerOf(changed), expected);
  assertRejected(await failureOf(getCallerIdentity(request, createGuardedFetch({ trustedOrigins: [origin] }))));
});

const named = { Account: role.account, Arn: role.arn, UserId: role.userId };
const responses: readonly (readonly [status: number, body: string, outcome: "rejected" | "unavailable"])[] = [
  [400, "", "rejected"],
  [400, failure("IncompleteSignature"), "rejected"],
  [403, failure("ExpiredToken"), "rejected"],
  [403, responseOf(named), "rejected"],
  [400, failure("Throttling"), "unavailable"],
  [429, "", "unavailable"],
  [500, failure("InternalFailure"), "unavailable"],
  [503, "", "unavailable"],
  [201, responseOf(named), "unavailable"],
  [307, "", "unavailable"],
  [200, "", "unavailable"],
  [200, "<GetCallerIdentityResponse/>", "unavailable"],
  [200, "[]", "unavailable"],
  [200, "{}", "unavailable"],
  [200, responseOf(null), "unavailable"],
  [200, responseOf({ ...named, Account: 123456789012 }), "unavailable"],
  [200, responseOf({ Account: role.account, Arn: role.arn }), "unavailable"],
  [200, JSON.stringify(named), "unavailable"],
  [200, responseOf(named).replace('"Arn"', '"Account":"1","Arn"'), "unavailable"],
  [200, responseOf({ ...named, padding: "x".repeat(17_000) }), "unavailable"],
];

for (const [status, body, outcome] of responses) {
  test(`AWS answering ${status} ${body.slice(0, 60)}: ${outcome}`, async (t) => {
    const { origin } = await serve(t, () => ({ status, body }));
    const error = await failureOf(ask(origin));
    if (outcome === "rejected") assertRejected(error);
    else assert.equal(error.code, Code.Unavailable);
    assert.ok(!error.message.includes("Credential"), error.message);
  });
}

test("AWS that cannot be reached is unavailable", async (t) => {
  const { origin } = await serve(t, () => ({ status: 200, body: responseOf(named) }));
  const closed = origin.replace(/\d+$/, "1");
  assert.equal((await failureOf(ask(closed))).code, Code.Unavailable);
});

test("a private origin that is not trusted is not requested", async (t) => {
  const { origin, requests } = await serveSts(t);
  const text = signRequest({ origin, headers });
  const expected = { stsHosts: [origin], audiences: ownUrls, identity: uid, nowMs };
  const request = parseAwsRequest(bearerOf(text), expected);
  const error = await failureOf(getCallerIdentity(request, createGuardedFetch({ trustedOrigins: [] })));
  assert.deepEqual([error.code, requests.length], [Code.Unavailable, 0]);
});

const literal: Identity_AWSIdentity = create(Identity_AWSIdentitySchema, {
  awsAccount: role.account,
  awsArn: { case: "arn", value: role.arn },
  awsUserId: { case: "userId", value: role.userId },
});
const patterns: Identity_AWSIdentity = create(Identity_AWSIdentitySchema, {
  awsAccount: role.account,
  awsArn: { case: "arnPattern", value: "^arn:aws:sts::123456789012:assumed-role/deployer/(.+)$" },
  awsUserId: { case: "userIdPattern", value: "^AROAEXAMPLEC2UL7LUB:(.+)$" },
});
const incomplete: Identity_AWSIdentity = create(Identity_AWSIdentitySchema, { awsAccount: role.account });

const callers: readonly (readonly [
  what: string,
  aws: Identity_AWSIdentity,
  given: Partial<AwsCaller>,
  matches: boolean,
])[] = [
  ["the same caller", literal, {}, true],
  ["another session of it", literal, { arn: `${role.arn}0` }, false],
  ["another account", literal, { account: "123456789013" }, false],
  ["another user id", literal, { userId: "AROAEXAMPLEC2UL7LUB:other" }, false],
  ["the ARN in capitals", literal, { arn: role.arn.toUpperCase() }, false],
  ["the same caller by pattern", patterns, {}, true],
  [
    "another session by pattern",
    patterns,
    { arn: role.arn.replace("i-05", "i-06"), userId: "AROAEXAMPLEC2UL7LUB:i-06" },
    true,
  ],
  ["another account by pattern", patterns, { account: "210987654321" }, false],
  ["another role by pattern", patterns, { arn: role.arn.replace("deployer", "deployer2") }, false],
  ["a role made again under its name", patterns, { userId: "AROAOTHEROTHEROTHER7:i-05a6373" }, false],
  ["the role of a caller who tells two lines", patterns, { arn: `x\n${role.arn}` }, false],
  ["an identity without ARN and user id", incomplete, {}, false],
];

for (const [what, aws, given, matches] of callers) {
  test(`an AWS identity ${matches ? "matches" : "does not match"}: ${what}`, () => {
    const decide = () => requireAwsMatch(aws, { ...caller, ...given }, uid);
    if (matches) decide();
    else assertNotAssumable(decide);
  });
}
