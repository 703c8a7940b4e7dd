// The exchange as clients send it: with curl, with queries and forms in every spelling, and over each protocol.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type DescMethodUnary, getOption, hasOption } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { type RawClient, rawClients, rawGrpc, requestOf } from "../../contract/iam-clients.js";
import { findScopeField, isUnavailable, methods } from "../../contract/iam-methods.js";
import { execFile } from "../../support/child-process.js";
import { requestH1, requestH2 } from "../../support/requests.js";
import { ask, queryOf, type RequestOptions } from "./ask.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

const NO_STORE = { "cache-control": "no-store", pragma: "no-cache", vary: "authorization" };

let world: ExchangeWorld;
let identity: string;
let clients: readonly RawClient[];

before(async () => {
  world = await startExchangeWorld();
  identity = await world.workload("ci", { role: "owner" });
  clients = rawClients(world.url);
});

after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

const bearer = () => world.token({ sub: "ci" });
const port = () => Number(new URL(world.url).port);

describe("token exchange with curl (docs/api-rules.md#token-exchange)", () => {
  const curl = async (...more: readonly string[]) => {
    const args = ["-sS", "-i", "-H", `Authorization: Bearer ${bearer()}`, ...more];
    const { stdout } = await execFile("curl", args, { timeout: 20_000 });
    const [head = "", body = ""] = stdout.split("\r\n\r\n");
    return { head: head.toLowerCase(), json: JSON.parse(body) as Record<string, unknown> };
  };

  it("gives a token for the identity, valid for an hour", async () => {
    const { head, json } = await curl(`${world.url}/sts/exchange?aud=${world.url}&identity=${identity}`);
    assert.match(head, /^http\/1\.1 200 /);
    for (const [name, value] of Object.entries(NO_STORE)) assert.match(head, new RegExp(`^${name}: ${value}$`, "m"));
    const { sub, aud, iat, exp } = claimsOf(String(json.token));
    assert.deepEqual([sub, aud, Number(exp) - Number(iat)], [identity, world.url, 3600]);
    assert.equal(Date.parse(String(json.expiry)), Number(exp) * 1000);
    const lists = ["groups", "identities", "roles", "roleBindings", "groupInvites", "identityProviders"];
    for (const list of [...lists, "accountAssociations"]) {
      const { status } = await ask(world.url, `/iam/v2beta1/${list}`, { bearer: String(json.token) });
      assert.equal(status, 200, list);
    }
  });

  it("by POST as well", async () => {
    const { json } = await curl(
      "-G",
      "-X",
      "POST",
      "-d",
      `aud=${world.url}`,
      "-d",
      `identity=${identity}`,
      `${world.url}/sts/exchange`,
    );
    assert.equal(claimsOf(String(json.token)).sub, identity);
    const form = await curl("-d", `aud=${world.url}`, "-d", `identity=${identity}`, `${world.url}/sts/exchange`);
    assert.equal(claimsOf(String(form.json.token)).sub, identity);
  });
});

it("a token is valid for every service that reflection lists", async () => {
  const token = await world.exchangeToken({ identity }, bearer());
  const reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl: world.url }));
  const listed = new Set<string>();
  async function* question() {
    yield { messageRequest: { case: "listServices" as const, value: "" } };
  }
  for await (const { messageResponse } of reflection.serverReflectionInfo(question())) {
    if (messageResponse.case === "listServicesResponse") {
      for (const { name } of messageResponse.value.service) listed.add(name);
    }
  }
  const called = [...methods, ...(Auth.methods as readonly DescMethodUnary[])];
  const open = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
  ];
  const others = [SecurityTokenService, AccessService, AuditService, EventsService, SessionsService].map(
    ({ typeName }) => typeName,
  );
  const covered = [...called.map(({ parent }) => parent.typeName), ...others, ...open];
  assert.deepEqual([...listed].sort(), [...new Set(covered)].sort());
  const grpc = rawGrpc(world.url);
  for (const method of called) {
    const isGuarded = hasOption(method, iam) && getOption(method, iam).mode.case === "enabled";
    if (!isGuarded) continue;
    const [known, nobody] = await Promise.all(
      [token, undefined].map((one) => grpc.call(method, requestOf(method, {}), one)),
    );
    assert.equal(nobody?.code, "UNAUTHENTICATED", method.name);
    assert.notEqual(known?.code, "UNAUTHENTICATED", method.name);
    if (/^(List|Validate)/.test(method.name) && findScopeField(method).length === 0 && !isUnavailable(method)) {
      assert.equal(known?.code, "OK", method.name);
    }
  }
  grpc.close();
});

describe("spellings over REST", () => {
  const groups = () => [world.root, `${world.root}/0123456789abcdef`];
  const tokenRequest = () => ({ aud: world.url, identity, cap: ["groups.list", "roles.list"], scopes: groups() });
  const plain = () => ({ aud: world.url, identity });
  const form = (text: string, query = ""): readonly [string, RequestOptions] => [
    `/sts/exchange${query}`,
    { method: "POST", form: text },
  ];
  const cases: readonly [
    name: string,
    sent: () => readonly [path: string, options?: RequestOptions],
    isLimited: boolean,
  ][] = [
    ["GET with a query", () => [`/sts/exchange?${queryOf(plain())}`], false],
    ["GET that limits", () => [`/sts/exchange?${queryOf(tokenRequest())}`], true],
    ["POST with a query", () => [`/sts/exchange?${queryOf(tokenRequest())}`, { method: "POST" }], true],
    [
      "POST with a query and {}",
      () => [`/sts/exchange?${queryOf(tokenRequest())}`, { method: "POST", json: {} }],
      true,
    ],
    ["POST with a form", () => form(queryOf(tokenRequest())), true],
    [
      "POST with a form and a charset",
      () => [
        `/sts/exchange`,
        {
          method: "POST",
          form: queryOf(tokenRequest()),
          headers: { "content-type": "Application/X-WWW-Form-URLEncoded; charset=UTF-8" },
        },
      ],
      true,
    ],
    [
      "POST with a form and a query",
      () => form(queryOf({ cap: tokenRequest().cap, scopes: groups() }), `?${queryOf(plain())}`),
      true,
    ],
    [
      "a group in scope, one in scopes",
      () => [
        `/sts/exchange?${queryOf({ ...plain(), cap: tokenRequest().cap, scope: groups()[0] ?? "", scopes: groups()[1] ?? "" })}`,
      ],
      true,
    ],
    ["a group in both", () => [`/sts/exchange?${queryOf({ ...tokenRequest(), scope: groups()[0] ?? "" })}`], true],
    [
      "an empty provider, in snake case",
      () => [`/sts/exchange?${queryOf({ ...tokenRequest(), identity_provider: "" })}`],
      true,
    ],
    [
      "an empty provider, in camel case",
      () => [`/sts/exchange?${queryOf({ ...tokenRequest(), identityProvider: "" })}`],
      true,
    ],
    [
      "the audience twice",
      () => [`/sts/exchange?${queryOf({ ...tokenRequest(), aud: [world.url, world.url] })}`],
      true,
    ],
    [
      "the audience in a list, once with a slash",
      () => [`/sts/exchange?${queryOf({ ...tokenRequest(), aud: `${world.url}/, ${world.url}` })}`],
      true,
    ],
    [
      "parameters of another version",
      () => [`/sts/exchange?${queryOf({ ...plain(), cluster: "c", include_upstream_token: "true", x: "y" })}`],
      false,
    ],
    ["unknown fields of a form", () => form(queryOf({ ...plain(), grant_type: "token-exchange" })), false],
    ["bare names", () => [`/sts/exchange?${queryOf(plain())}&identity_provider&&`], false],
  ];
  for (const [name, sent, isLimited] of cases) {
    it(name, async () => {
      const [path, withBody] = sent();
      const { status, text, json, headers } = await ask(world.url, path, { ...withBody, bearer: bearer() });
      assert.equal(status, 200, text);
      for (const [field, value] of Object.entries(NO_STORE)) assert.equal(headers.get(field), value);
      const { sub, aud, lim } = claimsOf(String(json.token)) as {
        sub: string;
        aud: string;
        lim?: { cap: string; scope: string[] };
      };
      assert.equal(sub, identity);
      assert.equal(new URL(aud).href, new URL(world.url).href);
      const expected = claimsOf(
        await world.exchangeToken({ cap: tokenRequest().cap, scopes: groups(), identity }, bearer()),
      ).lim;
      assert.deepEqual(lim, isLimited ? expected : undefined);
      assert.deepEqual(lim?.scope, isLimited ? groups() : undefined);
      const asking = { bearer: String(json.token) };
      assert.equal((await ask(world.url, "/iam/v2beta1/groups", asking)).status, 200, "it is good here");
    });
  }

  it("bodies of other types are rejected", async () => {
    const path = `/sts/exchange?${queryOf(plain())}`;
    const { status } = await ask(world.url, path, { method: "POST", json: { aud: [world.url] }, bearer: bearer() });
    assert.equal(status, 400);
  });
});

describe("methods of HTTP", () => {
  const cases: readonly [method: string, path: string, status: number, allow?: string][] = [
    ["HEAD", "/sts/exchange", 405, "GET, OPTIONS, POST"],
    ["TRACE", "/sts/exchange", 405, "GET, OPTIONS, POST"],
    ["PUT", "/sts/exchange", 405, "GET, OPTIONS, POST"],
    ["DELETE", "/sts/exchange", 405, "GET, OPTIONS, POST"],
    ["OPTIONS", "/sts/exchange", 204, "GET, OPTIONS, POST"],
    ["GET", "/sts/exchange_refresh_token", 405, "OPTIONS, POST"],
    ["HEAD", "/sts/exchange_refresh_token", 405, "OPTIONS, POST"],
    // It would take the result that another client polls for.
    ["HEAD", "/sts/headless_sessions", 405, "GET, OPTIONS"],
  ];
  for (const [method, path, status, allow] of cases) {
    it(`${method} ${path} is ${status}`, async () => {
      const query = queryOf({ aud: world.url, identity });
      const sent = {
        method,
        path: `${path}?${query}`,
        headers: { host: new URL(world.url).host, authorization: `Bearer ${bearer()}` },
      };
      const { host, ...headers } = sent.headers;
      for (const response of [await requestH1(port(), sent), await requestH2(port(), { ...sent, headers })]) {
        assert.equal(response.status, status, response.text);
        assert.equal(response.headers.allow, allow);
        assert.equal(response.headers["access-control-allow-origin"], undefined, "no other origin is let in");
        assert.ok(!/eyJ/.test(JSON.stringify(response.headers) + response.text), "nothing is echoed");
      }
    });
  }

  it("other origins are allowed where the operator configures them, with Vary for caches", async () => {
    const own = await startExchangeWorld({ corsOrigins: "https://app.example" });
    const uid = await own.workload("ci");
    const path = `/sts/exchange?${queryOf({ aud: own.url, identity: uid })}`;
    const from = (origin: string) => ask(own.url, path, { bearer: own.token({ sub: "ci" }), headers: { origin } });
    const { status, headers } = await from("https://app.example");
    assert.deepEqual([status, headers.get("access-control-allow-origin")], [200, "https://app.example"]);
    const varies = (headers.get("vary") ?? "").toLowerCase().split(/, */);
    assert.ok(varies.includes("origin") && varies.includes("authorization"), headers.get("vary") ?? "");
    assert.equal((await from("https://evil.example")).headers.has("access-control-allow-origin"), false);
    const asking = { "access-control-request-method": "GET", origin: "https://app.example" };
    const { headers: preflight } = await ask(own.url, path, { method: "OPTIONS", headers: asking });
    assert.equal(preflight.get("access-control-allow-methods"), "GET, OPTIONS, POST");
    await own.stop();
  });

  it("HEAD of everything else stays what it was", async () => {
    const headers = { authorization: `Bearer ${world.owner.token}` };
    const { status, text } = await requestH1(port(), { method: "HEAD", path: "/iam/v2beta1/groups", headers });
    assert.deepEqual([status, text], [200, ""]);
    assert.equal((await requestH1(port(), { method: "HEAD", path: "/auth/v1/ok", headers })).status, 200);
  });
});

describe("protocols", () => {
  const tokenIn = (bytes: string) => /ey[\w-]+\.ey[\w-]+\.[\w-]{86}/.exec(bytes)?.[0] ?? "";
  const limits = () => ({ identity, aud: [world.url], cap: ["groups.list"], scope: world.root, scopes: [world.root] });

  for (const name of ["REST", "gRPC", "Connect", "gRPC-Web"]) {
    const client = () => clients.find((one) => one.name === name) ?? assert.fail(name);
    const { exchange } = SecurityTokenService.method;

    it(`${name} gives a token that must not be cached`, async () => {
      const { code, bytes } = await client().call(exchange, requestOf(exchange, limits()), bearer());
      assert.equal(code, "OK", bytes);
      const { sub, lim } = claimsOf(tokenIn(bytes)) as { sub: string; lim: { scope: string[] } };
      assert.deepEqual([sub, lim.scope], [identity, [world.root]]);
      for (const field of Object.entries(NO_STORE)) assert.ok(bytes.includes(field.join(": ")), bytes);
    });

    it(`${name} rejects with the same code, not to be cached`, async () => {
      const rejected: readonly [string, object, string][] = [
        ["PERMISSION_DENIED", limits(), world.token({ sub: "x" })],
        ["UNAUTHENTICATED", limits(), "x"],
        ["INVALID_ARGUMENT", { identity }, bearer()],
      ];
      for (const [code, request, token] of rejected) {
        const response = await client().call(exchange, requestOf(exchange, request), token);
        assert.equal(response.code, code);
        // Responses of gRPC are not cached, and its errors are trailers only.
        assert.ok(name === "gRPC" || response.bytes.includes("cache-control: no-store"), response.bytes);
        assert.ok(!response.bytes.includes("eyJ"), response.bytes);
      }
    });
  }

  const transports: readonly [string, () => Transport][] = [
    ["gRPC", () => createGrpcTransport({ baseUrl: world.url })],
    ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: world.url, httpVersion: "1.1" })],
    ["Connect", () => createConnectTransport({ baseUrl: world.url, httpVersion: "2" })],
    ["Connect with GET", () => createConnectTransport({ baseUrl: world.url, httpVersion: "1.1", useHttpGet: true })],
  ];
  for (const [name, transport] of transports) {
    it(`connect's client over ${name}`, async () => {
      const client = createClient(SecurityTokenService, transport());
      const headers = { authorization: `Bearer ${bearer()}` };
      const kept = new Headers();
      const response = await client.exchange(limits(), {
        headers,
        onHeader: (received) => received.forEach((value, field) => void kept.set(field, value)),
      });
      assert.equal(claimsOf(response.token).sub, identity);
      assert.equal(kept.get("cache-control"), "no-store");
      assert.equal(Number(response.expiry?.seconds), claimsOf(response.token).exp);
    });
  }

  it("have one text for one cause", async () => {
    const { exchange } = SecurityTokenService.method;
    for (const client of clients) {
      const { bytes } = await client.call(exchange, requestOf(exchange, limits()), world.token({ sub: "x" }));
      const escaped = bytes.replace(/%(?![0-9A-F]{2})/g, "%25");
      assert.ok(
        decodeURIComponent(escaped).includes(`Permission denied: assuming ${identity} (or it might not exist)`),
        bytes,
      );
    }
  });
});
