// eventVerifier: what it accepts, and each way in which a request can fail to be an event of the service.
import assert from "node:assert/strict";
import { createHash, type webcrypto } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { EventRejected, eventVerifier, type VerifyEvent } from "../../src/client/index.js";

const GROUP = "0123456789abcdef0123456789abcdef01234567/0123456789abcdef";
const BODY = JSON.stringify({ actor: { subject: "someone" }, body: { id: "x", name: "überall" } });

type Claims = Readonly<Record<string, unknown>>;

describe("eventVerifier", () => {
  let issuer: string;
  let discovery: Claims;
  let keys: JWK[];
  let keyReads = 0;
  let status = 200;
  let rsa: webcrypto.CryptoKey;
  let ec: webcrypto.CryptoKey;
  let foreign: webcrypto.CryptoKey;
  let nowMs: number;
  let verifyEvent: VerifyEvent;
  const server = createServer(({ url }, response) => {
    if (url === "/keys") keyReads++;
    const shown = url === "/keys" ? { keys } : discovery;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(shown));
  });

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const [one, two, three] = await Promise.all(["RS256", "ES256", "RS256"].map((alg) => generateKeyPair(alg)));
    assert.ok(one && two && three);
    [rsa, ec, foreign] = [one.privateKey, two.privateKey, three.privateKey];
    keys = [
      { ...(await exportJWK(one.publicKey)), kid: "rsa", alg: "RS256", use: "sig" },
      { ...(await exportJWK(two.publicKey)), kid: "ec", alg: "ES256", use: "sig" },
    ];
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    discovery = { issuer, jwks_uri: `${issuer}/keys` };
    status = 200;
    keyReads = 0;
    nowMs = Date.now();
    verifyEvent = eventVerifier({ issuer, group: GROUP, clock: () => nowMs });
  });

  const digest = (body: string) => `sha256:${createHash("sha256").update(body).digest("hex")}`;
  const claims = (changed: Claims = {}): Claims => {
    const iat = Math.floor(nowMs / 1_000);
    const sub = `webhook:${GROUP}`;
    const webhook = { digest: digest(BODY) };
    return {
      iss: issuer,
      aud: "customer",
      sub,
      iat,
      exp: iat + 300,
      jti: Math.random().toString(),
      webhook,
      ...changed,
    };
  };
  const sign = (payload: Claims = claims(), key = rsa, header = { alg: "RS256", kid: "rsa" }) =>
    new SignJWT(payload).setProtectedHeader(header).sign(key);
  const headersOf = (token: string, id = "id-1"): Record<string, string> => ({
    authorization: `Bearer ${token}`,
    "ce-specversion": "1.0",
    "ce-id": id,
    "ce-type": "dev.chainguard.api.iam.group.created.v1",
    "ce-source": "https://platform.example.com/iam/v1/groups",
    "ce-subject": GROUP,
    "ce-time": "2026-01-31T12:00:00.000Z",
    "ce-group": GROUP,
    "content-type": "application/json",
  });
  const refuses = async (status: number, message: RegExp, headers: Record<string, string>, body = BODY) =>
    assert.rejects(verifyEvent(headers, body), (error) => {
      assert.ok(error instanceof EventRejected, String(error));
      assert.match(error.message, message);
      assert.equal(error.status, status);
      return true;
    });

  it("returns the attributes and the data of an event, of either algorithm and kind of headers", async () => {
    const event = await verifyEvent(headersOf(await sign()), BODY);
    assert.deepEqual(event, {
      id: "id-1",
      type: "dev.chainguard.api.iam.group.created.v1",
      source: "https://platform.example.com/iam/v1/groups",
      subject: GROUP,
      time: "2026-01-31T12:00:00.000Z",
      extensions: { group: GROUP },
      data: JSON.parse(BODY),
      repeated: false,
    });
    const token = await sign(claims({ aud: ["other", "customer"] }), ec, { alg: "ES256", kid: "ec" });
    const { id } = await verifyEvent(new Headers(headersOf(token, "id%202")), Buffer.from(BODY));
    assert.equal(id, "id 2");
    assert.equal(keyReads, 1);
  });

  it("says that an event is repeated, with a token of its own", async () => {
    await verifyEvent(headersOf(await sign()), BODY);
    assert.equal((await verifyEvent(headersOf(await sign()), BODY)).repeated, true);
    assert.equal((await verifyEvent(headersOf(await sign(), "id-2"), BODY)).repeated, false);
    nowMs += 400_000;
    assert.equal((await verifyEvent(headersOf(await sign()), BODY)).repeated, false);
  });

  it("refuses a token that was used before, also for another id", async () => {
    const token = await sign();
    await verifyEvent(headersOf(token), BODY);
    await refuses(403, /was used before/, headersOf(token));
    await refuses(403, /was used before/, headersOf(token, "id-2"));
    nowMs += 329_000;
    await refuses(403, /was used before/, headersOf(token));
  });

  it("refuses a used token with another signature that is valid as well", async () => {
    const token = await sign(claims(), ec, { alg: "ES256", kid: "ec" });
    const [header, payload, signature = ""] = token.split(".");
    // Of (r, s), the pair (r, n - s) is a signature too.
    const bytes = Buffer.from(signature, "base64url");
    const order = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
    const other = order - BigInt(`0x${bytes.subarray(32).toString("hex")}`);
    bytes.write(other.toString(16).padStart(64, "0"), 32, "hex");
    const twin = `${header}.${payload}.${bytes.toString("base64url")}`;
    await verifyEvent(headersOf(twin), BODY);
    await refuses(403, /was used before/, headersOf(token));
  });

  it("refuses an old token, whatever its expiry says", async () => {
    const token = await sign();
    const long = await sign(claims({ exp: Math.floor(nowMs / 1_000) + 3_600 }));
    nowMs += 331_000;
    await refuses(403, /expired/, headersOf(token));
    await refuses(403, /expired|another iat/, headersOf(long));
    const { exp: _, ...endless } = claims();
    await refuses(403, /another exp/, headersOf(await sign(endless)));
    const early = await sign(claims({ iat: Math.floor(nowMs / 1_000) + 60 }));
    await refuses(403, /another iat/, headersOf(early));
  });

  it("refuses a body that was changed", async () => {
    await refuses(403, /not what was signed/, headersOf(await sign()), BODY.replace("someone", "anybody"));
    await refuses(403, /not what was signed/, headersOf(await sign()), `${BODY} `);
    await refuses(403, /not what was signed/, headersOf(await sign(claims({ webhook: {} }))));
    await refuses(403, /not what was signed/, headersOf(await sign(claims({ webhook: undefined }))));
  });

  it("refuses tokens of others: another issuer, key, audience or group", async () => {
    await refuses(403, /another iss/, headersOf(await sign(claims({ iss: "https://evil.example.com" }))));
    await refuses(403, /not one of the issuer/, headersOf(await sign(claims(), foreign)));
    await refuses(403, /not one of the issuer/, headersOf(await sign(claims(), foreign, { alg: "RS256", kid: "new" })));
    await refuses(403, /another aud/, headersOf(await sign(claims({ aud: "https://platform.example.com" }))));
    const [root = ""] = GROUP.split("/");
    for (const sub of [`webhook:${root}`, GROUP, `webhook:${GROUP}/0123456789abcdef`])
      await refuses(403, /another sub/, headersOf(await sign(claims({ sub }))));
  });

  it("refuses signatures without a key, and with the public key as a secret", async () => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const unsigned = `${encode({ alg: "none" })}.${encode(claims())}.`;
    await refuses(403, /not one of the issuer/, headersOf(unsigned));
    const secret = new TextEncoder().encode(JSON.stringify(keys[0]));
    const shared = await new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid: "rsa" }).sign(secret);
    await refuses(403, /not one of the issuer/, headersOf(shared));
  });

  it("refuses a request that is no event, with the status that published receivers answer", async () => {
    const { authorization: _, ...anonymous } = headersOf(await sign());
    await refuses(401, /bearer token/, anonymous);
    await refuses(401, /bearer token/, { ...anonymous, authorization: "Basic eDp5" });
    const { "ce-specversion": __, ...unversioned } = headersOf(await sign());
    await refuses(400, /specversion/, unversioned);
    await refuses(400, /required/, headersOf(await sign(), ""));
    const text = "no JSON";
    await refuses(400, /JSON/, headersOf(await sign(claims({ webhook: { digest: digest(text) } }))), text);
  });

  it("answers 503 while the keys cannot be read, and works afterwards", async () => {
    status = 503;
    await refuses(503, /keys of/, headersOf(await sign()));
    status = 200;
    discovery = { issuer: "https://evil.example.com", jwks_uri: `${issuer}/keys` };
    await refuses(503, /keys of/, headersOf(await sign()));
    discovery = { issuer, jwks_uri: "http://192.0.2.1/keys" };
    await refuses(503, /keys of/, headersOf(await sign()));
    discovery = { issuer, jwks_uri: `${issuer}/keys` };
    assert.equal((await verifyEvent(headersOf(await sign()), BODY)).id, "id-1");
  });

  it("takes no issuer whose keys could be replaced on the way", () => {
    assert.throws(() => eventVerifier({ issuer: "http://platform.example.com", group: GROUP }), TypeError);
    assert.throws(() => eventVerifier({ issuer, group: "" }), TypeError);
  });
});
