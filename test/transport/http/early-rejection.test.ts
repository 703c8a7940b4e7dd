// Requests that are rejected before Node creates a response: what they get, in which order, and what is left to Node.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createEarlyRejection } from "../../../src/transport/http/early-rejection.js";

const REJECTION = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\n";
const MANY = 20_000;

interface Running {
  readonly port: number;
  /** The paths that reached the listener. */
  readonly handled: string[];
  readonly errors: unknown[];
  readonly connections: Socket[];
  readonly early: ReturnType<typeof createEarlyRejection>;
  readonly closeIdle: () => void;
  readonly stop: () => Promise<void>;
}

interface Options {
  readonly isRejected?: (req: IncomingMessage) => boolean;
  readonly format?: (req: IncomingMessage) => string | undefined;
  readonly listener?: RequestListener;
}

// Rejects /no…, with its path as the body; everything else gets its path from Node.
async function start(options: Options = {}): Promise<Running> {
  const handled: string[] = [];
  const errors: unknown[] = [];
  const connections: Socket[] = [];
  const server = createServer((req, res) => {
    handled.push(`${req.method} ${req.url}`);
    if (options.listener) options.listener(req, res);
    else res.end(req.url);
  });
  const early = createEarlyRejection({
    isRejected: options.isRejected ?? ((req) => req.url?.startsWith("/no") === true),
    format: options.format ?? ((req) => REJECTION + String(req.url).slice(0, 4).padEnd(4, "-")),
    onError: (error) => errors.push(error),
  });
  server.on("connection", (socket) => {
    connections.push(socket);
    early.watch(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    for (const socket of connections) socket.destroy();
    server.close();
    await once(server, "close");
  };
  const { port } = server.address() as AddressInfo;
  const closeIdle = () => server.closeIdleConnections();
  return { port, handled, errors, connections, early, closeIdle, stop };
}

const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;
const LAST = get("/last", "connection: close\r\n");

// What came back on one connection, as the status and the body of each response.
async function exchange({ port }: Running, ...packets: string[]): Promise<string[]> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  const received = text(socket);
  for (const packet of packets) {
    socket.write(packet);
    await delay(20);
  }
  const responses = (await received).split(/(?=HTTP\/1\.1 )/);
  socket.destroy();
  return responses.map((response) => `${response.slice(9, 12)} ${response.split("\r\n\r\n")[1]}`);
}

async function withServer(options: Options, use: (server: Running) => Promise<void>): Promise<void> {
  const server = await start(options);
  try {
    await use(server);
  } finally {
    await server.stop();
  }
}

test("a rejected request reaches no listener, and its connection serves the next one", () =>
  withServer({}, async (server) => {
    assert.deepEqual(await exchange(server, get("/no1"), get("/yes"), get("/no2"), LAST), [
      "503 /no1",
      "200 /yes",
      "503 /no2",
      "200 /last",
    ]);
    assert.deepEqual(server.handled, ["GET /yes", "GET /last"]);
  }));

test("pipelined responses keep the order of their requests", () =>
  withServer({}, async (server) => {
    // Behind a response of Node that is not sent yet, the next ones are left to Node as well.
    const packet = ["/no1", "/yes", "/no2"].map((path) => get(path)).join("");
    assert.deepEqual(await exchange(server, packet, packet, LAST), [
      "503 /no1",
      "200 /yes",
      "200 /no2",
      "503 /no1",
      "200 /yes",
      "200 /no2",
      "200 /last",
    ]);
  }));

test("a request behind one that is still being handled is left to Node", () =>
  withServer({ listener: (req, res) => void setTimeout(() => res.end(req.url), 60) }, async (server) => {
    assert.deepEqual(await exchange(server, get("/yes"), get("/no1"), LAST), ["200 /yes", "200 /no1", "200 /last"]);
  }));

test("a client that ends its side in the same tick gets its response", () =>
  withServer(
    {
      isRejected({ socket }) {
        process.nextTick(() => socket.emit("end"));
        return true;
      },
    },
    async (server) => {
      const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
      socket.end(get("/no1"));
      assert.equal(await text(socket), `${REJECTION}/no1`);
    },
  ));

const leftToNode: Readonly<Record<string, string>> = {
  HEAD: get("/no1").replace("GET", "HEAD"),
  "HTTP/1.0": "GET /no1 HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
  "connection: close": get("/no1", "connection: close\r\n"),
  "a request to upgrade": get("/no1", "connection: upgrade\r\nupgrade: websocket\r\n"),
};

for (const [name, request] of Object.entries(leftToNode)) {
  test(`${name} is left to Node`, () =>
    withServer(
      {
        listener: (req, res) => {
          res.shouldKeepAlive = false;
          res.end(req.url);
        },
      },
      async (server) => {
        // The second request ends the connection, should it still be open.
        const [response] = await exchange(server, request, LAST);
        assert.equal(response?.slice(0, 3), "200");
        assert.equal(server.handled.length, 1);
      },
    ));
}

test("a request that has no such response is left to Node", () =>
  withServer({ format: () => undefined }, async (server) => {
    assert.deepEqual(await exchange(server, get("/no1"), LAST), ["200 /no1", "200 /last"]);
  }));

test("an error ends its connection alone", () =>
  withServer(
    {
      format: (req) => {
        if (req.url === "/nothing") throw new Error("a bug");
        return `${REJECTION}/no1`;
      },
    },
    async (server) => {
      assert.deepEqual(await exchange(server, get("/nothing")), [" undefined"]);
      assert.deepEqual(server.errors.map(String), ["Error: a bug"]);
      assert.deepEqual(await exchange(server, get("/no1"), LAST), ["503 /no1", "200 /last"]);
    },
  ));

test("responses that wait are sent before idle connections are closed", async () => {
  const server: Running = await start({
    isRejected() {
      process.nextTick(() => {
        server.early.flush();
        server.closeIdle();
      });
      return true;
    },
  });
  try {
    assert.deepEqual(await exchange(server, get("/no1")), ["503 /no1"]);
  } finally {
    await server.stop();
  }
});

test("a peer that reads no response is not answered without end", () => {
  const body = "-".repeat(10_000);
  const format = () => `HTTP/1.1 503 Service Unavailable\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  return withServer({ format }, async (server) => {
    const socket = connect(server.port, "127.0.0.1").pause();
    socket.on("error", () => {});
    socket.write(get("/no1").repeat(MANY));
    let most = 0;
    for (let i = 0; i < 50; i++) {
      await delay(10);
      most = Math.max(most, server.connections[0]?.writableLength ?? 0);
    }
    assert.ok(most > 0, "the peer reads");
    // Node stops to read at its high-water mark; what one packet asked for may be beyond it.
    assert.ok(most < 1024 * 1024, `${most} bytes wait`);
    socket.destroy();
  });
});
