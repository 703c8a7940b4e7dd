// What the access log has a line for, and what it says of requests that are rejected.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Health } from "#gen/health/v1/health_pb.js";
import { signJwt } from "../../src/kernel/jws.js";
import { encodeApiToken, type TokenClaims } from "../../src/pipeline/auth/api-token.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { RequestRecord } from "../../src/telemetry/request-record.js";
import { createAccessLog } from "../../src/transport/http/access-log.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type LocalIssuer, startLocalIssuer, type TokenOptions } from "../support/local-issuer.js";
import { tempDir } from "../support/temp-dir.js";
import { openHttp2, rawTcp } from "./harness.js";

type Line = Record<string, unknown>;

async function startLogged(accessLog: string, settings: Readonly<Record<string, string>> = {}) {
  const lines: Line[] = [];
  const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const service = await startHarness({ accessLog, ...settings }, { logger });
  return {
    service,
    lines,
    async line(matches: (line: Line) => boolean): Promise<Line> {
      for (let i = 0; i < 300; i++) {
        const found = lines.find((line) => line.msg === "request" && matches(line));
        if (found !== undefined) return found;
        await sleep(10);
      }
      throw new assert.AssertionError({ message: "there is no such line" });
    },
  };
}

type Logged = Awaited<ReturnType<typeof startLogged>>;

const ask = async (service: Harness, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(service.url + path, { headers });
  await response.arrayBuffer();
  return response.status;
};

const checkHealth = (service: Harness, name: string) =>
  createClient(Health, createGrpcTransport({ baseUrl: service.url })).check({ service: name });

describe("--access-log", () => {
  for (const { mode, ok, failed } of [
    { mode: "all", ok: true, failed: true },
    { mode: "errors", ok: false, failed: true },
    { mode: "off", ok: false, failed: false },
  ]) {
    test(`${mode}: probes that succeed are never logged`, async () => {
      const { service, lines, line } = await startLogged(mode);
      try {
        assert.equal(await ask(service, "/healthz"), 200);
        assert.equal(await ask(service, "/readyz"), 200);
        await checkHealth(service, "");
        await checkHealth(service, "unknown").catch(() => {});
        assert.equal(await ask(service, "/docs/"), 200);
        assert.equal(await ask(service, "/nowhere"), 404);
        // The last of them is logged last or never.
        if (failed) await line(({ path }) => path === "/nowhere");
        if (failed) await line(({ method }) => method === "grpc.health.v1.Health/Check");
        await sleep(50);
        const logged = lines.filter(({ msg }) => msg === "request").map(({ method, path }) => method ?? path);
        const expected = [...(ok ? ["docs"] : []), ...(failed ? ["/nowhere", "grpc.health.v1.Health/Check"] : [])];
        assert.deepEqual(logged.sort(), expected.sort());
      } finally {
        await service.stop();
      }
    });
  }
});

describe("the reason of a 401", () => {
  let logged: Logged;
  let identity: string;
  before(async () => {
    logged = await startLogged("all");
    ({ identity } = await logged.service.organisation("reasons"));
  });
  after(() => logged?.service.stop());
  beforeEach(() => void logged.lines.splice(0));

  const foreign = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;

  async function tokenWith(change: Partial<TokenClaims>, key?: Parameters<typeof encodeApiToken>[1]): Promise<string> {
    const { service } = logged;
    const claims = {
      ...{ issuer: service.url, audience: service.url, subject: identity, tokenId: "t" },
      ...{ issuedAt: Math.floor(Date.now() / 1000), lifeS: 60 },
    };
    const signing = key ?? service.app.installation.keys.getSigningKey();
    return signJwt(encodeApiToken({ ...claims, ...change }, signing));
  }

  const now = () => Math.floor(Date.now() / 1000);
  const rows: readonly { readonly reason: string | undefined; readonly token: () => Promise<string | undefined> }[] = [
    { reason: undefined, token: () => tokenWith({}) },
    { reason: "token_missing", token: async () => undefined },
    { reason: "token_malformed", token: async () => "hidden.hidden" },
    { reason: "token_expired", token: () => tokenWith({ issuedAt: now() - 1_000 }) },
    { reason: "token_unknown_key", token: () => tokenWith({}, { kid: "unknown", key: foreign }) },
    { reason: "token_signature", token: () => tokenWith({}, { kid: kid(), key: foreign }) },
    { reason: "token_issuer", token: () => tokenWith({ issuer: "https://other.example" }) },
    { reason: "token_audience", token: () => tokenWith({ audience: "https://other.example" }) },
    { reason: "token_claims", token: () => tokenWith({ issuedAt: now() + 1_000 }) },
    { reason: "identity_deleted", token: () => logged.service.token("f".repeat(40)) },
    {
      reason: "person_deactivated",
      token: async () => {
        const { uid, token } = await logged.service.identity();
        await logged.service.app.installation.store.write((tx) => tx.table(identityKind).setDeactivated(uid, 1));
        return token;
      },
    },
    {
      reason: "token_revoked",
      token: async () => (await logged.service.identity({ notBefore: now() + 100 })).token,
    },
  ];
  const kid = () => logged.service.app.installation.keys.getSigningKey().kid;

  for (const { reason, token: newToken } of rows) {
    for (const protocol of ["rest", "grpc", "connect"]) {
      test(`${protocol}: ${reason ?? "none for a token that is valid"}`, async () => {
        const { service, lines, line } = logged;
        const token = await newToken();
        const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
        const status = await listBy(protocol, service, { ...authorization, "x-request-id": "r" });
        assert.equal(status, reason === undefined ? "OK" : "UNAUTHENTICATED");
        const found = await line(({ requestId }) => requestId === "r");
        assert.equal(found.reason, reason);
        assert.equal(found.code, status);
        assert.equal(found.protocol, protocol);
        if (token !== undefined) assert.equal(JSON.stringify(lines).includes(token.slice(-20)), false);
      });
    }
  }

  const METHOD = "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups";

  async function listBy(protocol: string, service: Harness, headers: Record<string, string>): Promise<string> {
    if (protocol === "grpc") {
      const session = openHttp2(service.url);
      const stream = session.request({
        ...{ ":method": "POST", ":path": METHOD, "content-type": "application/grpc", te: "trailers" },
        ...headers,
      });
      stream.end(Buffer.alloc(5));
      const code = await new Promise<string>((resolve) => {
        stream.on("response", (head) => head["grpc-status"] !== undefined && resolve(String(head["grpc-status"])));
        stream.on("trailers", (fields) => resolve(String(fields["grpc-status"])));
        stream.resume();
      });
      session.destroy();
      return code === "0" ? "OK" : code === "16" ? "UNAUTHENTICATED" : code;
    }
    const response =
      protocol === "rest"
        ? await fetch(`${service.url}/iam/v2beta1/groups`, { headers })
        : await fetch(service.url + METHOD, {
            method: "POST",
            headers: { ...headers, "content-type": "application/json" },
            body: "{}",
          });
    await response.arrayBuffer();
    return response.status === 200 ? "OK" : response.status === 401 ? "UNAUTHENTICATED" : String(response.status);
  }
});

describe("the reason of rejections elsewhere", () => {
  let logged: Logged;
  let workloads: LocalIssuer;
  let identity: string;
  before(async () => {
    workloads = await startLocalIssuer();
    logged = await startLogged("all", { trustedIssuers: workloads.issuer });
    const { group } = await logged.service.organisation("others");
    const relationship = { claimMatch: { issuer: workloads.issuer, subject: "ci" } };
    ({ uid: identity } = await logged.service.identity({ relation: 1, relationship }, group));
  });
  after(async () => {
    await logged?.service.stop();
    await workloads?.stop();
  });

  interface Expected {
    readonly reason: string | undefined;
    readonly status: number;
    readonly secret: string | undefined;
  }
  const now = () => Math.floor(Date.now() / 1000);
  const workload = (claims: object = {}, options: TokenOptions = {}) =>
    workloads.token({ aud: logged.service.url, sub: "ci", ...claims }, options);
  const foreign = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const own = async () => (await logged.service.identity()).token;
  const tokens: readonly {
    readonly reason: string | undefined;
    readonly token: () => Promise<string | undefined>;
    /** What depends on the identity is PERMISSION_DENIED, so that callers cannot find out which there are. */
    readonly status?: number;
  }[] = [
    { reason: undefined, token: async () => workload(), status: 200 },
    { reason: "token_missing", token: async () => undefined },
    { reason: "token_malformed", token: async () => "hidden.hidden" },
    { reason: "token_expired", token: async () => workload({ iat: now() - 1_000, exp: now() - 500 }) },
    { reason: "token_unknown_key", token: async () => workload({}, { header: { kid: "unknown" } }), status: 403 },
    { reason: "token_signature", token: async () => workload({}, { key: foreign }), status: 403 },
    { reason: "token_issuer", token: own },
    { reason: "token_audience", token: async () => workload({ aud: "https://other.example" }), status: 403 },
    { reason: "token_claims", token: async () => workload({ iat: now() + 1_000, exp: now() + 1_500 }) },
  ];

  async function assertLogged(path: string, headers: Record<string, string>, expected: Expected) {
    const { reason, status, secret } = expected;
    const { service, lines, line } = logged;
    lines.splice(0);
    const requestId = `r-${reason}`;
    const response = await fetch(service.url + path, { headers: { ...headers, "x-request-id": requestId } });
    await response.arrayBuffer();
    assert.equal(response.status, status);
    const found = await line((one) => one.requestId === requestId);
    assert.equal(found.reason, reason);
    if (secret !== undefined) assert.equal(JSON.stringify(lines).includes(secret.slice(-20)), false);
  }

  for (const { reason, token: newToken, status = 401 } of tokens) {
    test(`exchange: ${reason ?? "none for a token that is valid"}`, async () => {
      const token = await newToken();
      const query = new URLSearchParams({ aud: logged.service.url, identity });
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      await assertLogged(`/sts/exchange?${query}`, headers, { reason, status, secret: token });
    });
  }

  const basic = (user: string, password: string) => ({
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
  });
  const passwords: readonly {
    readonly reason: string | undefined;
    readonly user?: string;
    readonly password: () => Promise<string>;
  }[] = [
    { reason: undefined, password: own },
    { reason: "token_malformed", password: async () => "hidden.hidden.hidden.hidden" },
    {
      reason: "token_expired",
      password: async () => workload({ iat: now() - 1_000, exp: now() - 500 }),
      user: "identity",
    },
    { reason: "token_signature", password: async () => workload({}, { key: foreign }), user: "identity" },
    { reason: "match_subject", password: async () => workload({ sub: "another" }), user: "identity" },
    { reason: "credential", password: async () => "" },
  ];
  for (const { reason, user, password: newPassword } of passwords) {
    test(`registry: ${reason ?? "none for a password that is right"}`, async () => {
      const password = await newPassword();
      const headers = basic(user === undefined ? "somebody" : identity, password);
      const status = reason === undefined ? 200 : 401;
      await assertLogged("/token?service=arbor", headers, { reason, status, secret: password || undefined });
    });
  }
});

for (const [how, code] of [
  ["with CANCEL", 8],
  ["without an error code", 0],
] as const) {
  test(`a caller that leaves ${how} is logged as cancelled`, async () => {
    const { service, line } = await startLogged("all");
    try {
      const session = openHttp2(service.url);
      const stream = session.request({
        ":method": "POST",
        ":path": "/grpc.health.v1.Health/Watch",
        "content-type": "application/grpc",
      });
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      await new Promise((resolve) => stream.once("data", resolve));
      stream.close(code);
      const left = await line(({ method }) => method === "grpc.health.v1.Health/Watch");
      session.destroy();
      assert.deepEqual([left.code, left.canceled], ["CANCELLED", true]);
    } finally {
      await service.stop();
    }
  });
}

test("nothing of a path ends its line", async () => {
  const { service, line, lines } = await startLogged("all");
  try {
    const path = '/a%0a"},{\u007f"level":"fatal"';
    await rawTcp(Number(new URL(service.url).port), `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await line((one) => one.status === 400 || one.path === path);
    assert.ok(lines.every(({ level }) => level === "info"));
  } finally {
    await service.stop();
  }
});

describe("a line is ASCII and says exactly what it is about", () => {
  for (const { path, durationMs, ...more } of [
    { path: "/plain-_.~!$&'()*+,;=:@", durationMs: 0 },
    { path: '/quote"backslash\\', durationMs: 0.0004 },
    { path: "/ü/\u{1f600}/\ud800", durationMs: 0.0096 },
    { path: "/\u0000\n\u007f\u0080\u2028", durationMs: 12.3456 },
    { path: "/", durationMs: 61_000.5, httpMethod: "GÉT", remoteAddress: 'fe80::1%"é"' },
  ]) {
    test(JSON.stringify(path), () => {
      const texts: string[] = [];
      const log = createAccessLog(createLogger("info", { write: (line) => void texts.push(line) }), "all");
      const start = { requestId: "id", protocol: "rest", httpVersion: "1.1", traceId: "0af7", bytesIn: 7 } as const;
      const named = { httpMethod: "GET", remoteAddress: "127.0.0.1", ...more };
      const record = new RequestRecord({ ...start, ...named, path }, log === undefined ? [] : [log.observe]);
      record.setCaller("aa/bb");
      record.end(404, true);
      record.durationMs = durationMs;
      texts.length = 0;
      log?.observe(record);
      const [text = ""] = texts;
      assert.match(text, /^[ -~]+\n$/);
      assert.deepEqual(JSON.parse(text), {
        level: "info",
        time: new Date(record.endMs).toISOString(),
        requestId: "id",
        traceId: "0af7",
        callerUid: "aa/bb",
        organisation: "aa",
        protocol: "rest",
        httpVersion: "1.1",
        httpMethod: named.httpMethod,
        path,
        code: "NOT_FOUND",
        status: 404,
        bytesIn: 7,
        bytes: 0,
        durationMs: Math.round(durationMs * 1_000) / 1_000,
        remoteAddress: named.remoteAddress,
        msg: "request",
      });
    });
  }
});

test("start and stop have a line each", async () => {
  const registrySecretFile = join(tempDir(), "registry.secret");
  writeFileSync(registrySecretFile, "hidden-of-the-registry-0123456789abcdef", { mode: 0o600 });
  const { service, lines } = await startLogged("off", { registrySecretFile });
  await service.app.stop("SIGTERM");
  const [started, stopped] = [lines.find(({ msg }) => msg === "started"), lines.find(({ msg }) => msg === "stopped")];
  assert.equal(started?.address, service.url);
  assert.equal(started?.node, process.version);
  assert.deepEqual([started?.baseUrl, started?.issuer], [service.url, service.url]);
  const { port } = new URL(service.url);
  assert.deepEqual(started?.audiences, [service.url, `http://localhost:${port}`, `http://[::1]:${port}`]);
  assert.match(String(started?.version), /^\d+\.\d+\.\d+/);
  assert.deepEqual(Object.keys(started?.settings ?? {}).sort(), [
    "accessLog",
    "data",
    "listen",
    "maxWait",
    "metricsListen",
    "registrySecretFile",
    "tokenAlgorithm",
  ]);
  const settings = started?.settings as Record<string, unknown>;
  assert.equal(settings.registrySecretFile, registrySecretFile, "a path is no secret");
  assert.ok(!JSON.stringify(lines).includes("hidden"));
  assert.deepEqual(
    [stopped?.version, stopped?.store, stopped?.address],
    [started?.version, started?.store, started?.address],
  );
  assert.equal(stopped?.reason, "SIGTERM");
  assert.ok(Number(stopped?.durationMs) >= 0);
});
