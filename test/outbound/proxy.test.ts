// Requests through the operator's proxy: what goes through it, what does not, and what it is never asked.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, type Server } from "node:http";
import { createServer, type ServerOptions } from "node:https";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { createGuardedFetch, type GuardedFetchOptions } from "../../src/outbound/guarded-fetch.js";
import { json, type Listener, listen, serve } from "../issuer/upstream/foreign-issuer.js";
import { execFile } from "../support/child-process.js";
import { scriptArguments } from "../support/project.js";
import { startStopwatch } from "../support/stopwatch.js";
import { tempDir } from "../support/temp-dir.js";

const file = (name: string) => readFileSync(new URL(`./tls/${name}`, import.meta.url), "utf8");
const valid: ServerOptions = { key: file("test-key.pem"), cert: file("test-cert.pem") };
const authorities = join(tempDir(), "authorities.pem");
writeFileSync(authorities, valid.cert as string);

let target: Listener;
let proxy: Listener;
/** What the proxy was asked for, and every byte of clients that it passed on. */
let asked: string[] = [];
let passed = "";

/** A proxy whose name server has one address for every name: that of the target. */
function startProxy(createServerOf: (handler: () => void) => Server = createHttp): Promise<Listener> {
  const server = createServerOf(() => {});
  server.on("connect", ({ url = "", method, headers }: IncomingMessage, client: Socket) => {
    asked.push(`${method} ${url} ${headers.host}`);
    const upstream = connect(target.port, "127.0.0.1", () =>
      client.write("HTTP/1.1 200 Connection established\r\n\r\n"),
    );
    client.on("data", (chunk) => {
      passed += chunk.toString("latin1");
    });
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
  return listen(server);
}

before(async () => {
  target = await listen(
    createServer(valid, ({ method, url, headers }, res) =>
      res.end(`${method} ${headers.host}${url} ${headers.connection}`),
    ),
  );
  proxy = await startProxy();
});

beforeEach(() => {
  asked = [];
  passed = "";
});

after(() => {
  proxy.close();
  target.close();
});

/** Fetches through a proxy in a new process with these variables. */
async function fetchThrough(url: string, through = proxy.origin, env: Readonly<Record<string, string>> = {}) {
  const args = [...scriptArguments("test/outbound/guarded-client.ts"), url, through];
  const { stdout } = await execFile(process.execPath, args, {
    env: { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: authorities, ...env },
  });
  return JSON.parse(stdout) as { result: string; reasons: string[] };
}

const FAILED = "GuardedFetchError: the address could not be fetched";

test("a request goes through a tunnel to the name and port, and TLS is with the host", async () => {
  const { result, reasons } = await fetchThrough("https://issuer.test/secret?x=1");
  assert.deepEqual([result, reasons], ["200 GET issuer.test/secret?x=1 close", []]);
  assert.deepEqual(asked, ["CONNECT issuer.test:443 issuer.test:443"]);
  assert.ok(passed.length > 0);
  assert.doesNotMatch(passed, /secret|GET/);
});

test("the certificate that comes through the tunnel must be that of the host", async () => {
  const careless = { NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_NO_WARNINGS: "1" };
  for (const env of [{}, careless]) {
    const { result, reasons } = await fetchThrough("https://other.test/", proxy.origin, env);
    assert.deepEqual([result, reasons], [FAILED, ["https://other.test: ERR_TLS_CERT_ALTNAME_INVALID"]]);
  }
  const unknown = await fetchThrough("https://issuer.test/", proxy.origin, { NODE_EXTRA_CA_CERTS: "" });
  assert.deepEqual(unknown.reasons, ["https://issuer.test: DEPTH_ZERO_SELF_SIGNED_CERT"]);
  const literal = await fetchThrough("https://[2606:4700::1111]/");
  assert.deepEqual(literal.reasons, ["https://[2606:4700::1111]: ERR_TLS_CERT_ALTNAME_INVALID"]);
  assert.equal(asked.at(-1), "CONNECT [2606:4700::1111]:443 [2606:4700::1111]:443");
});

test("a proxy is only the one of the setting, whatever the environment names", async () => {
  const other = await startProxy();
  const names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
  const env = Object.fromEntries([...names.map((name) => [name, other.origin]), ["NODE_USE_ENV_PROXY", "1"]]);
  try {
    for (const extra of [{}, { NO_PROXY: "*", no_proxy: "issuer.test" }]) {
      const { result } = await fetchThrough("https://issuer.test/", proxy.origin, { ...env, ...extra });
      assert.equal(result, "200 GET issuer.test/ close");
    }
    assert.deepEqual([asked.length, other.connections], [2, 0]);
  } finally {
    other.close();
  }
});

test("the proxy itself may be reached over TLS, and its certificate is checked", async () => {
  const secure = await startProxy((handler) => createServer(valid, handler));
  try {
    const { reasons } = await fetchThrough("https://issuer.test/", `https://127.0.0.1:${secure.port}`);
    assert.deepEqual(reasons, ["https://issuer.test: the proxy cannot be used: ERR_TLS_CERT_ALTNAME_INVALID"]);
    assert.deepEqual(asked, []);
  } finally {
    secure.close();
  }
});

/** A guard of this process, and the reasons that it reported. */
function guardWith(options: Partial<GuardedFetchOptions>) {
  const reasons: string[] = [];
  const resolve = () => Promise.reject(new Error("no name may be resolved"));
  const onFailure = (reason: string) => reasons.push(reason);
  return {
    reasons,
    fetch: createGuardedFetch({ trustedOrigins: [], proxy: proxy.origin, onFailure, resolve, ...options }),
  };
}

const refused: Readonly<Record<string, readonly string[]>> = {
  "the host is not public": [
    ...["127.0.0.1", "127.1", "2130706433", "0x7f.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "0", "192.168.1.1"],
    ...[
      "[::1]",
      "[::]",
      "[::ffff:127.0.0.1]",
      "[fe80::1]",
      "[fd00:ec2::254]",
      "[64:ff9b::7f00:1]",
      "[64:ff9b:1::101:101]",
    ],
    ...["localhost", "LOCALHOST", "a.localhost", "printer", "metadata", "printer.local", "metadata.google.internal"],
    ...["kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "db.corp", "nas.lan", "router.home.arpa"],
  ].map((host) => `https://${host}/`),
  "the host ends with a dot": ["https://localhost./", "https://issuer.test./"],
  "the address is not https": ["http://issuer.test/", "http://issuer.test:443/"],
  "the port is not 443": ["https://issuer.test:22/", "https://issuer.test:8443/"],
  "the address has a user name or password": ["https://u:p@issuer.test/"],
};

for (const [reason, urls] of Object.entries(refused)) {
  for (const url of urls) {
    test(`the proxy is not asked for ${url}: ${reason}`, async () => {
      const before = proxy.connections;
      const { fetch, reasons } = guardWith({});
      await assert.rejects(fetch(url), { name: "GuardedFetchError" });
      assert.deepEqual([reasons.length, reasons[0]?.endsWith(`: ${reason}`)], [1, true], reasons[0]);
      assert.equal(proxy.connections, before);
    });
  }
}

test("control: it is asked for public names and addresses, also those that look local at first", async () => {
  for (const host of ["1.1.1.1", "localhost.example.org", "local.example", "internal.example.org", "mylocal.org"]) {
    const { fetch, reasons } = guardWith({});
    await assert.rejects(fetch(`https://${host}/`));
    assert.deepEqual(reasons, [`https://${host}: DEPTH_ZERO_SELF_SIGNED_CERT`]);
    assert.equal(asked.at(-1), `CONNECT ${host}:443 ${host}:443`);
  }
});

test("trusted origins are reached directly, at the address that was resolved", async () => {
  const inside = await serve((req, res) => json(res, { host: req.headers.host }));
  const origin = `http://issuer.internal:${inside.port}`;
  const before = proxy.connections;
  try {
    const resolve = () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
    const { fetch } = guardWith({ trustedOrigins: [origin], resolve });
    const { bytes } = await fetch(`${origin}/`);
    assert.equal(Buffer.from(bytes).toString(), `{"host":"issuer.internal:${inside.port}"}`);
    // Trusted for their own issuer alone: named by the metadata of another they are as any other address.
    await assert.rejects(fetch(`${origin}/`, { issuer: "https://issuer.test" }));
    assert.deepEqual([inside.connections, proxy.connections], [1, before]);
  } finally {
    inside.close();
  }
});

const broken: Readonly<Record<string, { response: string; reason: string }>> = {
  "a refusal": {
    response: "HTTP/1.1 403 Forbidden\r\n\r\n",
    reason: "the proxy opened no tunnel: it answered with status 403",
  },
  "a request for a password": {
    response: 'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n',
    reason: "the proxy opened no tunnel: it answered with status 407",
  },
  "a redirect": {
    response: "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1/\r\n\r\n",
    reason: "the proxy opened no tunnel: it answered with status 302",
  },
  "bytes that nobody asked for": {
    response: "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    reason: "the proxy opened no tunnel: it answered with status 200",
  },
  nonsense: { response: "SSH-2.0-x\r\n\r\n", reason: "the proxy cannot be used: HPE_INVALID_CONSTANT" },
};

for (const [name, { response, reason }] of Object.entries(broken)) {
  test(`a proxy that answers with ${name} is an error with a reason for the operator`, async () => {
    const sockets = new Set<Socket>();
    const server = createHttp();
    server.on("connect", (_req, socket: Socket) => {
      sockets.add(socket);
      socket.end(response);
    });
    const listener = await listen(server);
    try {
      const { fetch, reasons } = guardWith({ proxy: listener.origin });
      await assert.rejects(fetch("https://issuer.test/"), { message: "the address could not be fetched" });
      assert.deepEqual(reasons, [`https://issuer.test: ${reason}`]);
      for (const socket of sockets) if (!socket.closed) await once(socket, "close");
    } finally {
      listener.close();
    }
  });
}

test("a proxy that is down or never answers costs no more than the deadline", async () => {
  const closed = await serve(() => {});
  closed.close();
  const down = guardWith({ proxy: closed.origin });
  await assert.rejects(down.fetch("https://issuer.test/"));
  assert.deepEqual(down.reasons, ["https://issuer.test: the proxy cannot be used: ECONNREFUSED"]);
  const server = createHttp();
  server.on("connect", () => {});
  const tarpit = await listen(server);
  try {
    const slow = guardWith({ proxy: tarpit.origin });
    const elapsedMs = startStopwatch();
    await assert.rejects(slow.fetch("https://issuer.test/"));
    assert.deepEqual(slow.reasons, ["https://issuer.test: it took too long"]);
    assert.ok(elapsedMs() < 7_000);
  } finally {
    tarpit.close();
  }
});
