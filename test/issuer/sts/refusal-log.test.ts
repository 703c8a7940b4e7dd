// Callers learn almost nothing about a refused exchange; the log says which cause it is, over both endpoints.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { randomIds } from "../../../src/kernel/ids.js";
import type { RejectReason } from "../../../src/kernel/reject-reason.js";
import { createLogger } from "../../../src/telemetry/logger.js";
import { type LocalIssuer, startLocalIssuer } from "../../support/local-issuer.js";
import { ask, queryOf } from "./ask.js";
import { type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";
import { makeProvider } from "./provider-people.js";
import { role as awsRole, bearerOf, serveSts, signRequest } from "./sts.js";

const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const TYPE = "urn:ietf:params:oauth:token-type:jwt";
const OTHER = "https://elsewhere.example";
const SUBJECT = "repo:acme/app";
const NASTY = `x"\n\u001b[2J\u007f\u2028é${"y".repeat(900)}`;

type Line = Readonly<Record<string, unknown>>;

/** The fields of a line that say what the bearer is. */
const FIELDS = ["identity", "identityProvider", "tokenIssuer", "tokenSubject", "tokenAudience", "claim"] as const;

interface Refusal {
  readonly reason: RejectReason | undefined;
  readonly identity?: string;
  readonly identityProvider?: string;
  readonly bearer: string;
  /** What the line says of the token, besides the identity and the provider that are asked for. */
  readonly says?: Partial<Record<(typeof FIELDS)[number], string>>;
}

let world: ExchangeWorld;
let stranger: LocalIssuer;
const texts: string[] = [];
const refusals = new Map<string, Refusal>();
/** By the endpoint and the name of the refusal. */
const lines = new Map<string, Line>();
let aws: string;

const endpoints = {
  "/sts/exchange": ({ identity = "", identityProvider = "", bearer }: Refusal, requestId: string) =>
    ask(world.url, `/sts/exchange?${queryOf({ aud: world.url, identity, identity_provider: identityProvider })}`, {
      bearer,
      headers: { "x-request-id": requestId },
    }),
  "/oauth/token": ({ identity = "", identityProvider = "", bearer }: Refusal, requestId: string) =>
    fetch(`${world.url}/oauth/token`, {
      method: "POST",
      headers: { "x-request-id": requestId },
      body: new URLSearchParams({
        ...{ grant_type: GRANT, subject_token: bearer, subject_token_type: TYPE, audience: world.url },
        ...(identity !== "" && { identity }),
        ...(identityProvider !== "" && { identity_provider: identityProvider }),
      }),
    }),
} as const;

before(async () => {
  const after: (() => void)[] = [];
  const sts = await serveSts({ after: (stop: () => void) => void after.push(stop) } as unknown as TestContext);
  stopSts = () => after.forEach((stop) => void stop());
  const logger = createLogger("info", { write: (line) => void texts.push(line) });
  stranger = await startLocalIssuer();
  world = await startExchangeWorld(
    { accessLog: "all", awsStsOrigins: sts.origin, trustedIssuers: sts.origin },
    { logger },
  );
  await prepareRefusals(sts.origin);
  for (const [name, refusal] of refusals) {
    for (const [path, exchange] of Object.entries(endpoints)) {
      const requestId = `${path.replaceAll("/", ".")}-${[...refusals.keys()].indexOf(name)}`;
      const { status } = await exchange(refusal, requestId);
      assert.equal(status === 200, false, `${name} over ${path}`);
      lines.set(`${path} ${name}`, { requestId });
    }
  }
  // Lines are written after a second at the latest.
  const findLine = ({ requestId }: Line) =>
    texts
      .map((text) => JSON.parse(text) as Line)
      .find((line) => line.msg === "request" && line.requestId === requestId);
  for (const [name, line] of lines) {
    for (let i = 0; i < 200 && findLine(line) === undefined; i++) await sleep(10);
    lines.set(name, findLine(line) ?? {});
  }
});

let stopSts = () => {};

after(async () => {
  await world?.stop();
  await stranger?.stop();
  stopSts();
});

async function prepareRefusals(stsOrigin: string): Promise<void> {
  const { issuer } = world.workloads;
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuerKeys = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] });
  const own = { issuer, subject: SUBJECT };
  const expirationTime = "2099-01-01T00:00:00Z";
  const claims = (more: object = {}) => world.assumable({ claimMatch: { ...own, ...more } });
  const keys = (more: object = {}) => world.assumable({ staticKeys: { ...own, issuerKeys, expirationTime, ...more } });
  const literal = await claims();
  const [unknown, bare] = [randomIds.newUid(world.root), await world.assumable({})];
  const { account: awsAccount, arn, userId } = awsRole;
  aws = await world.assumable({ awsIdentity: { awsAccount, arn, userId } });
  const otherRole = await world.assumable({ awsIdentity: { awsAccount, arn: `${arn}x`, userId } });
  const provider = await makeProvider(world);
  const token = (more: object = {}) => world.token({ sub: SUBJECT, ...more });
  const tokenIssuer = issuer;
  const workload = { tokenIssuer, tokenSubject: SUBJECT, tokenAudience: world.url };
  const person = { tokenIssuer: world.people.issuer, tokenSubject: "somebody", tokenAudience: provider.client };
  const nowS = Math.floor(Date.now() / 1000);
  const sign = (identity: string, secret?: string, date = new Date()) =>
    bearerOf(
      signRequest({
        origin: stsOrigin,
        ...(secret !== undefined && { secret }),
        headers: {
          accept: "application/json",
          "chainguard-audience": world.url,
          "chainguard-identity": identity,
          "x-amz-date": date.toISOString().replace(/[-:]|\.\d+/g, ""),
        },
      }),
    );

  const add = (name: string, refusal: Refusal) => refusals.set(name, refusal);
  add("an identity that does not exist", {
    ...{ reason: "identity_unknown", identity: unknown, bearer: token(), says: workload },
  });
  add("an identity without a relationship", {
    ...{ reason: "identity_relationship", identity: bare, bearer: token(), says: workload },
  });
  add("an identity of AWS", { reason: "identity_relationship", identity: aws, bearer: token(), says: workload });
  add("a request to AWS for a workload", {
    ...{ reason: "identity_relationship", identity: literal, bearer: sign(literal) },
  });
  add("another issuer", {
    reason: "match_issuer",
    identity: literal,
    bearer: stranger.token({ aud: world.url, sub: SUBJECT }),
    says: { ...workload, tokenIssuer: stranger.issuer },
  });
  add("another issuer than the pattern", {
    reason: "match_issuer",
    identity: await world.assumable({ claimMatch: { issuerPattern: `${issuer}/.+`, subject: SUBJECT } }),
    bearer: token(),
    says: workload,
  });
  add("another issuer than that of static keys", {
    ...{ reason: "match_issuer", identity: await keys({ issuer: OTHER }), bearer: token(), says: workload },
  });
  add("another subject", {
    reason: "match_subject",
    identity: literal,
    bearer: token({ sub: "Repo" }),
    says: { ...workload, tokenSubject: "Repo" },
  });
  add("another subject than the pattern", {
    reason: "match_subject",
    identity: await world.assumable({ claimMatch: { issuer, subjectPattern: "repo:acme/x.*" } }),
    bearer: token(),
    says: workload,
  });
  add("another subject than that of static keys", {
    ...{ reason: "match_subject", identity: await keys({ subject: "x" }), bearer: token(), says: workload },
  });
  add("a subject that is long and not printable", {
    reason: "match_subject",
    identity: literal,
    bearer: token({ sub: NASTY }),
    says: { ...workload, tokenSubject: NASTY.slice(0, 256) },
  });
  add("another audience than the identity states", {
    ...{ reason: "match_audience", identity: await claims({ audience: OTHER }), bearer: token(), says: workload },
  });
  add("another audience than the pattern", {
    ...{ reason: "match_audience", identity: await claims({ audiencePattern: "https://x.*" }) },
    ...{ bearer: token(), says: workload },
  });
  add("several audiences, none of this service", {
    reason: "token_audience",
    identity: literal,
    bearer: token({ aud: [OTHER, "b"] }),
    says: { ...workload, tokenAudience: `${OTHER}, b` },
  });
  add("audiences that are longer than a line should be", {
    reason: "token_audience",
    identity: literal,
    bearer: token({ aud: Array.from({ length: 16 }, (_, i) => `${OTHER}/${String(i).repeat(200)}`) }),
    says: { ...workload, tokenAudience: `${OTHER}/${"0".repeat(200)}, ${OTHER}/1`.padEnd(256, "1") },
  });
  add("a custom claim that is absent", {
    reason: "match_claim",
    identity: await claims({ claims: { repository: "acme/app" } }),
    bearer: token(),
    says: { ...workload, claim: "repository" },
  });
  add("a custom claim that the pattern does not match", {
    reason: "match_claim",
    identity: await claims({ claimPatterns: { ref: "refs/tags/.+" } }),
    bearer: token({ ref: "refs/heads/main" }),
    says: { ...workload, claim: "ref" },
  });
  add("static keys that have expired", {
    reason: "token_unknown_key",
    identity: await keys({ expirationTime: "2020-01-01T00:00:00Z" }),
    bearer: token(),
    says: workload,
  });
  add("another signature", {
    reason: "token_signature",
    identity: literal,
    bearer: world.workloads.token(
      { aud: world.url, sub: SUBJECT },
      { key: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey },
    ),
    says: workload,
  });
  add("a token that has expired", {
    reason: "token_expired",
    identity: literal,
    bearer: token({ iat: nowS - 1_000, exp: nowS - 500 }),
    says: workload,
  });
  add("a token that is not valid yet", {
    ...{ reason: "token_claims", identity: literal, bearer: token({ nbf: nowS + 500 }), says: workload },
  });
  add("a token of this service", {
    reason: "token_issuer",
    identity: literal,
    bearer: world.owner.token,
    says: { tokenIssuer: world.url, tokenSubject: world.owner.uid, tokenAudience: world.url },
  });
  add("a token of this service that is no ID token", {
    reason: "credential",
    bearer: world.owner.token,
    says: { tokenIssuer: world.url, tokenSubject: world.owner.uid, tokenAudience: world.url },
  });
  add("a token without a dot", { reason: "token_malformed", identity: literal, bearer: "hidden-hidden" });
  add("a token without a subject", {
    ...{ reason: "token_claims", identity: literal, bearer: token({ sub: undefined }) },
  });
  add("an identity that is no uid, such as a token", { reason: undefined, identity: token(), bearer: token() });
  add("a token of no login provider, without an identity", { reason: undefined, bearer: token(), says: workload });
  add("another AWS role", { reason: "match_aws", identity: otherRole, bearer: sign(otherRole) });
  add("a request to AWS for another identity", { reason: "aws_request", identity: aws, bearer: sign(literal) });
  add("a request that AWS rejects", { reason: "aws_request", identity: aws, bearer: sign(aws, "another secret") });
  add("a request to AWS that has expired", {
    ...{ reason: "token_expired", identity: aws, bearer: sign(aws, undefined, new Date(Date.now() - 3_600_000)) },
  });
  add("a provider that does not exist", {
    reason: "provider_unknown",
    identityProvider: unknown,
    bearer: provider.token({ sub: "somebody" }),
    says: person,
  });
  add("another issuer than that of the provider", {
    ...{ reason: "token_issuer", identityProvider: provider.uid, bearer: token(), says: workload },
  });
  add("another client than that of the provider", {
    reason: "token_audience",
    identityProvider: provider.uid,
    bearer: world.people.token({ aud: "x", sub: "somebody" }),
    says: { ...person, tokenAudience: "x" },
  });
  add("a person who is not registered", {
    ...{ reason: "person_unknown", identityProvider: provider.uid },
    ...{ bearer: provider.token({ sub: "somebody" }), says: person },
  });
}

describe("the line of a refused exchange says why", () => {
  // The names are known before the world is, so that each is a test.
  it("for every reason that an exchange can have", () => {
    const found = new Set([...refusals.values()].map(({ reason }) => reason));
    const reasons: readonly RejectReason[] = [
      ...(["identity_unknown", "identity_relationship", "match_issuer", "match_subject", "match_audience"] as const),
      ...(["match_claim", "match_aws", "provider_unknown", "person_unknown", "aws_request", "credential"] as const),
      ...(["token_malformed", "token_expired", "token_unknown_key", "token_signature", "token_issuer"] as const),
      ...(["token_audience", "token_claims"] as const),
    ];
    for (const reason of reasons) assert.ok(found.has(reason), reason);
  });

  for (const path of Object.keys(endpoints)) {
    it(`over ${path}`, async (context) => {
      for (const [name, { reason, identity, identityProvider, says }] of refusals) {
        await context.test(name, () => {
          const line = lines.get(`${path} ${name}`) ?? {};
          assert.equal(line.reason, reason);
          // What is no uid could be anything, such as a token.
          const isUid = /^[0-9a-f/]+$/.test(identity ?? "");
          const expected = {
            ...(isUid && { identity }),
            ...(identityProvider !== undefined && { identityProvider }),
            ...says,
          };
          const said = Object.fromEntries(FIELDS.filter((field) => field in line).map((field) => [field, line[field]]));
          assert.deepEqual(said, expected);
        });
      }
    });
  }
});

it("an exchange that succeeds says nothing of its token", async () => {
  const identity = await world.workload("quiet");
  const { status } = await endpoints["/sts/exchange"](
    { reason: undefined, identity, bearer: world.token({ sub: "quiet" }) },
    "r-ok",
  );
  assert.equal(status, 200);
  // Stopping writes the lines that wait.
  await world.harness.app.stop();
  const line = texts.map((text) => JSON.parse(text) as Line).find(({ requestId }) => requestId === "r-ok");
  assert.equal(line?.status, 200);
  assert.deepEqual(
    FIELDS.filter((field) => field in (line ?? {})),
    [],
  );
});

it("no line has a token, and every line is ASCII", () => {
  assert.ok(texts.length > refusals.size);
  for (const text of texts) assert.match(text, /^[ -~]+\n$/);
  for (const { bearer } of refusals.values()) assert.ok(texts.every((text) => !text.includes(bearer.slice(-20))));
});
