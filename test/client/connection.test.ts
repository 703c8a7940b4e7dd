import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { after, before, describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  Code,
  ConnectError,
  type Connection,
  type ConnectionOptions,
  connectTo,
  errorInfo,
  exchangedToken,
  fieldViolations,
  type Interceptor,
  type Protocol,
  preconditionViolations,
  staticToken,
} from "../../src/client/index.js";
import { type Harness, startHarness } from "../support/harness.js";
import { failureOf, jwt, print } from "./failure.js";
import { CERTIFICATE, startFlaky } from "./flaky-service.js";

const WAYS: readonly Pick<ConnectionOptions, "protocol" | "httpVersion">[] = [
  { protocol: "grpc" },
  { protocol: "connect" },
  { protocol: "grpc-web" },
  { protocol: "connect", httpVersion: "1.1" },
  { protocol: "grpc-web", httpVersion: "1.1" },
];

describe("against the service", () => {
  let service: Harness;
  let root: string;
  let token: string;
  before(async () => {
    service = await startHarness();
    ({ group: root, token } = await service.organisation("acme.example"));
  });
  after(() => service.stop());

  for (const way of WAYS) {
    const name = Object.values(way).join(" ");
    const connect = (value = token) => connectTo({ baseUrl: service.url, token: staticToken(value), ...way });

    it(`${name}: typed calls`, async () => {
      const connection = connect();
      const groups = connection.client(GroupsService);
      const made = await groups.createGroup({ parent: root, group: { name: `team ${name}` } });
      assert.equal((await groups.getGroup({ uid: made.uid })).name, `team ${name}`);
      connection.close();
    });

    it(`${name}: errors with their details`, async () => {
      const connection = connect();
      const groups = connection.client(GroupsService);
      const invalid = await failureOf(groups.createGroup({ parent: root, group: { name: "?" } }));
      assert.equal(invalid.code, Code.InvalidArgument);
      assert.equal(errorInfo(invalid)?.reason, "INVALID_ARGUMENT");
      assert.deepEqual(
        fieldViolations(invalid).map(({ field, description }) => ({ field, description })),
        [{ field: "name", description: "name must match ^[a-z0-9 ._-]{1,}$" }],
      );
      assert.deepEqual(preconditionViolations(invalid), []);

      await groups.createGroup({ parent: root, group: { name: "child" } });
      const blocked = await failureOf(groups.deleteGroup({ uid: root }));
      assert.equal(errorInfo(blocked)?.reason, "FAILED_PRECONDITION");
      assert.deepEqual(
        preconditionViolations(blocked).map(({ type }) => type),
        ["RESOURCE_NOT_EMPTY"],
      );
      assert.deepEqual(fieldViolations(blocked), []);
      connection.close();
    });

    it(`${name}: a refused token is in no error`, async () => {
      const forged = jwt("se-cret", Date.now() + 60_000);
      const connection = connect(forged);
      const failure = await failureOf(connection.client(GroupsService).getGroup({ uid: root }));
      assert.equal(failure.code, Code.Unauthenticated);
      assert.ok(!print(failure).includes(forged));
      assert.ok(!print(connection).includes(forged));
      connection.close();
    });
  }

  it("an expired token is exchanged anew, and the call goes on", async () => {
    const { uid, token: stale } = await service.identity({}, root);
    await service.bind(uid, "viewer", root);
    const responses = [stale];
    const source = exchangedToken({
      issuer: service.url,
      identity: uid,
      audience: service.url,
      upstream: () => "oidc",
      fetch: async () => new Response(JSON.stringify({ token: responses.shift() ?? (await service.token(uid)) })),
    });
    const connection = connectTo({ baseUrl: service.url, token: source });
    const groups = connection.client(GroupsService);
    await groups.getGroup({ uid: root });
    service.skewMs = 2 * 3_600_000;
    assert.equal((await groups.getGroup({ uid: root })).uid, root);
    service.skewMs = 0;
    connection.close();
  });
});

describe("connections", () => {
  it("clients share one, and calls too", async (t) => {
    const service = await startFlaky(t, () => undefined);
    const connection = connectTo({ baseUrl: service.url });
    const calls = Array.from({ length: 20 }, () => connection.client(GroupsService).getGroup({ uid: "u1" }));
    await Promise.all(calls);
    assert.equal(service.calls.length, 20);
    assert.equal(service.connections, 1);
    connection.close();
  });

  it("closing ends calls in flight, and a later call connects again", async (t) => {
    let onArrival = () => {};
    const arrival = new Promise<void>((resolve) => {
      onArrival = resolve;
    });
    const service = await startFlaky(t, (_, index) => {
      if (index > 0) return undefined;
      onArrival();
      return "hang";
    });
    const connection = connectTo({ baseUrl: service.url });
    const groups = connection.client(GroupsService);
    const failure = failureOf(groups.getGroup({ uid: "u1" }));
    await arrival;
    connection.close();
    assert.equal((await failure).code, Code.Canceled);
    await groups.getGroup({ uid: "u2" });
    assert.equal(service.connections, 2);
    connection.close();
  });

  it("a private certificate authority can be trusted", async (t) => {
    const service = await startFlaky(t, () => undefined, { tls: true });
    const trusting = connectTo({ baseUrl: service.url, token: staticToken("good"), tls: { ca: CERTIFICATE } });
    assert.equal((await trusting.client(GroupsService).getGroup({ uid: "u1" })).uid, "u1");
    const wary = connectTo({ baseUrl: service.url, token: staticToken("good") });
    await failureOf(wary.client(GroupsService).getGroup({ uid: "u1" }));
    assert.equal(service.calls.length, 1);
    trusting.close();
  });

  it("interceptors run for each attempt and see what the caller would", async (t) => {
    const service = await startFlaky(t, (_, index) => (index === 0 ? "cut" : undefined));
    const seen: unknown[] = [];
    const interceptor: Interceptor = (next) => async (request) => {
      seen.push(request.method.name);
      return next(request).catch((error) => {
        seen.push(error.code);
        throw error;
      });
    };
    const connection = connectTo({ baseUrl: service.url, interceptors: [interceptor], backoffMs: 1 });
    await connection.client(GroupsService).getGroup({ uid: "u1" });
    assert.deepEqual(seen, ["GetGroup", Code.Unavailable, "GetGroup"]);
    connection.close();
  });

  it("what the caller cancels stays CANCELED to interceptors too", async (t) => {
    const controller = new AbortController();
    const service = await startFlaky(t, () => {
      setImmediate(() => controller.abort(new ConnectError("changed my mind", Code.Canceled)));
      return "hang";
    });
    const seen: unknown[] = [];
    const interceptor: Interceptor = (next) => (request) =>
      next(request).catch((error) => {
        seen.push(error.code);
        throw error;
      });
    const connection = connectTo({ baseUrl: service.url, interceptors: [interceptor] });
    const call = connection.client(GroupsService).getGroup({ uid: "u1" }, { signal: controller.signal });
    assert.equal((await failureOf(call)).rawMessage, "changed my mind");
    assert.deepEqual(seen, [Code.Canceled]);
    connection.close();
  });

  it("nobody listening is UNAVAILABLE", async (t) => {
    const gone = await startFlaky(t, () => undefined);
    await gone.stop();
    const groups = connectTo({ baseUrl: gone.url, backoffMs: 1 }).client(GroupsService);
    assert.equal((await failureOf(groups.getGroup({ uid: "u1" }))).code, Code.Unavailable);
  });
});

describe("a server that does not speak HTTP/2", () => {
  for (const protocol of ["grpc", "connect", "grpc-web"] as const) {
    it(`ends calls over ${protocol} with an error, and the connection can be closed at once`, async (t) => {
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
      });
      server.listen(0, "127.0.0.1");
      t.after(() => server.close());
      await once(server, "listening");
      const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      // An error that nobody catches would fail this test.
      for (const call of [
        (connection: Connection) => connection.client(GroupsService).createGroup({}),
        async (connection: Connection) => {
          for await (const _ of connection.client(EventsService).tail({})) assert.fail("there is no event");
        },
      ]) {
        const connection = connectTo({ baseUrl, protocol });
        await assert.rejects(call(connection), ConnectError);
        connection.close();
      }
      await setTimeout(50);
    });
  }
});

describe("base URLs", () => {
  const token = staticToken("t1");
  const cleartext = (host: string) => `baseUrl must be https: a token is never sent in cleartext to ${host}`;
  const refused: readonly { baseUrl: string; message: string; token?: typeof token }[] = [
    { baseUrl: "platform.example.com", message: "baseUrl must be an absolute URL" },
    { baseUrl: "", message: "baseUrl must be an absolute URL" },
    { baseUrl: "ftp://platform.example.com", message: "baseUrl must be an http or https URL" },
    { baseUrl: "localhost:8080", message: "baseUrl must be an http or https URL" },
    { baseUrl: "https://me:se-cret@platform.example.com", message: "baseUrl must not contain credentials" },
    { baseUrl: "https://platform.example.com?a=b", message: "baseUrl must not have a query or fragment" },
    { baseUrl: "https://platform.example.com#a", message: "baseUrl must not have a query or fragment" },
    { baseUrl: "http://platform.example.com", token, message: cleartext("platform.example.com") },
    { baseUrl: "http://127.example.com", token, message: cleartext("127.example.com") },
    { baseUrl: "http://localhost.example.com", token, message: cleartext("localhost.example.com") },
    { baseUrl: "http://10.0.0.1:8080", token, message: cleartext("10.0.0.1:8080") },
    { baseUrl: "http://[::2]", token, message: cleartext("[::2]") },
    { baseUrl: "http://0.0.0.0", token, message: cleartext("0.0.0.0") },
  ];
  for (const { message, ...options } of refused) {
    it(`${options.baseUrl} is refused`, () => {
      assert.throws(() => connectTo(options), { name: "TypeError", message });
    });
  }

  const accepted: readonly ConnectionOptions[] = [
    { baseUrl: "https://platform.example.com", token },
    { baseUrl: "https://platform.example.com/prefix/", token },
    { baseUrl: "http://platform.example.com" },
    { baseUrl: "http://localhost:8080", token },
    { baseUrl: "http://127.0.0.1:8080", token },
    { baseUrl: "http://127.1", token },
    { baseUrl: "http://[::1]:8080", token },
  ];
  for (const options of accepted) {
    it(`${options.baseUrl} is good ${options.token ? "with" : "without"} a token`, () => {
      connectTo(options);
    });
  }

  it("an issuer has the same rules", () => {
    const options = { identity: "i", audience: "a", upstream: () => "s" };
    assert.throws(() => exchangedToken({ issuer: "http://issuer.example.com", ...options }), {
      name: "TypeError",
      message: "issuer must be https: a token is never sent in cleartext to issuer.example.com",
    });
  });

  it("gRPC over HTTP/1.1 is refused", () => {
    const options = { baseUrl: "https://platform.example.com", httpVersion: "1.1" } as const;
    assert.throws(() => connectTo(options), { name: "TypeError", message: "gRPC needs HTTP/2" });
  });

  it("a protocol that is none is refused", () => {
    const options = { baseUrl: "https://platform.example.com", protocol: "soap" as Protocol };
    assert.throws(() => connectTo(options), {
      name: "TypeError",
      message: "protocol must be grpc, connect or grpc-web",
    });
  });
});
