// eventVerifier: what it accepts, and each way in which a request can fail to be an event of the service.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { SignJWT } from "jose";
import { EventRejected, eventVerifier, type VerifyEvent } from "../../src/client/index.js";
import {
  BODY,
  type Claims,
  claimsOf,
  digestOf,
  EC,
  type EventIssuer,
  forgeries,
  GROUP,
  headersOf,
  RSA,
  SUBSCRIPTION,
  sign,
  spellings,
  startEventIssuer,
  twinOf,
  webhookOf,
} from "../events/event-issuer.js";

describe("eventVerifier", () => {
  let issuer: EventIssuer;
  let nowMs: number;
  let verifyEvent: VerifyEvent;

  before(async () => {
    issuer = await startEventIssuer();
  });
  after(() => issuer.close());
  beforeEach(() => {
    issuer.discovery = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
    issuer.status = 200;
    issuer.keyReads = 0;
    nowMs = Date.now();
    verifyEvent = eventVerifier({ issuer: issuer.url, group: GROUP, clock: () => nowMs });
  });

  const claims = (changed: Claims = {}) => claimsOf(issuer, changed, nowMs);
  const refuses = async (status: number, message: RegExp, headers: Record<string, string>, body = BODY) =>
    assert.rejects(verifyEvent(headers, body), (error) => {
      assert.ok(error instanceof EventRejected, String(error));
      assert.match(error.message, message);
      assert.equal(error.status, status);
      return true;
    });

  it("returns the attributes and the data of an event, of either algorithm and kind of headers", async () => {
    const event = await verifyEvent(headersOf(await sign(issuer, claims())), BODY);
    assert.deepEqual(event, {
      id: "id-1",
      type: "dev.chainguard.api.iam.group.created.v1",
      source: "https://platform.example.com/iam/v1/groups",
      subject: GROUP,
      time: "2026-01-31T12:00:00.000Z",
      extensions: {
        ...{ group: GROUP, actor: "89abcdef0123456789abcdef0123456789abcdef", audience: "customer" },
        bodytype: "chainguard.platform.iam.v2.Group",
      },
      data: JSON.parse(BODY),
      repeated: false,
    });
    const token = await sign(issuer, claims({ aud: ["other", "customer"] }), EC);
    const { id } = await verifyEvent(new Headers(headersOf(token, { "ce-id": "id%202" })), Buffer.from(BODY));
    assert.equal(id, "id 2");
    assert.equal(issuer.keyReads, 1);
  });

  it("says that an event is repeated, with a token of its own", async () => {
    await verifyEvent(headersOf(await sign(issuer, claims())), BODY);
    assert.equal((await verifyEvent(headersOf(await sign(issuer, claims())), BODY)).repeated, true);
    assert.equal(
      (await verifyEvent(headersOf(await sign(issuer, claims()), { "ce-id": "id-2" }), BODY)).repeated,
      false,
    );
    nowMs += 901_000;
    assert.equal((await verifyEvent(headersOf(await sign(issuer, claims())), BODY)).repeated, false);
  });

  it("refuses a token that was used before, also for another id", async () => {
    const token = await sign(issuer, claims());
    await verifyEvent(headersOf(token), BODY);
    await refuses(403, /was used before/, headersOf(token));
    await refuses(403, /was used before/, headersOf(token, { "ce-id": "id-2" }));
    nowMs += 599_000;
    await refuses(403, /was used before/, headersOf(token));
  });

  it("refuses a used token with another signature that is valid as well", async () => {
    const token = await sign(issuer, claims(), EC);
    await verifyEvent(headersOf(twinOf(token)), BODY);
    await refuses(403, /was used before/, headersOf(token));
  });

  it("refuses an old token, whatever its expiry says", async () => {
    const token = await sign(issuer, claims());
    const long = await sign(issuer, claims({ exp: Math.floor(nowMs / 1_000) + 3_600 }));
    nowMs += 601_000;
    await refuses(403, /expired/, headersOf(token));
    await refuses(403, /expired|another iat/, headersOf(long));
    const { exp: _, ...endless } = claims();
    await refuses(403, /another exp/, headersOf(await sign(issuer, endless)));
    const early = await sign(issuer, claims({ iat: Math.floor(nowMs / 1_000) + 301 }));
    await refuses(403, /another iat/, headersOf(early));
  });

  it("accepts clocks that differ by five minutes in either direction, or as much as is set", async () => {
    const accepts = async (skewMs: number, toleranceSeconds?: number) => {
      const options = { issuer: issuer.url, group: GROUP, clock: () => nowMs + skewMs };
      const verify = eventVerifier({ ...options, ...(toleranceSeconds !== undefined && { toleranceSeconds }) });
      const iat = Math.floor(nowMs / 1_000);
      const token = await sign(issuer, claims({ iat, nbf: iat, exp: iat + 300 }));
      return verify(headersOf(token), BODY).then(
        () => true,
        (error) => error instanceof EventRejected && error.status !== 403,
      );
    };
    nowMs = Math.floor(nowMs / 1_000) * 1_000;
    // A token is valid for five minutes besides.
    const cases: readonly (readonly [skewS: number, toleranceSeconds: number | undefined, isAccepted: boolean])[] = [
      ...[-300, -290, 0, 290, 599].map((skew) => [skew, undefined, true] as const),
      ...[-302, 602].map((skew) => [skew, undefined, false] as const),
      ...[-30, 0, 329].map((skew) => [skew, 30, true] as const),
      ...[-32, 332].map((skew) => [skew, 30, false] as const),
      ...[[0, 0, true] as const, [-2, 0, false] as const, [302, 0, false] as const, [-3_600, 3_600, true] as const],
    ];
    for (const [skewS, tolerance, isAccepted] of cases)
      assert.equal(await accepts(skewS * 1_000, tolerance), isAccepted, `${skewS} s, tolerance ${tolerance}`);
    for (const toleranceSeconds of [-1, Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(() => eventVerifier({ issuer: issuer.url, group: GROUP, toleranceSeconds }), TypeError);
  });

  it("remembers a token for as long as it is accepted, whatever the tolerance", async () => {
    const iat = Math.floor(nowMs / 1_000);
    nowMs = (iat - 3_600) * 1_000;
    verifyEvent = eventVerifier({ issuer: issuer.url, group: GROUP, clock: () => nowMs, toleranceSeconds: 3_600 });
    const token = await sign(issuer, claims({ iat, exp: iat + 300 }));
    await verifyEvent(headersOf(token), BODY);
    nowMs = (iat + 3_899) * 1_000;
    await refuses(403, /was used before/, headersOf(token));
  });

  it("refuses a body that was changed", async () => {
    await refuses(
      403,
      /not what was signed/,
      headersOf(await sign(issuer, claims())),
      BODY.replace("someone", "anybody"),
    );
    await refuses(403, /not what was signed/, headersOf(await sign(issuer, claims())), `${BODY} `);
    await refuses(403, /not what was signed/, headersOf(await sign(issuer, claims({ webhook: {} }))));
    await refuses(403, /not what was signed/, headersOf(await sign(issuer, claims({ webhook: undefined }))));
  });

  for (const [name, forge] of Object.entries(forgeries)) {
    it(`refuses ${name} under a token that proves the attributes, but not under one of an older service`, async () => {
      const own = await sign(issuer, claims(webhookOf()));
      await refuses(403, /attributes are not what was signed/, forge(headersOf(own)));
      // Control: it is the claim that proves it, and nothing else.
      const older = await sign(issuer, claims());
      await verifyEvent(forge(headersOf(older)), BODY);
      await verifyEvent(headersOf(own), BODY);
    });
  }

  for (const [name, spell] of Object.entries(spellings)) {
    it(`accepts ${name}`, async () => {
      const { id, type } = await verifyEvent(spell(headersOf(await sign(issuer, claims(webhookOf())))), BODY);
      assert.deepEqual([id, type], ["id-1", headersOf("")["ce-type"]]);
    });
  }

  it("accepts values of all characters", async () => {
    const value = encodeURIComponent('ü %41 "quoted" 🌳');
    const headers = headersOf("", { "ce-subject": value, "ce-note": "%0A=1:" });
    const token = await sign(issuer, claims(webhookOf(headers)));
    const { subject } = await verifyEvent({ ...headers, authorization: `Bearer ${token}` }, BODY);
    assert.equal(subject, 'ü %41 "quoted" 🌳');
  });

  it("refuses two values of one attribute", async () => {
    const headers = headersOf(await sign(issuer, claims()));
    await assert.rejects(verifyEvent({ ...headers, "Ce-Id": "id-2" }, BODY), /ce-id has more than one value/);
    await assert.rejects(verifyEvent({ ...headers, "ce-id": ["id-1", "id-2"] }, BODY), /more than one value/);
    // Also if one of them is empty, which alone is none.
    for (const values of [
      ["", "id-1"],
      ["id-1", ""],
      ["", ""],
    ])
      await assert.rejects(verifyEvent({ ...headers, "ce-id": values }, BODY), /ce-id has more than one value/);
    await assert.rejects(verifyEvent({ ...headers, "ce-extra": ["", ""] }, BODY), /ce-extra has more than one value/);
    assert.equal((await verifyEvent({ ...headers, "ce-id": ["id-1"], "ce-extra": "" }, BODY)).id, "id-1");
  });

  it("refuses the token of another subscription, where it knows its own", async () => {
    const options = { issuer: issuer.url, group: GROUP, clock: () => nowMs };
    verifyEvent = eventVerifier({ ...options, subscription: SUBSCRIPTION });
    await verifyEvent(headersOf(await sign(issuer, claims(webhookOf()))), BODY);
    const other = { subscription: `${GROUP}/0000000000000000` };
    const foreign = () => sign(issuer, claims(webhookOf(undefined, other)));
    await refuses(403, /another subscription/, headersOf(await foreign()));
    // An older service does not say for which one it is.
    await verifyEvent(headersOf(await sign(issuer, claims())), BODY);
    // Control: without the option it is accepted.
    await eventVerifier(options)(headersOf(await foreign()), BODY);
    assert.throws(() => eventVerifier({ ...options, subscription: "" }), TypeError);
  });

  it("refuses tokens that do not prove the attributes and the subscription, where it must", async () => {
    verifyEvent = eventVerifier({ issuer: issuer.url, group: GROUP, clock: () => nowMs, requireAttributes: true });
    await verifyEvent(headersOf(await sign(issuer, claims(webhookOf()))), BODY);
    const lacking = [
      claims(),
      ...["attributes", "subscription"].map((name) => claims(webhookOf(undefined, { [name]: undefined }))),
    ];
    for (const claim of lacking)
      await refuses(403, /does not prove the attributes/, headersOf(await sign(issuer, claim)));
  });

  it("says that it needs the raw body, where it gets a parsed one", async () => {
    const headers = headersOf(await sign(issuer, claims(webhookOf())));
    for (const parsed of [JSON.parse(BODY), {}, [], null, undefined, 1, new ArrayBuffer(1)]) {
      await assert.rejects(verifyEvent(headers, parsed), (error) => {
        assert.ok(error instanceof EventRejected, String(error));
        assert.match(error.message, /raw body/);
        assert.equal(error.status, 400);
        return true;
      });
    }
    await verifyEvent(headers, new Uint8Array(Buffer.from(BODY)));
  });

  it("refuses tokens of others: another issuer, key, audience or group", async () => {
    await refuses(403, /another iss/, headersOf(await sign(issuer, claims({ iss: "https://evil.example.com" }))));
    const { foreign } = issuer.keys;
    await refuses(403, /not one of the issuer/, headersOf(await sign(issuer, claims(), RSA, foreign)));
    await refuses(
      403,
      /not one of the issuer/,
      headersOf(await sign(issuer, claims(), { ...RSA, kid: "new" }, foreign)),
    );
    await refuses(403, /another aud/, headersOf(await sign(issuer, claims({ aud: "https://platform.example.com" }))));
    const [root = ""] = GROUP.split("/");
    for (const sub of [`webhook:${root}`, GROUP, `webhook:${GROUP}/0123456789abcdef`])
      await refuses(403, /another sub/, headersOf(await sign(issuer, claims({ sub }))));
  });

  it("refuses signatures without a key, and with the public key as a secret", async () => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const unsigned = `${encode({ alg: "none" })}.${encode(claims())}.`;
    await refuses(403, /not one of the issuer/, headersOf(unsigned));
    const secret = new TextEncoder().encode(JSON.stringify(issuer.jwks[0]));
    const shared = await new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid: "rsa" }).sign(secret);
    await refuses(403, /not one of the issuer/, headersOf(shared));
  });

  it("refuses a request that is no event, with the status that published receivers answer", async () => {
    const { authorization: _, ...anonymous } = headersOf(await sign(issuer, claims()));
    await refuses(401, /bearer token/, anonymous);
    await refuses(401, /bearer token/, { ...anonymous, authorization: "Basic eDp5" });
    const { "ce-specversion": __, ...unversioned } = headersOf(await sign(issuer, claims()));
    await refuses(400, /specversion/, unversioned);
    await refuses(400, /required/, headersOf(await sign(issuer, claims()), { "ce-id": "" }));
    const text = "no JSON";
    await refuses(400, /JSON/, headersOf(await sign(issuer, claims({ webhook: { digest: digestOf(text) } }))), text);
  });

  it("answers 503 while the keys cannot be read, and works afterwards", async () => {
    const { port } = new URL(issuer.url);
    issuer.status = 503;
    await refuses(503, /keys of/, headersOf(await sign(issuer, claims())));
    issuer.status = 200;
    issuer.discovery = { issuer: "https://evil.example.com", jwks_uri: `${issuer.url}/keys` };
    await refuses(503, /keys of/, headersOf(await sign(issuer, claims())));
    // It leads to the keys, but not by a name that is known to be of this machine.
    issuer.discovery = { issuer: issuer.url, jwks_uri: `http://[::ffff:127.0.0.1]:${port}/keys` };
    await refuses(503, /keys of/, headersOf(await sign(issuer, claims())));
    assert.equal(issuer.keyReads, 0);
    issuer.discovery = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` };
    assert.equal((await verifyEvent(headersOf(await sign(issuer, claims())), BODY)).id, "id-1");
  });

  it("takes no issuer whose keys could be replaced on the way", () => {
    assert.throws(() => eventVerifier({ issuer: "http://platform.example.com", group: GROUP }), TypeError);
    assert.throws(() => eventVerifier({ issuer: issuer.url, group: "" }), TypeError);
  });
});
