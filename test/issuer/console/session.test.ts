// The session of the console: who gets tokens from it, and who does not. Each refusal has a control.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { revokeTokens } from "../../../src/iam/operator/operate.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { restAs } from "../../contract/rest.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { requestH1 } from "../../support/requests.js";
import { claimsOf, postForm } from "../oauth/login-kit.js";
import {
  assertNoSession,
  assertOpen,
  bearerOf,
  type CodeGrant,
  ConsoleBrowser,
  hashOf,
  hashOfText,
  makeCode,
  newKey,
  type SessionAnswer,
} from "./browser.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

let harness: Harness;
let identity: string;

before(async () => {
  harness = await startHarness({ corsOrigins: "*" });
  identity = (await harness.identity()).uid;
});
after(() => harness?.stop());

const nowMs = () => Date.now() + harness.skewMs;
const newBrowser = () => new ConsoleBrowser(harness.url);
const codeFor = (uid = identity, more = {}) => makeCode(harness, harness.url, uid, nowMs(), more);
const store = () => harness.app.installation.store;
const findRow = (hash: string) => store().read((tx) => tx.refreshTokens.find(hash));

async function signedIn(uid = identity): Promise<ConsoleBrowser> {
  const browser = newBrowser();
  assertOpen(await browser.signIn(await codeFor(uid)));
  return browser;
}

async function later<T>(skewMs: number, work: () => Promise<T>): Promise<T> {
  harness.skewMs = skewMs;
  try {
    return await work();
  } finally {
    harness.skewMs = 0;
  }
}

async function sessionsOf(token: string) {
  const { json } = await restAs(harness.url, token, "/sessions/v1")("GET", "/sessions");
  const { sessions = [] } = json as { sessions?: { id: string; client: string; expireTime: string }[] };
  return sessions.map(({ id, client, expireTime }) => ({ id, client, expireTime }));
}

describe("a session of the console", () => {
  it("begins with a code, and gives API tokens from then on", async () => {
    const browser = newBrowser();
    const first = await browser.signIn(await codeFor());
    const { accessToken, expiresIn, session } = assertOpen(first);
    const claims = claimsOf(accessToken);
    assert.deepEqual([claims.sub, claims.aud], [identity, harness.url]);
    assert.ok(expiresIn > 3_000 && expiresIn <= 3_600);
    assert.deepEqual(Object.keys(session).sort(), ["expireTime", "id", "renewal"]);
    assert.equal(session.renewal, "cookie");
    const idleMs = Date.parse(session.expireTime) - nowMs();
    assert.ok(Math.abs(idleMs - 12 * HOUR_MS) < 5 * MINUTE_MS, session.expireTime);
    assert.match(
      String(first.headers["set-cookie"]),
      /^arbor-console=[A-Za-z0-9_-]{43}; Path=\/console; Max-Age=2592000; HttpOnly; SameSite=Strict$/,
    );
    assert.equal(first.headers["cache-control"], "no-store");
    const renewed = await browser.renew();
    assert.equal(assertOpen(renewed).session.id, session.id);
    assert.equal(claimsOf(bearerOf(renewed)).sub, identity);
    assert.equal(renewed.headers["set-cookie"], undefined, "nothing is rotated");
    assert.equal((await restAs(harness.url, bearerOf(renewed), "/iam/v2beta1")("GET", "/groups")).status, 200);
  });

  it("is one of the sessions of the person, who ends it with the others", async () => {
    const { uid, token } = await harness.identity();
    const [one, other] = [await signedIn(uid), await signedIn(uid)];
    const { session } = assertOpen(await one.renew());
    const listed = await sessionsOf(token);
    assert.equal(listed.length, 2);
    const { id, expireTime } = session;
    assert.deepEqual(
      listed.find((row) => row.id === id),
      { id, client: "console", expireTime },
    );
    const ended = await restAs(harness.url, token, "/sessions/v1")("POST", `/sessions/${id}:revoke`, {});
    assert.equal(ended.status, 200);
    assertNoSession(await one.renew());
    assertOpen(await other.renew(), "the control");
  });

  it("is stored as hashes alone", async () => {
    const browser = await signedIn();
    const [, secret = ""] = browser.cookie.split("=");
    const row = await findRow(hashOf(browser));
    assert.deepEqual([row?.identityUid, row?.used], [identity, false]);
    const stored = JSON.stringify(row);
    assert.ok(!stored.includes(secret) && !stored.includes(browser.key), stored);
  });
});

describe("a request to the session", () => {
  const wrong: Readonly<Record<string, readonly [number, Readonly<Record<string, string | undefined>>]>> = {
    "without an origin": [403, { origin: undefined }],
    "of another origin": [403, { origin: "https://evil.example" }],
    "of another port of the host": [403, { origin: "http://127.0.0.1:1" }],
    "of another spelling of the host": [403, { origin: "http://localhost:8080" }],
    "of the origin null": [403, { origin: "null" }],
    "of several origins": [403, { origin: "http://a.example, http://b.example" }],
    "from another site": [403, { "sec-fetch-site": "cross-site" }],
    "from the same site": [403, { "sec-fetch-site": "same-site" }],
    "that the person typed": [403, { "sec-fetch-site": "none" }],
    "of a browser that does not say what it sends": [403, { "sec-fetch-site": undefined }],
    "with a form": [415, { "content-type": "application/x-www-form-urlencoded" }],
    "with text": [415, { "content-type": "text/plain" }],
    "without a type": [415, { "content-type": undefined }],
    "without a key": [400, { "arbor-console-key": undefined }],
    "with a short key": [400, { "arbor-console-key": "k".repeat(42) }],
    "with a key of other characters": [400, { "arbor-console-key": `${"k".repeat(42)}!` }],
  };
  for (const [name, [status, fields]] of Object.entries(wrong)) {
    it(`is rejected ${name}, whatever it asks for`, async () => {
      const browser = await signedIn();
      const grant = await codeFor();
      for (const body of [{}, { end: true }, grant]) {
        const { status: got, text, headers } = await browser.send(JSON.stringify(body), fields);
        assert.equal(got, status, text);
        assert.ok((JSON.parse(text) as { message?: string }).message, text);
        assert.equal(headers["set-cookie"], undefined);
      }
      assertOpen(await browser.renew(), "the session goes on");
      assertOpen(await newBrowser().signIn(grant), "the code is unused");
    });
  }

  const bodies = ["", "[]", "null", "{", '{"end":false}', '{"end":"true"}', '{"code":"a"}', '{"x":1}'];
  bodies.push('{"code":1,"codeVerifier":2}', '{"end":true,"code":"a"}', '{"end":true,"end":true}');
  bodies.push(JSON.stringify({ code: "c".repeat(200), codeVerifier: "a" }));
  for (const body of bodies) {
    it(`is rejected with the body ${body.slice(0, 40)}`, async () => {
      const browser = await signedIn();
      assert.equal((await browser.send(body)).status, 400);
      assertOpen(await browser.renew(), "the control");
    });
  }

  it("is rejected when it is long", async () => {
    const browser = await signedIn();
    assert.equal((await browser.send(`{"code":"${"c".repeat(4096)}"}`)).status, 413);
  });

  it("may name a charset", async () => {
    const browser = await signedIn();
    assertOpen(await browser.renew({ "content-type": "application/json; charset=utf-8" }));
  });

  it("never has fields of CORS, whatever origins may call the API", async () => {
    const browser = await signedIn();
    const ask = (method: string, path: string, headers: Record<string, string>) =>
      requestH1(Number(new URL(harness.url).port), { method, path, headers });
    for (const origin of [harness.url, "https://app.example"]) {
      const preflight = { origin, "access-control-request-method": "POST" };
      const answers = [
        await browser.send("{}", { origin }),
        await ask("OPTIONS", "/console/session", preflight),
        await ask("GET", "/console/session", { origin }),
        await ask("GET", "/console", { origin }),
        await ask("OPTIONS", "/console/any/page", preflight),
      ];
      for (const { headers } of answers) {
        assert.deepEqual(
          Object.keys(headers).filter((one) => one.startsWith("access-control")),
          [],
        );
      }
      const control = await ask("OPTIONS", "/iam/v2beta1/groups", preflight);
      assert.equal(control.headers["access-control-allow-origin"], "*", "the control");
    }
  });
});

describe("half a session", () => {
  it("opens nothing without the other", async () => {
    const [victim, other] = [await signedIn(), await signedIn()];
    const thief = newBrowser();
    assertNoSession(await thief.renew({ cookie: victim.cookie }), "a stolen cookie");
    assertNoSession(await thief.renew({ "arbor-console-key": victim.key }), "a stolen key");
    assertNoSession(await thief.renew({ cookie: other.cookie, "arbor-console-key": victim.key }), "two sessions");
    const [, secret = ""] = victim.cookie.split("=");
    const swapped = { cookie: `arbor-console=${victim.key}`, "arbor-console-key": secret };
    assertNoSession(await thief.renew(swapped), "each in the place of the other");
    assertOpen(await thief.renew({ cookie: victim.cookie, "arbor-console-key": victim.key }), "the control: both");
  });

  it("ends nothing without the other", async () => {
    const victim = await signedIn();
    const thief = newBrowser();
    for (const fields of [{ cookie: victim.cookie }, { "arbor-console-key": victim.key }])
      assert.equal((await thief.end(fields)).status, 200);
    assertOpen(await victim.renew());
    assert.equal((await thief.end({ cookie: victim.cookie, "arbor-console-key": victim.key })).status, 200);
    assertNoSession(await victim.renew(), "the control: both");
  });

  it("planted by another port of the host does no harm", async () => {
    const [victim, thief] = [await signedIn(), await signedIn((await harness.identity()).uid)];
    for (const planted of [thief.cookie, `arbor-console=${newKey()}`]) {
      const orders = [
        `${planted}; ${victim.cookie}`,
        `${victim.cookie}; ${planted}`,
        `x=y; ${planted};${victim.cookie}`,
      ];
      for (const cookie of orders) assert.equal(claimsOf(bearerOf(await victim.renew({ cookie }))).sub, identity);
      assertNoSession(await victim.renew({ cookie: planted }), "alone it is none");
    }
    const many = Array.from({ length: 100 }, () => `arbor-console=${newKey()}`);
    assertNoSession(await victim.renew({ cookie: [...many, victim.cookie].join("; ") }), "few are tried");
    assertOpen(await victim.renew());
  });
});

describe("a code of the console", () => {
  const redeem = ({ code, codeVerifier }: CodeGrant, client_id: string) =>
    postForm(`${harness.url}/oauth/token`, {
      grant_type: "authorization_code",
      client_id,
      redirect_uri: `${harness.url}/console/callback`,
      code,
      code_verifier: codeVerifier,
    });

  it("is redeemed at the session alone", async () => {
    for (const [client, error] of [
      ["console", "invalid_request"],
      ["arbor-cli", "invalid_grant"],
    ] as const) {
      const { status, body } = await redeem(await codeFor(), client);
      assert.deepEqual([status, body.error], [400, error]);
    }
    assertOpen(await newBrowser().signIn(await codeFor()), "the control");
  });

  it("is the only one that the session takes", async () => {
    assertNoSession(await newBrowser().signIn(await codeFor(identity, { clientId: "arbor-cli" })));
    assertNoSession(await newBrowser().signIn({ code: newKey(), codeVerifier: newKey() }), "one that does not exist");
    const grant = await codeFor(identity, { clientId: "arbor-cli" });
    assert.equal((await redeem(grant, "arbor-cli")).status, 200, "the control");
  });

  it("that was used before ends the session, wherever it comes again", async () => {
    for (const again of ["session", "token"]) {
      const browser = newBrowser();
      const grant = await codeFor();
      assertOpen(await browser.signIn(grant));
      if (again === "token") assert.equal((await redeem(grant, "arbor-cli")).body.error, "invalid_grant");
      else assertNoSession(await newBrowser().signIn(grant));
      assertNoSession(await browser.renew(), again);
    }
  });

  it("of another program that was used before ends its login", async () => {
    const grant = await codeFor(identity, { clientId: "arbor-cli" });
    const refresh_token = String((await redeem(grant, "arbor-cli")).body.refresh_token);
    assertNoSession(await newBrowser().signIn(grant));
    const { body } = await postForm(`${harness.url}/oauth/token`, { grant_type: "refresh_token", refresh_token });
    assert.equal(body.error, "invalid_grant");
  });

  it("needs its verifier, and is gone after a wrong one", async () => {
    const grant = await codeFor();
    assertNoSession(await newBrowser().signIn({ ...grant, codeVerifier: "v".repeat(43) }));
    assertNoSession(await newBrowser().signIn(grant));
  });

  it("expires after a minute", async () => {
    const [grant, other] = [await codeFor(), await codeFor()];
    await later(30_000, async () => assertOpen(await newBrowser().signIn(other), "the control"));
    await later(61_000, async () => assertNoSession(await newBrowser().signIn(grant)));
  });

  it("is void when all tokens of the person were revoked since", async () => {
    const { uid } = await harness.identity();
    const grant = await codeFor(uid, { revokeTimeMs: 0 });
    await store().write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs: nowMs() }));
    assertNoSession(await newBrowser().signIn(grant));
  });
});

describe("a lost response", () => {
  const idOf = (answer: SessionAnswer) => assertOpen(answer).session.id;

  it("to a sign-in: the same request again gives the same session and another cookie", async () => {
    const { uid, token } = await harness.identity();
    const browser = newBrowser();
    const grant = await codeFor(uid);
    const lost = await browser.send(JSON.stringify(grant));
    const repeated = await browser.signIn(grant);
    assert.equal(idOf(repeated), idOf(lost));
    assert.notDeepEqual(repeated.headers["set-cookie"], lost.headers["set-cookie"]);
    assert.equal((await sessionsOf(token)).length, 1, "no second session");
    assert.equal(idOf(await browser.renew()), idOf(lost));
    const [cookie = ""] = String(lost.headers["set-cookie"]).split(";");
    assertNoSession(await browser.renew({ cookie }), "the lost cookie is replaced");
    assert.equal(idOf(await browser.signIn(grant)), idOf(lost), "and once more");
    assert.equal((await sessionsOf(token)).length, 1);
  });

  it("to a sign-in: the same code with another key or verifier ends the session", async () => {
    for (const change of ["key", "verifier"]) {
      const browser = newBrowser();
      const grant = await codeFor();
      assertOpen(await browser.signIn(grant));
      const thief = browser.copy();
      if (change === "key") thief.key = newKey();
      const stolen = change === "key" ? grant : { ...grant, codeVerifier: "v".repeat(43) };
      assertNoSession(await thief.signIn(stolen), change);
      assertNoSession(await browser.renew(), change);
      assertNoSession(await browser.signIn(grant), "nor does a repeat bring it back");
    }
  });

  it("to a sign-in: a repeat brings back no session that was ended, and none after ten minutes", async () => {
    const [browser, other] = [newBrowser(), newBrowser()];
    const [grant, late] = [await codeFor(), await codeFor()];
    assertOpen(await browser.signIn(grant));
    assertOpen(await other.signIn(late));
    assert.equal((await browser.end()).status, 200);
    assertNoSession(await browser.signIn(grant));
    await later(5 * MINUTE_MS, async () => assertOpen(await other.signIn(late), "the control"));
    // A repeat makes the time no longer.
    await later(11 * MINUTE_MS, async () => assertNoSession(await other.signIn(late)));
    assertOpen(await other.renew());
  });

  it("to a renewal or a sign-out: the same request again succeeds", async () => {
    const browser = await signedIn();
    const pages = await Promise.all(Array.from({ length: 5 }, () => browser.copy().send("{}")));
    for (const page of pages) assertOpen(page);
    assertOpen(await browser.renew());
    for (let i = 0; i < 2; i++) {
      const { status, text, headers } = await browser.send('{"end":true}');
      assert.deepEqual([status, text], [200, "{}"]);
      assert.deepEqual(headers["set-cookie"], ["arbor-console=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict"]);
    }
    assertNoSession(await browser.renew());
    assert.equal((await newBrowser().end()).status, 200, "without a session");
  });
});

describe("the end of a session", () => {
  const leftMs = (answer: SessionAnswer) => Date.parse(assertOpen(answer).session.expireTime) - Date.now();

  it("comes after twelve hours without use, and each use moves it", async () => {
    const [idle, used] = [await signedIn(), await signedIn()];
    await later(11 * HOUR_MS, async () => assertOpen(await used.renew()));
    await later(12 * HOUR_MS + 5 * MINUTE_MS, async () => {
      assertNoSession(await idle.renew());
      assertOpen(await used.renew(), "the control");
    });
  });

  it("is stored at most every ten minutes", async () => {
    const browser = await signedIn();
    const storedMs = async () => (await findRow(hashOf(browser)))?.expireTimeMs ?? 0;
    const first = await storedMs();
    await later(5 * MINUTE_MS, async () => assertOpen(await browser.renew()));
    assert.equal(await storedMs(), first);
    const renewed = await later(30 * MINUTE_MS, () => browser.renew());
    const moved = (await storedMs()) - first;
    assert.ok(moved >= 30 * MINUTE_MS && moved < 60 * MINUTE_MS, String(moved));
    assert.equal(Date.parse(assertOpen(renewed).session.expireTime), await storedMs());
  });

  it("comes after thirty days, however often it is used", async () => {
    const browser = await signedIn();
    for (let hours = 11; hours < 30 * 24; hours += 11)
      await later(hours * HOUR_MS, async () => assertOpen(await browser.renew(), `after ${hours} hours`));
    await later(30 * DAY_MS - 30 * MINUTE_MS, async () => assert.ok(leftMs(await browser.renew()) <= 30 * DAY_MS));
    await later(30 * DAY_MS + MINUTE_MS, async () => assertNoSession(await browser.renew()));
  });

  it("comes with the revocation of all tokens, and with the deletion of the identity", async () => {
    const [{ uid }, { uid: deleted }] = [await harness.identity(), await harness.identity()];
    const [before, gone] = [await signedIn(uid), await signedIn(deleted)];
    await store().write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs: nowMs() }));
    assertNoSession(await before.renew());
    await later(2_000, async () => assertOpen(await (await signedIn(uid)).renew(), "the control: signed in again"));
    await store().write((tx) => tx.table(identityKind).delete(deleted));
    assertNoSession(await gone.renew());
  });
});

describe("a session is no refresh token", () => {
  const refreshTokenOf = (sec: string) => Buffer.from(JSON.stringify({ exp: 4_000_000_000, sec })).toString("base64");
  const refresh = (sec: string) =>
    postForm(`${harness.url}/oauth/token`, { grant_type: "refresh_token", refresh_token: refreshTokenOf(sec) });
  const revoke = (sec: string) => postForm(`${harness.url}/oauth/revoke`, { token: refreshTokenOf(sec) });

  it("neither half, nor what is made of them, is taken or ended by the endpoints of tokens", async () => {
    const browser = await signedIn();
    const [, secret = ""] = browser.cookie.split("=");
    const hashed = Buffer.from(hashOfText(secret) + hashOfText(browser.key), "hex").toString("latin1");
    for (const sec of [secret, browser.key, secret + browser.key, hashed]) {
      assert.equal((await refresh(sec)).body.error, "invalid_grant");
      assert.equal((await revoke(sec)).status, 200);
    }
    assertOpen(await browser.renew());
  });

  it("nor where its hash is that of a text", async () => {
    const row = await findRow(hashOf(await signedIn()));
    assert.ok(row);
    const sec = newKey();
    const session = { ...row, hash: hashOfText(sec), family: randomIds.newId() };
    await store().write((tx) => tx.refreshTokens.insert(session));
    assert.equal((await refresh(sec)).body.error, "invalid_grant");
    await revoke(sec);
    assert.ok(await findRow(session.hash), "nor is it ended");
    const { client: _, ...grant } = row.grant as { client?: string };
    const control = { ...row, hash: hashOfText(`${sec}x`), family: randomIds.newId(), grant };
    await store().write((tx) => tx.refreshTokens.insert(control));
    assert.equal((await refresh(`${sec}x`)).status, 200, "the control: a refresh token");
  });
});
