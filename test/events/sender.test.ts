// What a request to a sink looks like, and what its response means.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { digestAttributes, listAttributes } from "../../src/events/attributes.js";
import type { CloudEvent } from "../../src/events/cloud-event.js";
import { buildHeaders, createSender, parseRetryAfter } from "../../src/events/delivery/sender.js";
import { randomIds } from "../../src/kernel/ids.js";
import { signJwt } from "../../src/kernel/jws.js";
import { type GuardedFetch, GuardedFetchError } from "../../src/outbound/guarded-fetch.js";
import { attributesDigestOf } from "./event-issuer.js";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const GROUP = "a".repeat(40);
const event: CloudEvent = {
  ...{ id: "00000000-0000-0000-0000-000000000001", type: "t", source: "https://api/iam/v1/groups", subject: "s" },
  ...{ time: "2026-03-01T12:00:00.000Z", group: GROUP, actor: "", bodyType: "x.Y", identityProvider: "" },
  data: '{"body":{"name":"ü"}}',
};
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

function createTestSender(fetch: GuardedFetch) {
  return createSender({
    ...{ fetch, ids: randomIds, clock: () => NOW, issuer: "https://issuer.example", baseUrl: "https://api.example" },
    keys: { getSigningKey: () => ({ kid: "k", key: privateKey }), refresh: async () => {} },
    sign: (jwt) => signJwt(jwt),
  });
}
const take = async () => event;
const recipient = { uid: `${GROUP}/0123456789abcdef`, groupUid: GROUP, sink: "https://sink.example/hook" };

test("attributes are header fields, and those that are empty are left out", () => {
  const { "user-agent": agent, ...fields } = buildHeaders(event);
  assert.match(agent ?? "", /^arbor\/\d/);
  assert.deepEqual(fields, {
    ...{ "content-type": "application/json", "ce-specversion": "1.0", "ce-id": event.id, "ce-type": "t" },
    ...{ "ce-source": event.source, "ce-subject": "s", "ce-time": event.time, "ce-group": GROUP },
    ...{ "ce-audience": "customer", "ce-bodytype": "x.Y" },
  });
});

test("values are percent-encoded, and the digest is that of the values", () => {
  const source = 'https://api/ü%41 "x"/iam/v1/groups';
  const fields = buildHeaders({ ...event, source });
  assert.equal(fields["ce-source"], "https://api/%C3%BC%2541%20%22x%22/iam/v1/groups");
  const lines = [
    ...["audience=8:customer", "bodytype=3:x.Y", `group=40:${GROUP}`, `id=36:${event.id}`],
    ...[`source=35:${source}`, "specversion=3:1.0", "subject=1:s", "time=24:2026-03-01T12:00:00.000Z", "type=1:t"],
  ];
  const sha256 = createHash("sha256")
    .update(lines.map((line) => `${line}\n`).join(""))
    .digest("hex");
  assert.equal(digestAttributes(listAttributes({ ...event, source })), `sha256:${sha256}`);
  assert.equal(attributesDigestOf(fields), `sha256:${sha256}`);
});

test("each request has a token of its own, for five minutes, also those of one attempt", async () => {
  const tokens: string[] = [];
  let taken = 0;
  const { send } = createTestSender(async (_url, { prepare } = {}) => {
    for (let i = 0; i < 2; i++) {
      const message = await prepare?.();
      tokens.push(message?.headers.authorization?.replace(/^Bearer /, "") ?? "");
      assert.deepEqual(message?.body, Buffer.from(event.data));
    }
    return { status: 200, headers: new Headers(), bytes: Buffer.alloc(0) };
  });
  const take = async () => {
    taken++;
    return event;
  };
  for (let i = 0; i < 2; i++) assert.equal((await send(recipient, take)).kind, "accepted");
  assert.equal(taken, 2);
  const [one] = tokens.map((token) => decodeJwt(token));
  assert.equal(new Set(tokens.map((token) => decodeJwt(token).jti)).size, 4);
  const { jti, webhook, ...claims } = one ?? {};
  const iat = NOW / 1_000;
  const life = { iat, nbf: iat, exp: iat + 300 };
  assert.deepEqual(claims, { iss: "https://issuer.example", aud: "customer", sub: `webhook:${GROUP}`, ...life });
  const { digest, attributes, subscription, ...others } = webhook as Record<string, string>;
  for (const value of [digest, attributes]) assert.match(value ?? "", /^sha256:[0-9a-f]{64}$/);
  assert.deepEqual([subscription, others], [recipient.uid, {}]);
  assert.deepEqual(decodeProtectedHeader(tokens[0] ?? ""), { alg: "ES256", kid: "k", typ: "JWT" });
});

const outcomes: readonly (readonly [status: number, kind: string])[] = [
  [200, "accepted"],
  [202, "accepted"],
  [204, "accepted"],
  ...[301, 302, 307, 400, 401, 403, 404, 429, 500, 503].map((status) => [status, "failed"] as const),
  [410, "gone"],
];
test("a response of 2xx accepts, 410 ends, and any other fails", async () => {
  for (const [status, kind] of outcomes) {
    const headers = new Headers({ "retry-after": "7" });
    const { send } = createTestSender(async () => ({ status, headers, bytes: Buffer.alloc(0) }));
    const attempt = await send(recipient, take);
    const isAccepted = kind === "accepted";
    assert.deepEqual(attempt, {
      ...{ kind, status, error: isAccepted ? "" : `status ${status}` },
      ...(!isAccepted && { retryAfterMs: 7_000 }),
    });
  }
});

test("callers learn little of why there was no response", async () => {
  const errors: readonly (readonly [GuardedFetchError, kind: string, error: string])[] = [
    [new GuardedFetchError(true), "busy", "too many requests to sinks are running"],
    [new GuardedFetchError(false, "late"), "failed", "no response in time"],
    [new GuardedFetchError(false, "certificate"), "failed", "the certificate is not valid"],
    [
      new GuardedFetchError(false, "client-certificate"),
      "failed",
      "a client certificate is required, and none is sent",
    ],
    [new GuardedFetchError(), "failed", "it could not be reached"],
  ];
  for (const [thrown, kind, error] of errors) {
    const { send } = createTestSender(() => Promise.reject(thrown));
    assert.deepEqual(await send(recipient, take), { kind, status: 0, error });
  }
});

test("a test is an event of its own type, sent once", async () => {
  let sent: Readonly<Record<string, string>> = {};
  const { sendTest } = createTestSender(async (_url, { prepare } = {}) => {
    sent = (await prepare?.())?.headers ?? {};
    return { status: 503, headers: new Headers(), bytes: Buffer.alloc(0) };
  });
  const { durationMs, ...attempt } = await sendTest(recipient, "actor");
  assert.deepEqual([attempt.kind, attempt.status, typeof durationMs], ["failed", 503, "number"]);
  assert.deepEqual([sent["ce-type"], sent["ce-group"], sent["ce-actor"]], ["arbor.events.test.v1", GROUP, "actor"]);
});

test("Retry-After is a number of seconds or a date", () => {
  const cases: readonly (readonly [string | null, number | undefined])[] = [
    [null, undefined],
    ["", undefined],
    ["0", undefined],
    ["120", 120_000],
    ["-1", undefined],
    ["soon", undefined],
    ["Sun, 01 Mar 2026 12:00:30 GMT", 30_000],
    ["Sun, 01 Mar 2026 11:00:00 GMT", undefined],
  ];
  for (const [value, expected] of cases) assert.equal(parseRetryAfter(value, NOW), expected, String(value));
});
