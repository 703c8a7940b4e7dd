// The delay between the signal and the stop: balancers are told to use another node, and everything is still served.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/health/v1/health_pb.js";
import { type Harness, startHarness } from "../support/harness.js";
import { startStopwatch } from "../support/stopwatch.js";
import { waitUntil } from "../support/wait-until.js";

const DELAY_MS = 1_500;
/** The longest delay that is tried again with a longer one. */
const MAX_DELAY_MS = 60_000;

interface Answer {
  readonly status: number | undefined;
  readonly connection: string | undefined;
  readonly text: string;
}

/** A client that sends all requests over one connection as long as that stays. */
function openHttp1(url: string, token: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<Socket>();
  const send = (path: string, method = "GET", body?: string) =>
    new Promise<Answer>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const req = request(`${url}${path}`, { agent, method, headers }, (res: IncomingMessage) => {
        let text = "";
        res.on("data", (chunk) => (text += chunk));
        res.on("end", () => resolve({ status: res.statusCode, connection: res.headers.connection, text }));
        res.on("error", reject);
      });
      req.on("socket", (socket) => sockets.add(socket));
      req.on("error", reject);
      req.end(body);
    });
  return { send, sockets, close: () => agent.destroy() };
}

const isRefused = (url: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => {
      socket.destroy();
      resolve(false);
    });
    socket.on("error", () => resolve(true));
  });

function grpcOf(url: string) {
  const sessionManager = new Http2SessionManager(url);
  return { transport: createGrpcTransport({ baseUrl: url, sessionManager }), sessionManager };
}

async function openSession(url: string): Promise<ClientHttp2Session> {
  const session = connectHttp2(url);
  session.on("error", () => {});
  await once(session, "connect");
  return session;
}

function follow(url: string) {
  const seen: Status[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const ended = (async () => {
    for await (const { status } of createClient(Health, grpcOf(url).transport).watch({})) {
      seen.push(status);
      for (const { count, resolve } of waiting) if (seen.length >= count) resolve();
    }
  })();
  return {
    seen,
    ended,
    waitFor: (count: number) =>
      seen.length >= count ? Promise.resolve() : new Promise<void>((resolve) => waiting.push({ count, resolve })),
  };
}

// What happens during the delay takes longer than it on a busy machine, and is then tried with a longer one.
async function startLeaving(
  run: (harness: Harness, token: string, group: string) => Promise<() => Promise<void>>,
  delayMs = DELAY_MS,
) {
  const harness = await startHarness();
  const { token, group } = await harness.organisation("leaving");
  const during = await run(harness, token, group);
  const startMs = performance.now();
  const stopped = harness.app.stop("SIGTERM", delayMs);
  let isStopped = false;
  void stopped.then(() => {
    isStopped = true;
  });
  try {
    await during();
    assert.equal(isStopped, false);
  } catch (error) {
    if (performance.now() - startMs < delayMs || delayMs > MAX_DELAY_MS) throw error;
    await stopped;
    return startLeaving(run, 4 * delayMs);
  }
  return { harness, stopped, startMs };
}

describe("during the delay", () => {
  test("HTTP/1.1: calls are served on old and new connections, and each response closes its connection", async () => {
    const { harness, stopped } = await startLeaving(async ({ url }, token, group) => {
      const [used, idle] = [openHttp1(url, token), openHttp1(url, token)];
      const path = `/iam/v2beta1/groups/${group}`;
      for (const client of [used, idle]) assert.equal((await client.send(path)).connection, "keep-alive");
      return async () => {
        const [kept] = [...idle.sockets];
        const again = await used.send(path);
        assert.deepEqual([again.status, again.connection, used.sockets.size], [200, "close", 1]);
        const made = await used.send(path, "POST", '{"name":"late"}');
        assert.deepEqual([made.status, made.connection, used.sockets.size], [200, "close", 2], "on a new connection");
        const ready = await used.send("/readyz");
        assert.deepEqual(ready, { status: 503, connection: "close", text: '{"status":"draining"}' });
        assert.equal((await used.send("/healthz")).status, 200);
        const missing = await used.send(`${path}/0123456789abcdef`);
        assert.deepEqual([missing.status, missing.connection], [404, "close"], "errors as well");
        assert.equal(kept?.destroyed, false, "an idle connection stays: a proxy may be about to use it");
        assert.deepEqual([(await idle.send(path)).status, idle.sockets.size], [200, 1]);
        used.close();
        idle.close();
      };
    });
    await stopped;
    assert.equal(await isRefused(harness.url), true);
  });

  test("HTTP/2: sessions stay open, and calls are served on old and new ones", async () => {
    const { harness, stopped } = await startLeaving(async ({ url }, token, group) => {
      const old = grpcOf(url);
      const read = (transport: typeof old.transport) =>
        createClient(GroupsService, transport).getGroup(
          { uid: group },
          { headers: { authorization: `Bearer ${token}` } },
        );
      await read(old.transport);
      const session = await openSession(url);
      let isGone = false;
      session.on("goaway", () => {
        isGone = true;
      });
      return async () => {
        for (let i = 0; i < 5; i++) {
          assert.equal((await read(old.transport)).uid, group);
          await sleep(50);
        }
        assert.equal((await read(grpcOf(url).transport)).uid, group);
        assert.equal(isGone, false);
        assert.equal(session.closed, false);
      };
    });
    await stopped;
    assert.equal(await isRefused(harness.url), true);
  });

  test("Health says NOT_SERVING at once, also to watches, which end with the service", async () => {
    let watch: ReturnType<typeof follow> | undefined;
    const { stopped, startMs } = await startLeaving(async ({ url }) => {
      watch = follow(url);
      await watch.waitFor(1);
      return async () => {
        const elapsedMs = startStopwatch();
        await watch?.waitFor(2);
        assert.ok(elapsedMs() < 500, "it did not wait for the next look");
        const { status } = await createClient(Health, grpcOf(url).transport).check({});
        assert.equal(status, Status.NOT_SERVING);
        const late = follow(url);
        await late.waitFor(1);
        assert.deepEqual(late.seen, [Status.NOT_SERVING]);
      };
    });
    await watch?.ended;
    assert.ok(performance.now() - startMs >= DELAY_MS - 20, "the watch was open during the delay");
    assert.deepEqual(watch?.seen, [Status.SERVING, Status.NOT_SERVING]);
    await stopped;
  });
});

// What a proxy has sent must be served, because it repeats no POST. How long the service waits for it is limited, so a busy
// machine may be too late for a try, but not for all.
describe("what was on its way when the stop began is served:", () => {
  const TRIES = 8;

  async function tryUntil(attempt: (harness: Harness) => Promise<boolean>): Promise<void> {
    for (let i = 0; i < TRIES; i++) {
      const harness = await startHarness();
      const isServed = await attempt(harness);
      await harness.app.stop();
      if (isServed) return;
    }
    assert.fail(`it was lost ${TRIES} times`);
  }

  test("a stream on an idle session, which gets a PING before GOAWAY", async () => {
    await tryUntil(async ({ url, app }) => {
      const peer = await openFrames(url);
      peer.request(1, "/healthz");
      await peer.waitFor(HEADERS);
      const stopped = app.stop();
      if ((await peer.waitForOneOf(PING, GOAWAY)).type === GOAWAY) return false;
      peer.request(3, "/healthz");
      const { payload } = await peer.waitFor(GOAWAY);
      if (payload.readUInt32BE(0) !== 3) return false;
      await peer.waitFor(HEADERS, 2);
      await stopped;
      return true;
    });
  });

  test("the first request of a connection", async () => {
    await tryUntil(async ({ url, app }) => {
      const { port } = new URL(url);
      const socket = connect(Number(port), "127.0.0.1");
      await once(socket, "connect");
      await waitUntil(() => app.openWork().connections === 1);
      const stopped = app.stop();
      await waitUntil(() => isRefused(url));
      socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
      const text = await readAll(socket);
      await stopped;
      return /^HTTP\/1\.1 200 .*\r\nConnection: close\r\n/s.test(text);
    });
  });

  test("connections that the system has, and the service has not accepted", async () => {
    await tryUntil(async ({ url, app }) => {
      const { port } = new URL(url);
      const sockets = Array.from({ length: 20 }, () => connect(Number(port), "127.0.0.1"));
      for (const socket of sockets) socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
      const stopped = app.stop();
      const texts = await Promise.all(sockets.map(readAll));
      await stopped;
      return texts.every((text) => text.startsWith("HTTP/1.1 200 "));
    });
  });

  async function readAll(socket: Socket): Promise<string> {
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk));
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("close", resolve));
    return text;
  }
});

test("health checks are answered on connections beyond the limit of their address", async () => {
  const harness = await startHarness({ connectionsPerAddress: "2" });
  const { port } = new URL(harness.url);
  const open = [connect(Number(port), "127.0.0.1"), connect(Number(port), "127.0.0.1")];
  for (const socket of open) await once(socket, "connect");
  const ask = async (path: string) => {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`));
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(socket, "close");
    return Buffer.concat(chunks).toString();
  };
  assert.match(await ask("/readyz"), /^HTTP\/1\.1 200 /, "the control");
  const stopped = harness.app.stop("SIGTERM", DELAY_MS);
  assert.match(await ask("/readyz"), /^HTTP\/1\.1 503 .*"draining"/s);
  assert.match(await ask("/healthz"), /^HTTP\/1\.1 200 /);
  assert.match(await ask("/version"), /^HTTP\/1\.1 503 .*UNAVAILABLE/s, "not one of them");
  for (const socket of open) socket.destroy();
  await stopped;
});

describe("after the delay", () => {
  test("a session gets GOAWAY with its last stream, and a second to end", async () => {
    const harness = await startHarness();
    const peer = await openFrames(harness.url);
    peer.request(1, "/healthz");
    await peer.waitFor(HEADERS);
    const startMs = performance.now();
    const stopped = harness.app.stop("SIGTERM", DELAY_MS);
    peer.request(3, "/healthz");
    await peer.waitFor(HEADERS, 2);
    const { payload } = await peer.waitFor(GOAWAY);
    const [goawayMs, elapsedMs] = [performance.now(), startStopwatch()];
    assert.ok(goawayMs - startMs >= DELAY_MS - 20);
    assert.deepEqual([payload.readUInt32BE(0), payload.readUInt32BE(4)], [3, 0], "the last stream, and no error");
    // What was sent before GOAWAY was read is not answered, and does not reset the connection.
    peer.request(5, "/healthz");
    const error = await peer.closed;
    assert.equal(error, undefined);
    const lastedMs = performance.now() - goawayMs;
    assert.ok(lastedMs > 900 && elapsedMs() < 3_000, `${lastedMs} ms`);
    await stopped;
  });

  test("without a delay the listener closes at once: the control", async () => {
    const harness = await startHarness();
    const stopped = harness.app.stop("SIGINT");
    await waitUntil(() => isRefused(harness.url), DELAY_MS);
    await stopped;
  });
});

const HEADERS = 1;
const PING = 6;
const GOAWAY = 7;

interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

/** A peer of HTTP/2 that does nothing by itself, such as close its connection after GOAWAY. */
async function openFrames(url: string) {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  let wake = () => {};
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const length = 9 + rest.readUIntBE(0, 3);
      frames.push({ type: rest[3] ?? 0, payload: rest.subarray(9, length) });
      rest = rest.subarray(length);
    }
    wake();
  });
  const closed = new Promise<Error | undefined>((resolve) => {
    socket.on("error", resolve);
    socket.on("end", () => socket.end());
    socket.on("close", () => resolve(undefined));
  });
  const send = (type: number, flags: number, stream: number, payload = Buffer.alloc(0)) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    socket.write(Buffer.concat([head, payload]));
  };
  async function find(search: (all: readonly Frame[]) => Frame | undefined): Promise<Frame> {
    for (;;) {
      const found = search(frames);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  send(4, 0, 0);
  return {
    closed,
    /** Opens a stream with GET, in literal fields without indexing. */
    request(stream: number, path: string) {
      const literal = (name: number, value: string) => Buffer.from([name, value.length, ...Buffer.from(value)]);
      // :method GET, :scheme http, :path, :authority
      send(HEADERS, 5, stream, Buffer.concat([Buffer.from([0x82, 0x86]), literal(4, path), literal(1, "a")]));
    },
    waitFor: (type: number, count = 1) => find((all) => all.filter((frame) => frame.type === type)[count - 1]),
    waitForOneOf: (...types: readonly number[]) => find((all) => all.find(({ type }) => types.includes(type))),
  };
}
