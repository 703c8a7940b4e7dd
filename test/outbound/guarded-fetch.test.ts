// What the guard refuses to connect to. Every socket that the process opens is counted, and so is who
// reaches a listener on the loopback address.
import assert from "node:assert/strict";
import { type LookupFunction, Socket } from "node:net";
import { after, before, test } from "node:test";
import { createGuardedFetch, GuardedFetchError, type GuardedFetchOptions } from "../../src/outbound/guarded-fetch.js";
import { json, type Listener, serve } from "../issuer/upstream/foreign-issuer.js";
import { address, names, refused } from "./refused-urls.js";

let listener: Listener;
let queries: string[] = [];
let encoding: unknown;
let sockets = 0;
const { connect } = Socket.prototype;

before(async () => {
  listener = await serve((req, res) => {
    queries.push(`${req.method} ${req.headers.host} ${req.url}`);
    encoding = req.headers["accept-encoding"];
    json(res, { ok: true });
  });
  Socket.prototype.connect = function (this: Socket, ...args: Parameters<typeof connect>) {
    sockets++;
    return connect.apply(this, args);
  } as typeof connect;
});

after(() => {
  Socket.prototype.connect = connect;
  listener.close();
});

/** A guard, the reasons that it reported, and the names that it resolved. */
function guardWith(options: Partial<GuardedFetchOptions> = {}) {
  const reasons: string[] = [];
  const resolved: string[] = [];
  const fetch = createGuardedFetch({
    trustedOrigins: [],
    onFailure: (reason) => reasons.push(reason),
    resolve: (hostname) => {
      resolved.push(hostname);
      return Promise.resolve(names[hostname] ?? []);
    },
    ...options,
  });
  return { fetch, reasons, resolved };
}

const isFetchError = { name: "GuardedFetchError", message: "the address could not be fetched" };

for (const { urls, reason, looksUp = false } of refused) {
  for (const url of urls) {
    test(`${JSON.stringify(url.slice(0, 60))}: ${reason}`, async () => {
      sockets = 0;
      const { fetch, reasons, resolved } = guardWith();
      await assert.rejects(fetch(url), isFetchError);
      assert.deepEqual([reasons.length, reasons[0]?.endsWith(`: ${reason}`)], [1, true], reasons[0]);
      assert.equal(resolved.length, looksUp ? 1 : 0);
      assert.equal(sockets, 0);
    });
  }
}

test("control: only a request to a trusted origin reaches the listener", async () => {
  assert.equal(listener.connections, 0);
  sockets = 0;
  const { fetch, reasons } = guardWith({ trustedOrigins: [listener.origin] });
  // What the guard decides, its caller cannot.
  const own = { Host: "other.test", "Accept-Encoding": "gzip" };
  const { status, headers, bytes } = await fetch(`${listener.origin}/keys?p=1`, { headers: own });
  assert.deepEqual(
    [status, headers.get("content-type"), Buffer.from(bytes).toString()],
    [200, "application/json", '{"ok":true}'],
  );
  assert.deepEqual([queries, encoding], [[`GET 127.0.0.1:${listener.port} /keys?p=1`], "identity"]);
  assert.deepEqual([sockets, listener.connections, reasons], [1, 1, []]);
});

test("trust is for an exact origin: neither another port, nor another scheme, nor another name", async () => {
  const reached = listener.connections;
  const { fetch } = guardWith({ trustedOrigins: [listener.origin] });
  for (const url of [
    "http://127.0.0.1/",
    `http://127.0.0.1:${listener.port + 1}/`,
    `https://127.0.0.1:${listener.port}/`,
    `http://localhost:${listener.port}/`,
    `http://loopback.test:${listener.port}/`,
    `http://[::ffff:127.0.0.1]:${listener.port}/`,
    `http://x@127.0.0.1:${listener.port}/`,
  ])
    await assert.rejects(fetch(url), isFetchError);
  assert.equal(listener.connections, reached);
  // Another spelling of the same origin is the same origin.
  for (const host of ["127.1", "127.0.0.1."]) {
    assert.equal((await fetch(`HTTP://${host}:${listener.port}/`)).status, 200);
  }
});

for (const origin of [
  "127.0.0.1:80",
  "http://a/",
  "http://a/x",
  "https://a:443",
  "HTTP://a",
  "ftp://a",
  "*",
  "",
  "http://u@a",
]) {
  test(`${JSON.stringify(origin)} is no trusted origin`, () => {
    assert.throws(() => createGuardedFetch({ trustedOrigins: [origin] }), {
      message: /must look like https:\/\/host:port/,
    });
  });
}

test("a name is looked up once, and what was checked is what is connected to", async () => {
  const responses = [address("127.0.0.1"), address("127.0.0.2")];
  let lookups = 0;
  const origin = `http://issuer.test:${listener.port}`;
  const resolve = () => Promise.resolve(responses[lookups++] ?? []);
  const { fetch } = guardWith({ trustedOrigins: [origin], resolve });
  queries = [];
  assert.equal((await fetch(`${origin}/`)).status, 200);
  assert.deepEqual([lookups, queries], [1, [`GET issuer.test:${listener.port} /`]]);
});

test("a name that resolves to a private address after the check is not resolved again", async (t) => {
  const responses = [address("1.1.1.1", "2606:4700::1111"), address("127.0.0.1")];
  let lookups = 0;
  const { fetch, reasons } = guardWith({ resolve: () => Promise.resolve(responses[lookups++] ?? []) });
  const targets: unknown[] = [];
  // Stops before the network, and asks what the socket would ask.
  t.mock.method(
    Socket.prototype,
    "connect",
    function (this: Socket, options: { host: string; lookup: LookupFunction }) {
      const lookup = (all: boolean) => options.lookup(options.host, { all }, (_error, found) => targets.push(found));
      lookup(true);
      lookup(true);
      lookup(false);
      Object.assign(this, { connecting: true });
      setImmediate(() => this.destroy(Object.assign(new Error("stopped"), { code: "STOPPED" })));
      return this;
    },
  );
  await assert.rejects(fetch("https://rebinding.test/"), GuardedFetchError);
  assert.deepEqual(targets, [responses[0], responses[0], "1.1.1.1"]);
  assert.deepEqual([lookups, reasons], [1, ["https://rebinding.test: STOPPED"]]);
});

test("where a DNS64 answers for IPv4 hosts, public ones are connected to", async (t) => {
  const found = address("64:ff9b::101:101");
  const { fetch, reasons } = guardWith({ resolve: () => Promise.resolve(found) });
  const targets: unknown[] = [];
  t.mock.method(
    Socket.prototype,
    "connect",
    function (this: Socket, options: { host: string; lookup: LookupFunction }) {
      options.lookup(options.host, { all: true }, (_error, all) => targets.push(all));
      Object.assign(this, { connecting: true });
      setImmediate(() => this.destroy(Object.assign(new Error("stopped"), { code: "STOPPED" })));
      return this;
    },
  );
  await assert.rejects(fetch("https://ipv4-only.test/"), GuardedFetchError);
  assert.deepEqual([targets, reasons], [[found], ["https://ipv4-only.test: STOPPED"]]);
});

test("a proxy named by the environment is not used", async () => {
  const proxy = await serve((_req, res) => res.end("proxied"));
  const variables = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
  for (const name of variables) process.env[name] = proxy.origin;
  process.env.NODE_USE_ENV_PROXY = "1";
  try {
    const { fetch } = guardWith({ trustedOrigins: [listener.origin] });
    const { bytes } = await fetch(`${listener.origin}/`);
    assert.equal(Buffer.from(bytes).toString(), '{"ok":true}');
    assert.equal(proxy.connections, 0);
  } finally {
    for (const name of [...variables, "NODE_USE_ENV_PROXY"]) delete process.env[name];
    proxy.close();
  }
});
