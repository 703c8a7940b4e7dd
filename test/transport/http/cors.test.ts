// Scripts of other origins, on sockets of both HTTP versions: who gets what.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { type FeatureServer, type Received, startFeatureServer } from "../../support/feature/feature-server.js";
import { requestH1, requestH2 } from "../../support/requests.js";
import { frame, type Running, SERVICE, startServer } from "../harness.js";

const APP = "https://app.example.org";
const LOCAL = "http://localhost:3000";
const EXPOSED =
  "grpc-status, grpc-message, grpc-status-details-bin, content-encoding, connect-content-encoding, x-request-id, " +
  "retry-after, www-authenticate, etag";
const ALLOWED =
  "content-type, connect-protocol-version, connect-timeout-ms, connect-content-encoding, connect-accept-encoding, " +
  "content-encoding, accept-encoding, grpc-message-type, x-grpc-web, x-user-agent, grpc-timeout, authorization, " +
  "x-request-id, x-server-timeout, x-http-method-override, traceparent, tracestate, baggage, sentry-trace";

interface CorsRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

// What the CORS layer has put on a response.
function corsOf({ headers }: Received): Record<string, unknown> {
  const names = Object.keys(headers).filter((name) => name === "vary" || name.startsWith("access-control-"));
  return Object.fromEntries(names.sort().map((name) => [name, headers[name]]));
}

function preflight(path: string, origin = APP, method = "PUT"): CorsRequest {
  return { method: "OPTIONS", path, headers: { origin, "access-control-request-method": method } };
}

describe("cors", () => {
  let feature: FeatureServer;
  const servers = new Map<string, Running>();

  before(async () => {
    feature = await startFeatureServer({
      GetThing: (_request, call) => {
        call.responseHeader.set("etag", '"1"');
        call.responseHeader.set("vary", "x-tenant");
        return { displayName: "x".repeat(2000) };
      },
    });
    const { gateway } = feature;
    servers.set("off", await startServer({ gateway }));
    servers.set("some", await startServer({ gateway, corsOrigins: [APP, LOCAL] }));
    const corsHeaders = ["X-Api-Key", "x-b", "traceparent"];
    servers.set("more", await startServer({ gateway, corsOrigins: [APP], corsHeaders }));
    servers.set("all", await startServer({ gateway, corsOrigins: ["*"] }));
  });
  after(async () => {
    for (const server of servers.values()) await server.stop();
    await feature.stop();
  });

  function ask(which: string, protocol: "h1" | "h2", request: CorsRequest): Promise<Received> {
    const server = servers.get(which);
    assert.ok(server);
    return protocol === "h1" ? requestH1(server.port, request) : requestH2(server.port, request);
  }

  const thing = "/feature/v1/things/a";
  const getGroup = `${SERVICE}/GetGroup`;
  const unary = { "content-type": "application/json", "connect-protocol-version": "1" };
  const web = { "content-type": "application/grpc-web+proto" };
  const answered: readonly (CorsRequest & { status: number; vary?: string; reason: string })[] = [
    { path: thing, status: 200, vary: "origin, x-tenant, accept-encoding", reason: "REST" },
    { path: "/feature/v1/nothing", status: 404, reason: "an error of REST" },
    { path: "/feature/v1/things?nope=1", status: 400, reason: "a rejection of REST" },
    { method: "POST", path: getGroup, headers: unary, body: '{"uid":"a"}', status: 200, reason: "Connect" },
    {
      method: "POST",
      path: getGroup,
      headers: unary,
      body: '{"uid":"gone"}',
      status: 404,
      reason: "an error of Connect",
    },
    { path: `${getGroup}?encoding=json&message=%7B%7D&connect=v1`, status: 200, reason: "Connect by GET" },
    { method: "POST", path: "/a.B/C", headers: unary, body: "{}", status: 404, reason: "an unknown method" },
    { method: "POST", path: getGroup, headers: web, body: frame(new Uint8Array()), status: 200, reason: "gRPC-Web" },
    {
      method: "POST",
      path: "/a.B/C",
      headers: web,
      body: frame(new Uint8Array()),
      status: 200,
      reason: "unknown to it",
    },
    { path: "/healthz", status: 200, reason: "a route of operators" },
  ];

  for (const protocol of ["h1", "h2"] as const) {
    for (const { status, vary = "origin", reason, ...request } of answered) {
      test(`${protocol}: ${reason}`, async () => {
        const from = (origin: string | undefined) => ({
          ...request,
          headers: { ...request.headers, ...(origin !== undefined && { origin }) },
        });
        for (const origin of [APP, LOCAL]) {
          const got = await ask("some", protocol, from(origin));
          assert.equal(got.status, status);
          assert.deepEqual(corsOf(got), {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": EXPOSED,
            vary,
          });
        }
        assert.deepEqual(corsOf(await ask("some", protocol, from(undefined))), { vary });
        assert.deepEqual(corsOf(await ask("some", protocol, from("https://evil.example"))), { vary });
        const own = vary === "origin" ? {} : { vary: vary.slice("origin, ".length) };
        assert.deepEqual(corsOf(await ask("all", protocol, from("null"))), {
          "access-control-allow-origin": "*",
          "access-control-expose-headers": EXPOSED,
          ...own,
        });
        assert.deepEqual(corsOf(await ask("all", protocol, from(undefined))), own);
        assert.deepEqual(corsOf(await ask("off", protocol, from(APP))), own);
      });
    }

    const preflights: readonly { path: string; methods: string; reason: string }[] = [
      { path: thing, methods: "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PURGE, PUT", reason: "REST" },
      { path: "/feature/v1/echo?x=1", methods: "OPTIONS, POST", reason: "REST with a query" },
      { path: getGroup, methods: "GET, POST", reason: "RPC without side effects" },
      { path: `${SERVICE}/CreateGroup`, methods: "POST", reason: "RPC with side effects" },
    ];

    for (const { path, methods, reason } of preflights) {
      test(`${protocol}: preflight of ${reason}`, async () => {
        const before = feature.calls.length;
        const got = await ask("some", protocol, preflight(path));
        assert.equal(got.status, 204);
        assert.equal(got.bytes.length, 0);
        assert.deepEqual(corsOf(got), {
          "access-control-allow-headers": ALLOWED,
          "access-control-allow-methods": methods,
          "access-control-allow-origin": APP,
          "access-control-max-age": "7200",
          vary: "origin",
        });
        const all = corsOf(await ask("all", protocol, preflight(path)));
        assert.deepEqual([all["access-control-allow-origin"], all.vary], ["*", undefined]);
        assert.equal(feature.calls.length, before);
      });
    }

    test(`${protocol}: preflights allow metadata by its name, and the fields of the setting`, async () => {
      const allowedFor = async (which: string, asked: string) => {
        const { headers } = preflight(thing);
        const given = { ...headers, "access-control-request-headers": asked };
        const got = await ask(which, protocol, { method: "OPTIONS", path: thing, headers: given });
        return got.headers["access-control-allow-headers"];
      };
      const metadata = "grpc-metadata-x-tenant, grpc-metadata-foo";
      assert.equal(
        await allowedFor("some", "Grpc-Metadata-X-Tenant,x-other, grpc-metadata-foo"),
        `${ALLOWED}, ${metadata}`,
      );
      for (const asked of ["grpc-metadata-", "grpc-metadata-a:b", "grpc-metadata-a b", "x-grpc-metadata-a", "*", ",,"])
        assert.equal(await allowedFor("some", asked), ALLOWED, asked);
      assert.equal(await allowedFor("more", "x-api-key"), `${ALLOWED}, x-api-key, x-b`);
    });

    // Nothing of these is an origin of the list, however much it looks like one.
    const lookalikes = [
      ...[
        "null",
        "*",
        "",
        "https://evil.example",
        "https://app.example.org.evil.example",
        "https://evilapp.example.org",
      ],
      ...[
        "https://sub.app.example.org",
        "https://example.org",
        "http://app.example.org",
        "https://app.example.org:8443",
      ],
      ...[
        "https://app.example.org:443",
        "https://app.example.org/",
        "https://app.example.org.",
        "HTTPS://APP.EXAMPLE.ORG",
      ],
      ...[
        "https://app.example.org@evil.example",
        "https://appxexample.org",
        "http://localhost",
        "http://localhost:30000",
      ],
      ...["http://127.0.0.1:3000", "https://app.example.org, https://evil.example", "file://", "app.example.org"],
    ];
    for (const origin of lookalikes) {
      test(`${protocol}: origin ${JSON.stringify(origin)} gets nothing`, async () => {
        const simple = await ask("some", protocol, { path: thing, headers: { origin } });
        assert.deepEqual(corsOf(simple), { vary: "origin, x-tenant, accept-encoding" });
        const response = await ask("some", protocol, preflight(thing, origin));
        assert.deepEqual(corsOf(response), { vary: "origin" });
        assert.equal(response.headers.allow, "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PURGE, PUT");
      });
    }

    test(`${protocol}: credentials are never allowed`, async () => {
      for (const which of ["some", "all"]) {
        for (const request of [preflight(thing), { path: thing, headers: { origin: APP, cookie: "a=b" } }]) {
          const got = await ask(which, protocol, request);
          assert.equal(got.headers["access-control-allow-credentials"], undefined);
        }
      }
    });

    test(`${protocol}: OPTIONS that is no preflight is answered as ever`, async () => {
      const got = await ask("some", protocol, { method: "OPTIONS", path: thing, headers: { origin: APP } });
      assert.equal(got.status, 204);
      assert.equal(got.headers["access-control-allow-methods"], undefined);
      assert.ok(got.headers.allow);
    });

    test(`${protocol}: a preflight of a path that is not served fails`, async () => {
      for (const path of ["/nowhere", "/a.B/C", "/feature/v1/things/%zz"]) {
        const got = await ask("some", protocol, preflight(path));
        assert.ok(got.status === 404 || got.status === 400, `${path}: ${got.status}`);
        assert.equal(got.headers["access-control-allow-methods"], undefined);
      }
    });

    test(`${protocol}: without configured origins a preflight is plain OPTIONS`, async () => {
      const got = await ask("off", protocol, preflight(thing));
      assert.deepEqual([got.status, corsOf(got)], [204, {}]);
      assert.ok(got.headers.allow);
      assert.equal((await ask("off", protocol, preflight(getGroup))).status, 405);
    });
  }

  test("two origins in one request are none", async () => {
    const server = servers.get("some");
    assert.ok(server);
    const got = await requestH1(server.port, { path: thing, headers: { origin: [APP, APP] } });
    assert.deepEqual(corsOf(got), { vary: "origin, x-tenant, accept-encoding" });
  });

  test("what a client of Connect sees is no different", async () => {
    const server = servers.get("some");
    assert.ok(server);
    const client = createClient(GroupsService, createConnectTransport({ baseUrl: server.url, httpVersion: "1.1" }));
    assert.equal((await client.getGroup({ uid: "a" }, { headers: { origin: APP } })).name, "core");
    await assert.rejects(client.getGroup({ uid: "gone" }, { headers: { origin: APP } }), /there is no group gone/);
  });
});
