// Servers that send without an end whatever a client must read: interim responses, tiny chunks, header fields, trailers,
// tickets of TLS. A request ends soon, and between its slices the event loop serves others.
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type ClientRequest, createServer as createHttpServer, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { fileURLToPath } from "node:url";
import { createGuardedFetch, type GuardedRequest } from "../../src/outbound/guarded-fetch.js";
import { MeteredSocket } from "../../src/outbound/metered-socket.js";
import { type Listener, listen } from "../issuer/upstream/foreign-issuer.js";
import { execFile, spawn } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { scriptArguments } from "../support/project.js";
import { TLS_FILES } from "../support/tls-files.js";
import { waitUntil } from "../support/wait-until.js";

const file = (name: string) => readFileSync(new URL(name, TLS_FILES), "utf8");
const [key, cert] = [file("key.pem"), file("cert.pem")];
const LIMIT = 100 * 1024;

interface Flood {
  readonly name: string;
  readonly head: string;
  /** What follows without an end. */
  readonly piece: string;
  readonly reason: RegExp;
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const PIECES = /: the response comes in too many pieces$/;
const BYTES = new RegExp(`: the response is longer than ${LIMIT} bytes and 16384 of overhead$`);
const HEADERS = /: HPE_HEADER_OVERFLOW$/;
const long = "x".repeat(1_000);
const floods: readonly Flood[] = [
  { name: "interim responses", head: "", piece: "HTTP/1.1 103 Early Hints\r\n\r\n", reason: PIECES },
  { name: "responses to continue", head: "", piece: "HTTP/1.1 100 Continue\r\n\r\n", reason: PIECES },
  { name: "interim responses with fields", head: "", piece: `HTTP/1.1 103 E\r\nX: ${long}\r\n\r\n`, reason: BYTES },
  { name: "chunks of one byte", head: CHUNKED, piece: "1\r\nx\r\n", reason: PIECES },
  {
    name: "chunks of one byte with extensions",
    head: CHUNKED,
    piece: `1;e=${long}\r\nx\r\n`,
    reason: /: HPE_CHUNK_EXTENSIONS_OVERFLOW$|overhead$/,
  },
  { name: "header fields", head: OK, piece: "X: y\r\n", reason: HEADERS },
  { name: "one header field", head: `${OK}X: `, piece: "x", reason: HEADERS },
  { name: "trailers", head: `${CHUNKED}0\r\n`, piece: "X: y\r\n", reason: HEADERS },
];

/** Answers each request with a flood, and counts what it sends. */
function answerWith({ head, piece }: Pick<Flood, "head" | "piece">) {
  const counts = { sent: 0, open: 0, requests: 0 };
  const block = Buffer.from(piece.repeat(Math.ceil(65_536 / piece.length)));
  const onConnection = (socket: Socket) => {
    counts.open++;
    socket.on("error", () => {}).on("close", () => counts.open--);
    socket.once("data", () => {
      counts.requests++;
      socket.write(head);
      const more = () => {
        while (!socket.destroyed && socket.write(block)) counts.sent += block.length;
      };
      socket.on("drain", more);
      more();
    });
  };
  return { counts, onConnection };
}

async function fail(server: Pick<Listener, "port">, scheme: "http" | "https", init: GuardedRequest = {}) {
  const origin = `${scheme}://127.0.0.1:${server.port}`;
  const reasons: string[] = [];
  const fetch = createGuardedFetch({ trustedOrigins: [origin], ca: cert, onFailure: (one) => reasons.push(one) });
  await assert.rejects(fetch(origin, init), { name: "GuardedFetchError" });
  return reasons.join();
}

for (const flood of floods) {
  for (const scheme of ["http", "https"] as const) {
    test(`${flood.name} without an end do not hold a request, over ${scheme}`, async () => {
      const { counts, onConnection } = answerWith(flood);
      const secure = createTlsServer({ key, cert });
      secure.removeAllListeners("secureConnection").on("secureConnection", onConnection);
      const server = await listen(scheme === "http" ? createServer(onConnection) : secure);
      try {
        assert.match(await fail(server, scheme), flood.reason);
        await waitUntil(() => counts.open === 0);
        assert.ok(counts.sent < 30_000_000, `${counts.sent} bytes were sent`);
      } finally {
        server.close();
      }
    });
  }
}

test("neither a proxy holds a request, nor a server behind its tunnel", async () => {
  const own = (name: string) => new URL(`./tls/${name}`, import.meta.url);
  const authority = own("test-cert.pem");
  const flood = answerWith({ head: "", piece: `HTTP/1.1 103 E\r\nX: ${long}\r\n\r\n` });
  const secure = createTlsServer({ key: readFileSync(own("test-key.pem")), cert: readFileSync(authority) });
  secure.removeAllListeners("secureConnection").on("secureConnection", flood.onConnection);
  const target = await listen(secure);
  const tunnelling = createHttpServer().on("connect", (_request, client) => {
    const upstream = connect(target.port, "127.0.0.1", () => client.write("HTTP/1.1 200 OK\r\n\r\n"));
    upstream.on("error", () => client.destroy()).on("close", () => client.destroy());
    client.on("error", () => {}).on("close", () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  const flooding = createServer(answerWith({ head: OK, piece: "X: y\r\n" }).onConnection);
  try {
    for (const [server, reason] of [
      [tunnelling, BYTES],
      [flooding, HEADERS],
    ] as const) {
      const proxy = await listen(server);
      const args = [...scriptArguments("test/outbound/guarded-client.ts"), "https://issuer.test/", proxy.origin];
      const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: fileURLToPath(authority) };
      const { stdout } = await execFile(process.execPath, args, { env });
      proxy.close();
      assert.match(JSON.parse(stdout).reasons.join(), reason);
    }
    assert.equal(flood.counts.requests, 1);
  } finally {
    target.close();
  }
});

test("an honest response in many chunks, after interim responses, arrives whole", async () => {
  const body = "0123456789".repeat(9_000);
  const server = await listen(
    createServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(10) + CHUNKED);
        for (let i = 0; i < body.length; i += 90) socket.write(`5a\r\n${body.slice(i, i + 90)}\r\n`);
        socket.end("0\r\n\r\n");
      });
    }),
  );
  try {
    const { bytes } = await createGuardedFetch({ trustedOrigins: [server.origin] })(server.origin);
    assert.equal(Buffer.from(bytes).toString(), body);
  } finally {
    server.close();
  }
});

/** An openssl server that sends as many tickets as it is told after each handshake, and no response. */
async function startTickets(tickets: number): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const port = await freePort();
  const path = (name: string) => fileURLToPath(new URL(name, TLS_FILES));
  const files = ["-cert", path("cert.pem"), "-key", path("key.pem")];
  const child = spawn("openssl", [
    "s_server",
    "-port",
    String(port),
    ...files,
    "-num_tickets",
    String(tickets),
    "-tls1_3",
  ]);
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  await waitUntil(() => output.includes("ACCEPT"));
  return { port, child };
}

test("20,000 tickets of TLS do not hold a request, and are not read", async () => {
  const { port, child } = await startTickets(20_000);
  try {
    assert.match(await fail({ port }, "https"), BYTES);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

/** The most interim responses that were parsed without a look at other sockets, of a flood that ends after a megabyte. */
async function countPerTurn(send: (socket: Socket) => ClientRequest): Promise<number> {
  const piece = "HTTP/1.1 103 Early Hints\r\n\r\n";
  const server = await listen(
    createServer((socket) => {
      socket.once("data", () => socket.end(piece.repeat(2 ** 20 / piece.length)));
    }),
  );
  const sent = send(connect(server.port, "127.0.0.1"));
  let [most, inTurn] = [0, 0];
  sent.on("information", () => {
    inTurn++;
    if (inTurn === 1) {
      setImmediate(() => {
        most = Math.max(most, inTurn);
        inTurn = 0;
      });
    }
  });
  sent.end();
  await once(sent, "error");
  await new Promise((resolve) => setImmediate(resolve));
  server.close();
  return most;
}

test("a slice is parsed, then other sockets are looked at; control: without it thousands of pieces are", async () => {
  const allowance = { account: "a", maxBytes: 2 ** 21 };
  const metered = await countPerTurn((socket) => {
    const connection = new MeteredSocket(socket, allowance);
    return request({ createConnection: () => connection });
  });
  assert.ok(metered > 0 && metered <= Math.ceil(4_096 / 28), `${metered} in an iteration of the event loop`);
  const bare = await countPerTurn((socket) => request({ createConnection: () => socket }));
  assert.ok(bare > 1_000, `${bare} in an iteration of the event loop`);
});

test("control: without the guard a flood is read without an end", async () => {
  for (const { head, piece } of floods.filter(({ reason }) => reason !== HEADERS)) {
    const { onConnection } = answerWith({ head, piece });
    const server = await listen(createServer(onConnection));
    const socket = connect(server.port, "127.0.0.1");
    const sent = request({ createConnection: () => socket });
    sent.on("response", (response) => response.on("error", () => {}).resume()).on("error", () => {});
    sent.end();
    await waitUntil(() => socket.bytesRead > 10 * LIMIT || socket.destroyed);
    assert.ok(socket.bytesRead > LIMIT + 16_384 || piece.includes(";"), `${socket.bytesRead} bytes of ${piece}`);
    socket.destroy();
    server.close();
  }
  const { port, child } = await startTickets(20_000);
  const socket = connect(port, "127.0.0.1");
  connectTls({ socket, ca: cert, host: "127.0.0.1" })
    .on("error", () => {})
    .resume();
  await waitUntil(() => socket.bytesRead > 10 * LIMIT);
  socket.destroy();
  child.kill("SIGKILL");
});
