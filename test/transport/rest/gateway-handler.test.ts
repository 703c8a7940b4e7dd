import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import * as errors from "../../../src/kernel/errors.js";
import type { UnaryCall } from "../../../src/pipeline/call.js";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import { Gateway } from "../../../src/transport/rest/gateway.js";
import { createServe } from "../../../src/transport/serve.js";
import { failure, violation } from "../../support/feature/error-texts.js";
import { entryOf, type FeatureHandler, featureMethod } from "../../support/feature/feature.js";
import {
  type FeatureServer,
  type Received,
  startDefault,
  startFeatureServer,
} from "../../support/feature/feature-server.js";
import { beginHttp1 } from "../requests.js";

const json = { "content-type": "application/json" };
let server: FeatureServer;
// What GetThing does.
let getThing: FeatureHandler = () => ({});

before(async () => {
  server = await startDefault((request, call) => getThing(request, call));
});
after(() => server.stop());

for (const protocol of ["h1", "h2"] as const) {
  const failing = async (handler: FeatureHandler, headers: Record<string, string> = {}): Promise<Received> => {
    getThing = handler;
    return server.send(protocol, { path: "/feature/v1/things/a", headers });
  };
  const throwing = (error: unknown): FeatureHandler => {
    return () => {
      throw error;
    };
  };

  test(`${protocol}: 401 carries a challenge, which says whether there was a token`, async () => {
    const without = await failing(throwing(errors.unauthenticated()));
    assert.equal(without.status, 401);
    assert.equal(without.headers["www-authenticate"], 'Bearer realm="arbor"');
    const withToken = await failing(throwing(errors.unauthenticated()), { authorization: "Bearer secret" });
    assert.equal(withToken.headers["www-authenticate"], 'Bearer realm="arbor", error="invalid_token"');
    assert.ok(!withToken.text.includes("secret"));
  });

  test(`${protocol}: errors of handlers have their status, and Retry-After where they say when`, async () => {
    const denied = await failing(throwing(errors.permissionDenied("groups.list on x")));
    assert.equal(denied.status, 403);
    assert.equal(denied.headers["www-authenticate"], undefined);
    const busy = await failing(throwing(errors.unavailable("busy", 1500)));
    assert.deepEqual([busy.status, busy.headers["retry-after"]], [503, "2"]);
    const limited = await failing(throwing(errors.resourceExhausted("too many")));
    assert.deepEqual([limited.status, limited.headers["retry-after"]], [429, undefined]);
  });

  test(`${protocol}: an unexpected error becomes INTERNAL, and its cause is told to the log alone`, async () => {
    server.internal.length = 0;
    const got = await failing(throwing(new Error("secret detail")));
    assert.equal(got.status, 500);
    assert.equal(got.text, failure(13, "INTERNAL", "Internal: the service failed to handle the call"));
    assert.equal(String(server.internal[0]), "Error: secret detail");
  });

  test(`${protocol}: an answer that cannot be written becomes INTERNAL`, async () => {
    const got = await failing(() => ({ createTime: { seconds: 1n << 60n } }));
    assert.equal(got.status, 500);
    assert.equal(got.text, failure(13, "INTERNAL", "Internal: the service failed to handle the call"));
  });

  test(`${protocol}: headers of handlers are sent, those of the protocol are not theirs to set`, async () => {
    const set = (_request: unknown, call: UnaryCall) => {
      call.responseHeader.set("etag", '"1"');
      call.responseHeader.set("content-type", "text/html");
      call.responseHeader.set("content-length", "1");
      call.responseHeader.set("transfer-encoding", "chunked");
      call.responseHeader.append("set-cookie", "a=1");
      call.responseHeader.append("set-cookie", "b=2");
      call.responseTrailer.set("cost", "5");
    };
    const expect = (got: Received) => {
      assert.equal(got.headers.etag, '"1"');
      assert.equal(got.headers["content-type"], "application/json");
      assert.equal(got.headers["transfer-encoding"], undefined);
      assert.equal(got.headers["content-length"], String(got.bytes.length));
      assert.deepEqual(got.headers["set-cookie"], ["a=1", "b=2"]);
      assert.equal(got.headers["trailer-cost"], "5");
    };
    expect(
      await failing((request, call) => {
        set(request, call);
        return {};
      }),
    );
    expect(
      await failing((request, call) => {
        set(request, call);
        throw errors.permissionDenied("x");
      }),
    );
    const metadata = new Headers({ "x-limit": "9", "content-type": "text/html", "set-cookie": "c=3" });
    const got = await failing(throwing(new ConnectError("x", Code.Aborted, metadata)));
    assert.deepEqual([got.headers["x-limit"], got.headers["content-type"]], ["9", "application/json"]);
    assert.deepEqual(got.headers["set-cookie"], ["c=3"]);
  });

  test(`${protocol}: handlers see the request as it came`, async () => {
    let seen: unknown;
    await failing(
      (_request, call) => {
        seen = {
          protocol: call.protocolName,
          method: call.requestMethod,
          url: call.url,
          agent: call.inbound.header("x-agent"),
          missing: call.inbound.header("x-missing"),
          header: call.requestHeader.get("x-agent"),
          hop: call.requestHeader.get("te"),
          address: call.inbound.remoteAddress,
          // What the call has waited for its turn is taken off.
          deadline: Math.ceil((call.deadlineMs - call.startMs) / 250) * 250,
          aborted: call.signal.aborted,
        };
        return {};
      },
      { "x-agent": "a", te: "trailers", "grpc-timeout": "250m" },
    );
    assert.deepEqual(seen, {
      protocol: "rest",
      method: "GET",
      url: "/feature/v1/things/a",
      agent: "a",
      missing: undefined,
      header: "a",
      hop: null,
      address: "127.0.0.1",
      deadline: 250,
      aborted: false,
    });
  });
}

test("without query and body nothing comes between a request and its method", async () => {
  let invoked = false;
  const serve = createServe({
    ...{ limits: defaultLimits, clock: () => 0, errorDomain: "iam.test", onInternalError() {} },
    authenticateCaller: () => undefined,
    invoke: async () => {
      invoked = true;
      return {};
    },
    async *invokeStream() {},
  });
  const gateway = new Gateway({ serve, methods: [entryOf(featureMethod("GetThing"))] });
  const direct = createServer((req, res) => {
    gateway.handle(beginHttp1(req, res));
    assert.ok(invoked);
  });
  direct.listen(0, "127.0.0.1");
  await once(direct, "listening");
  const { port } = direct.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/feature/v1/things/a`);
  assert.equal(response.status, 200);
  direct.closeAllConnections();
  direct.close();
});

test("strictBody rejects unknown fields, ignoreUnknownQuery accepts unknown parameters", async () => {
  const methods = ["CreateThing", "ListThings", "GetThing"].map((name) => ({
    ...entryOf(featureMethod(name), () => ({})),
    ignoreUnknownQuery: name === "ListThings",
  }));
  const other = await startFeatureServer({}, { strictBody: true, methods });
  try {
    const body = '{"nope":1}';
    const created = await other.send("h1", { method: "POST", path: "/feature/v1/things/p", headers: json, body });
    assert.equal(created.text, violation("nope", "nope is not a field of this request"));
    const listed = await other.send("h1", { path: "/feature/v1/things?nope=1&page_size=2" });
    assert.equal(listed.status, 200);
    const got = await other.send("h1", { path: "/feature/v1/things/a?nope=1" });
    assert.equal(got.status, 400);
  } finally {
    await other.stop();
  }
});

test("the routes that are served can be listed", () => {
  const paths = server.gateway.routes.map(({ method, template }) => `${method} ${template.text}`);
  assert.equal(paths.length, 23);
  assert.ok(paths.includes("PURGE /feature/v1/things/{uid=**}"));
  assert.ok(!paths.some((path) => path.includes("Hidden")));
});
