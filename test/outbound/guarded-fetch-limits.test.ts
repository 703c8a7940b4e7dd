// The limits of responses, also for a trusted server.
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";
import { json, type Listener, listen, serve } from "../issuer/upstream/foreign-issuer.js";
import { startStopwatch } from "../support/stopwatch.js";

const isFetchError = { name: "GuardedFetchError", message: "the address could not be fetched" };
const LIMIT = 100 * 1024;

function guardFor(origin: string, onFailure: (reason: string) => void = () => {}) {
  return createGuardedFetch({ trustedOrigins: [origin], onFailure });
}

async function failureOf(server: Listener, path = "/"): Promise<string> {
  const reasons: string[] = [];
  await assert.rejects(
    guardFor(server.origin, (reason) => reasons.push(reason))(`${server.origin}${path}`),
    isFetchError,
  );
  assert.equal(reasons.length, 1);
  return (reasons[0] ?? "").slice(`${server.origin}: `.length);
}

const tooLong = `the body is longer than ${LIMIT} bytes`;
// Unpacked, its members are one text (RFC 1952, section 2.2), and one of them is made sooner than the whole.
const BOMB = Buffer.concat(Array(256).fill(gzipSync(Buffer.alloc(1 << 22))));

const responses: readonly {
  name: string;
  reason: string;
  answer: (res: ServerResponse, req: IncomingMessage) => void;
}[] = [
  ...[301, 302, 303, 307, 308].map((status) => ({
    name: `a redirect with ${status}`,
    reason: "the response is a redirect",
    answer: (res: ServerResponse, req: IncomingMessage) =>
      void res.writeHead(status, { location: `http://${req.headers.host}/again` }).end(),
  })),
  { name: "a redirect to nowhere", reason: "the response is a redirect", answer: (res) => res.writeHead(304).end() },
  {
    name: "a status of 600",
    reason: "the response has a status that does not exist",
    answer: (res) => res.writeHead(600).end(),
  },
  { name: "one byte too many", reason: tooLong, answer: (res) => res.end(Buffer.alloc(LIMIT + 1)) },
  {
    name: "one byte too many, in chunks",
    reason: tooLong,
    answer: (res) => {
      res.write(Buffer.alloc(LIMIT));
      res.end("x");
    },
  },
  {
    name: "a megabyte that unpacks to a gigabyte",
    reason: "the body is compressed",
    answer: (res) => res.writeHead(200, { "content-encoding": "gzip" }).end(BOMB),
  },
  {
    name: "brotli",
    reason: "the body is compressed",
    answer: (res) => res.writeHead(200, { "content-encoding": "BR" }).end("x"),
  },
  { name: "half a body", reason: "ECONNRESET", answer: (res) => cut(res, { "content-length": "100" }) },
  {
    name: "headers of 100 KiB",
    reason: "HPE_HEADER_OVERFLOW",
    answer: (res) => res.writeHead(200, { x: "x".repeat(LIMIT) }).end(),
  },
  { name: "no answer", reason: "ECONNRESET", answer: (res) => res.destroy() },
];

for (const { name, reason, answer } of responses) {
  test(`${name} is rejected, and nothing else is requested`, async () => {
    let requests = 0;
    const server = await serve((req, res) => {
      requests++;
      answer(res, req);
    });
    try {
      assert.equal(await failureOf(server), reason);
      assert.deepEqual([requests, server.connections], [1, 1]);
    } finally {
      server.close();
    }
  });
}

const raw: Readonly<Record<string, [text: string, reason: string]>> = {
  "text that is no HTTP": ["SSH-2.0-OpenSSH_9.2\r\n", "HPE_INVALID_CONSTANT"],
  "HTTP/2": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HPE_INVALID_CONSTANT"],
  "two lengths": [
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "HPE_UNEXPECTED_CONTENT_LENGTH",
  ],
  "another protocol": [
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "another protocol was offered",
  ],
};

for (const [name, [text, reason]] of Object.entries(raw)) {
  test(`${name} is rejected`, async () => {
    const server = await listen(createServer((socket) => socket.once("data", () => socket.end(text))));
    try {
      assert.equal(await failureOf(server), reason);
    } finally {
      server.close();
    }
  });
}

test("a body of just the limit is taken; a caller can set another one", async () => {
  const server = await serve((_req, res) => res.end(Buffer.alloc(LIMIT, 1)));
  try {
    const fetch = guardFor(server.origin);
    assert.equal((await fetch(server.origin)).bytes.length, LIMIT);
    await assert.rejects(fetch(server.origin, { maxBytes: LIMIT - 1 }), isFetchError);
  } finally {
    server.close();
  }
});

test("an endless body is cut off and the connection closed", async () => {
  let sent = 0;
  let close = () => {};
  const closed = new Promise<void>((resolve) => {
    close = resolve;
  });
  const server = await serve((_req, res) => {
    const chunk = Buffer.alloc(64 * 1024);
    const more = () => {
      while (!res.destroyed && res.write(chunk)) sent += chunk.length;
    };
    res.on("drain", more).on("close", close);
    more();
  });
  try {
    assert.equal(await failureOf(server), tooLong);
    await closed;
    assert.ok(sent < 50_000_000, `${sent} bytes were sent`);
  } finally {
    server.close();
  }
});

test("whatever is slow ends after 5 s in all", async () => {
  const drip = (socket: Socket, start: string) => {
    socket.write(start);
    const timer = setInterval(() => socket.write("x"), 200);
    socket.on("close", () => clearInterval(timer));
  };
  const servers = await Promise.all([
    listen(createServer()),
    listen(createServer((socket) => drip(socket, "HTTP/1.1 200 OK\r\nX-Slow: "))),
    listen(createServer((socket) => drip(socket, "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"))),
    listen(createServer((socket) => drip(socket, "HTTP/1.1 200 "))),
  ]);
  const reasons: string[] = [];
  const origins = servers.map(({ origin }) => origin);
  const onFailure = (reason: string) => reasons.push(reason);
  const resolve = () => new Promise<never>(() => {});
  const fetch = createGuardedFetch({ trustedOrigins: [...origins, "https://127.0.0.1:1"], onFailure, resolve });
  const tls = `https://127.0.0.1:${servers[0]?.port}`;
  const fetchTls = createGuardedFetch({ trustedOrigins: [tls], onFailure });
  try {
    const [startMs, elapsedMs] = [performance.now(), startStopwatch()];
    const slow = [...origins.map((origin) => fetch(origin)), fetch("https://unanswered.test/"), fetchTls(tls)];
    for (const { status } of await Promise.allSettled(slow)) assert.equal(status, "rejected");
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs > 4_900 && elapsedMs() < 8_000, `${tookMs} ms`);
    assert.deepEqual(
      new Set(reasons.map((reason) => reason.slice(reason.lastIndexOf(":")))),
      new Set([": it took too long"]),
    );
  } finally {
    for (const server of servers) server.close();
  }
});

test("ten requests run at once, a hundred wait, more are rejected", async () => {
  const pending: ServerResponse[] = [];
  let most = 0;
  const server = await serve((_req, res) => {
    pending.push(res);
    most = Math.max(most, pending.length);
    setTimeout(() => {
      pending.splice(pending.indexOf(res), 1);
      json(res, {});
    }, 50);
  });
  const reasons: string[] = [];
  try {
    const fetch = guardFor(server.origin, (reason) => reasons.push(reason));
    const results = await Promise.allSettled(Array.from({ length: 115 }, () => fetch(server.origin)));
    assert.deepEqual([results.filter(({ status }) => status === "fulfilled").length, most], [110, 10]);
    assert.deepEqual(new Set(reasons), new Set([`${server.origin}: too many are waiting`]));
    // Every slot came back, and none twice.
    assert.equal((await Promise.all(Array.from({ length: 110 }, () => fetch(server.origin)))).length, 110);
    assert.equal(most, 10);
  } finally {
    server.close();
  }
});

test("servers that never answer one organisation delay neither others nor the operator", async () => {
  const tarpit = await serve(() => {});
  const server = await serve((_req, res) => json(res, {}));
  const fetch = createGuardedFetch({ trustedOrigins: [tarpit.origin, server.origin] });
  const controller = new AbortController();
  const { signal } = controller;
  const pending = Array.from({ length: 30 }, (_, i) =>
    fetch(tarpit.origin, { signal, organisation: "a", unproven: i % 2 === 0 }).catch(() => "ended"),
  );
  try {
    while (tarpit.connections < 8) await setImmediate();
    const elapsedMs = startStopwatch();
    await fetch(server.origin, { organisation: "b" });
    await fetch(server.origin);
    assert.ok(elapsedMs() < 2_000, "within less than the deadline of what hangs");
    // Control: a request of the same organisation waits for those that hang.
    const own = fetch(server.origin, { organisation: "a" }).catch(() => "late");
    assert.equal(await Promise.race([own, delay(300).then(() => "waits")]), "waits");
    assert.equal(tarpit.connections, 8);
  } finally {
    controller.abort();
    await Promise.all(pending);
    tarpit.close();
    server.close();
  }
});

for (const waitsApart of [true, false]) {
  const name = waitsApart ? "the deadline begins with the request" : "control: otherwise the wait for a slot counts";
  test(name, async () => {
    let requests = 0;
    const server = await serve((_req, res) => {
      // The first one hangs until its deadline, and all that time the second one waits for its slot.
      if (++requests === 2) json(res, {});
    });
    const limits = { running: 1, runningPerAccount: 1, runningPerTarget: 1, waiting: 9, waitingPerAccount: 9 };
    const fetch = createGuardedFetch({ trustedOrigins: [server.origin], slots: limits, deadlineMs: 1_500 });
    try {
      const first = fetch(server.origin, { organisation: "a" });
      const wait = waitsApart ? ({ maxWaitMs: "unlimited" } as const) : {};
      const second = fetch(server.origin, { organisation: "a", ...wait });
      await assert.rejects(first, { kind: "late" });
      if (waitsApart) assert.equal((await second).status, 200);
      else await assert.rejects(second, { kind: "late" });
    } finally {
      server.close();
    }
  });
}

test("a request that may wait for a time only is busy after it", async () => {
  const server = await serve(() => {});
  const limits = { running: 1, runningPerAccount: 1, runningPerTarget: 1, waiting: 9, waitingPerAccount: 9 };
  const fetch = createGuardedFetch({ trustedOrigins: [server.origin], slots: limits });
  const controller = new AbortController();
  const first = fetch(server.origin, { organisation: "a", signal: controller.signal });
  await assert.rejects(fetch(server.origin, { organisation: "a", maxWaitMs: 50 }), { isBusy: true });
  controller.abort();
  await assert.rejects(first, isFetchError);
  server.close();
});

test("an aborted caller ends the request, running, waiting or not started", async () => {
  let closed = 0;
  const server = await serve((_req, res) => void res.on("close", () => closed++));
  const reasons: string[] = [];
  try {
    const fetch = guardFor(server.origin, (reason) => reasons.push(reason));
    const controller = new AbortController();
    const requests = Array.from({ length: 12 }, () => fetch(server.origin, { signal: controller.signal }));
    setTimeout(() => controller.abort(), 100);
    for (const request of requests) await assert.rejects(request, isFetchError);
    await assert.rejects(fetch(server.origin, { signal: controller.signal }), isFetchError);
    assert.deepEqual(new Set(reasons), new Set([`${server.origin}: the caller went away`]));
    while (closed < 10) await setImmediate();
    assert.equal(server.connections, 10);
  } finally {
    server.close();
  }
});

function cut(res: ServerResponse, headers: Record<string, string>): void {
  res.writeHead(200, headers);
  res.write("{", () => res.destroy());
}
