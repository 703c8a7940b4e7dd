import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it, type TestContext } from "node:test";
import { Code } from "@connectrpc/connect";
import { findStoredToken, issueTokenFor } from "../../../../src/cli/remote/auth/credentials.js";
import {
  changeCredentials,
  readCredentials,
  type StoredLogin,
  setLogin,
} from "../../../../src/cli/remote/auth/credentials-file.js";
import { tempDir } from "../../../support/temp-dir.js";
import { jwt, type LoginService, startLoginService } from "./login-service.js";
import { commandErrorOf, script } from "./process.js";

const RENEWAL = "POST /sts/exchange_refresh_token";
const EXCHANGE = "GET /sts/exchange";

let file: string;
beforeEach(() => {
  file = join(tempDir(), "credentials.json");
  process.env.ARBOR_CREDENTIALS = file;
});

const keep = (api: string, login: StoredLogin) => changeCredentials(file, (now) => setLogin(now, api, login));
const readLogin = async (api: string) => (await readCredentials(file)).logins.get(api) ?? assert.fail("no login");
const tokenAt = async (api: string) => (await findStoredToken(api))?.token();

async function logIn(test: TestContext, lifeS: number): Promise<{ service: LoginService; login: StoredLogin }> {
  const service = await startLoginService(test);
  const login = service.newLogin(lifeS);
  await keep(service.url, login);
  return { service, login };
}

describe("a stored login", () => {
  it("is used as it is while its token is good", async (test) => {
    const { service, login } = await logIn(test, 3600);
    assert.equal(await tokenAt(service.url), login.token);
    assert.equal(await tokenAt(`${service.url}/`), login.token);
    assert.deepEqual(service.requests, []);
  });

  it("is nobody else's: no other service gets a token", async (test) => {
    const { service } = await logIn(test, 3600);
    const { port } = new URL(service.url);
    const others = [
      `http://localhost:${port}`,
      `http://127.0.0.2:${port}`,
      `https://127.0.0.1:${port}`,
      `http://127.0.0.1:${Number(port) + 1}`,
      `${service.url}.example.com`,
      `${service.url}/path`,
      service.url.replace("http://", "http://127.0.0.1@"),
      "not a url",
    ];
    for (const other of others) assert.equal(await findStoredToken(other), undefined, other);
  });

  it("is never sent in cleartext to another machine, even when a file says so", async () => {
    await keep("http://platform.example.com", { token: "a.b.c" });
    assert.equal(await findStoredToken("http://platform.example.com"), undefined);
  });

  it("is renewed when its token ends soon, for its own service", async (test) => {
    for (const lifeS of [-60, 0, 200]) {
      // A token of an hour, of which this much is left.
      const { service, login } = await logIn(test, 3600);
      const token = jwt({ iat: Date.now() / 1000 - 3600 + lifeS, exp: Date.now() / 1000 + lifeS });
      await keep(service.url, { ...login, token });
      const renewed = await tokenAt(service.url);
      const [request, ...more] = service.requests;
      assert.equal(request?.route, RENEWAL);
      assert.deepEqual([...(request?.query ?? [])], [["aud", service.url]]);
      assert.equal(request?.bearer, login.refreshToken);
      assert.deepEqual(more, []);
      const { token: stored, refreshToken } = await readLogin(service.url);
      assert.equal(stored, renewed);
      assert.notEqual(refreshToken, login.refreshToken);
      assert.equal(await tokenAt(service.url), renewed, "and the new one is used");
      assert.equal(service.requests.length, 1);
    }
  });

  it("is used for half the life of a token that is short", async (test) => {
    const { service, login } = await logIn(test, 60);
    assert.equal(await tokenAt(service.url), login.token);
  });

  it("is renewed when the service refuses its token, once for all who hear that", async (test) => {
    const { service, login } = await logIn(test, 3600);
    const source = (await findStoredToken(service.url)) ?? assert.fail("no login");
    const [one, two] = await Promise.all([source.renew?.(login.token), source.renew?.(login.token)]);
    assert.notEqual(one, login.token);
    assert.equal(two, one);
    assert.equal(service.count(RENEWAL), 1);
  });

  it("gives what is left of its token while the service cannot renew it", async (test) => {
    const { service, login } = await logIn(test, 3600);
    const token = jwt({ iat: 0, exp: Math.floor(Date.now() / 1000) + 100 });
    await keep(service.url, { ...login, token });
    service.fault = [503, { code: 14, message: "Unavailable: soon", details: [] }];
    assert.equal(await tokenAt(service.url), token);
    assert.equal(service.count(RENEWAL), 1, "and asks once");
    const source = (await findStoredToken(service.url)) ?? assert.fail("no login");
    const { code, message } = await commandErrorOf(Promise.resolve(source.renew?.(token)));
    assert.equal(code, Code.Unavailable);
    assert.equal(message, "Unavailable: soon");
    service.fault = undefined;
    assert.notEqual(await tokenAt(service.url), token);
  });

  it("says that it has ended when it has", async (test) => {
    const { service, login } = await logIn(test, -60);
    const ended = `the login at ${service.url} has ended; run: arbor auth login --api ${service.url}`;
    const stolen = await fetch(`${service.url}/sts/exchange_refresh_token?aud=x`, {
      method: "POST",
      headers: { authorization: `Bearer ${login.refreshToken}` },
    });
    assert.equal(stolen.status, 200);
    const refused = await commandErrorOf(tokenAt(service.url));
    assert.deepEqual([refused.code, refused.message], [Code.Unauthenticated, ended]);
    await keep(service.url, { token: login.token });
    const bare = await commandErrorOf(tokenAt(service.url));
    assert.deepEqual([bare.code, bare.message], [Code.Unauthenticated, ended], "without a refresh token");
  });

  it("keeps secrets out of errors", async (test) => {
    const { service, login } = await logIn(test, -60);
    service.fault = [500, { code: 13, message: `what is ${login.refreshToken}?`, details: [] }];
    assert.equal((await commandErrorOf(tokenAt(service.url))).message, "what is [secret]?");
    service.fault = [307, {}, "http://127.0.0.1:1/elsewhere"];
    assert.match((await commandErrorOf(tokenAt(service.url))).message, /responded with the status 307$/);
  });

  it("gives tokens for others without keeping them, and stays good", async (test) => {
    const { service, login } = await logIn(test, 3600);
    const other = await issueTokenFor(service.url, "https://other.example.com");
    assert.equal(service.requests[0]?.query.get("aud"), "https://other.example.com");
    const stored = await readLogin(service.url);
    assert.equal(stored.token, login.token);
    assert.notEqual(stored.token, other);
    assert.notEqual(await issueTokenFor(service.url, "https://other.example.com"), other);
    assert.equal(service.count(RENEWAL), 2);
  });
});

describe("processes that renew one login at the same time", () => {
  it("use its refresh token once, and all get the new token", async (test) => {
    const { service } = await logIn(test, -60);
    // Long enough for all of them to be there before the first is done.
    service.renewalMs = 1_000;
    const all = Array.from({ length: 4 }, () => script("print-token.ts", [service.url], { ARBOR_CREDENTIALS: file }));
    const ends = await Promise.all(all.map(({ ended }) => ended));
    const { token, refreshToken = "" } = await readLogin(service.url);
    for (const end of ends) assert.deepEqual(end, { code: 0, signal: null, stdout: token, stderr: "" });
    assert.equal(service.count(RENEWAL), 1);
    // The service would know by now if one had been used twice.
    await keep(service.url, { token: jwt({ exp: 0 }), refreshToken });
    assert.ok(await tokenAt(service.url));
  });

  it("do not lose it when one is interrupted between the answer and the write", async (test) => {
    const { service, login } = await logIn(test, -60);
    service.renewalMs = 500;
    const { child, ended } = script("print-token.ts", [service.url], { ARBOR_CREDENTIALS: file });
    while (service.requests.length === 0 && child.exitCode === null)
      await new Promise((resolve) => setTimeout(resolve, 10));
    child.kill("SIGINT");
    assert.equal((await ended).signal, "SIGINT");
    const { token, refreshToken } = await readLogin(service.url);
    assert.notEqual(refreshToken, login.refreshToken);
    assert.equal(await tokenAt(service.url), token);
    assert.equal(service.count(RENEWAL), 1);
  });
});

describe("a stored login of an identity", () => {
  it("is renewed with what its token file holds then", async (test) => {
    const service = await startLoginService(test);
    const tokenFile = join(tempDir(), "oidc-token");
    writeFileSync(tokenFile, "first\n");
    const workload = { identity: "0123456789abcdef0123456789abcdef01234567/4567", tokenFile };
    await keep(service.url, { token: jwt({ exp: 0 }), workload });
    const token = await tokenAt(service.url);
    assert.equal(await tokenAt(service.url), token);
    writeFileSync(tokenFile, "second\n");
    await (await findStoredToken(service.url))?.renew?.(token ?? "");
    assert.notEqual(await issueTokenFor(service.url, "https://other.example.com"), token);
    assert.deepEqual(
      service.requests.map(({ route, bearer, query }) => [route, bearer, ...query.values()]),
      [
        [EXCHANGE, "first", service.url, workload.identity],
        [EXCHANGE, "second", service.url, workload.identity],
        [EXCHANGE, "second", "https://other.example.com", workload.identity],
      ],
    );
    const stored = await readLogin(service.url);
    assert.deepEqual(stored.workload, workload);
    await keep(service.url, { ...stored, token: jwt({ exp: 0 }) });
    rmSync(tokenFile);
    const { code, message } = await commandErrorOf(tokenAt(service.url));
    const remedy = `cannot read ${tokenFile}: no such file`;
    assert.deepEqual([code, message], [Code.Unauthenticated, `no token in the file ${tokenFile}\n  ${remedy}`]);
  });
});
