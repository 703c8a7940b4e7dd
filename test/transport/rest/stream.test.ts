import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { failedPrecondition, notFound } from "../../../src/kernel/errors.js";
import type { StreamCall } from "../../../src/pipeline/call.js";
import { failure, info, violation } from "../../support/feature/error-texts.js";
import type { FeatureStreamHandler } from "../../support/feature/feature.js";
import { emptyThing, type FeatureServer, type Sent, startFeatureServer } from "../../support/feature/feature-server.js";
import { openStream, sendUnheard, withResolvers } from "../../support/feature/streamed.js";

interface WatchRequest {
  readonly uid: string;
  readonly count: number;
}

const events = { accept: "text/event-stream" };
const INTERNAL = failure(13, "INTERNAL", "Internal: the service failed to handle the call");
let server: FeatureServer;
// What the three methods do.
let watch: (request: WatchRequest, call: StreamCall) => AsyncIterable<object>;

before(async () => {
  const handler: FeatureStreamHandler = (request, call) => watch(request as unknown as WatchRequest, call);
  server = await startFeatureServer(
    {},
    { clock: Date.now, heartbeatMs: 5 },
    { Watch: handler, WatchLabels: handler, Export: handler },
  );
});
after(() => server.stop());

async function* things({ uid, count }: WatchRequest): AsyncGenerator<object> {
  for (let i = 1; i <= count; i++) yield { uid: `${uid}${i}`, labels: { n: String(i) } };
}

const thing = (uid: string, n: string) => emptyThing(uid).replace('"labels":{}', `"labels":{"n":"${n}"}`);

async function* file({ count }: WatchRequest): AsyncGenerator<object> {
  for (let i = 0; i < count; i++) yield { contentType: i === 0 ? "text/csv" : "x/y", data: Buffer.from(`${i};`) };
}

interface Row extends Sent {
  readonly made?: typeof watch;
  readonly text: string;
  readonly type: string;
  readonly reason: string;
}

const rows: readonly Row[] = [
  {
    path: "/feature/v1/watch/a?count=2",
    text: `{"result":${thing("a1", "1")}}\n{"result":${thing("a2", "2")}}\n`,
    type: "application/x-ndjson",
    reason: "a line for each answer",
  },
  {
    path: "/feature/v1/watch/a?count=2",
    headers: events,
    text: `data: ${thing("a1", "1")}\n\ndata: ${thing("a2", "2")}\n\n`,
    type: "text/event-stream",
    reason: "an event for each answer",
  },
  { path: "/feature/v1/watch/a", text: "", type: "application/x-ndjson", reason: "no answer at all" },
  { path: "/feature/v1/watch/a", headers: events, text: "", type: "text/event-stream", reason: "no event at all" },
  {
    method: "POST",
    path: "/feature/v1/watch",
    headers: { "content-type": "application/json" },
    body: '{"uid":"b","count":1}',
    text: `{"result":${thing("b1", "1")}}\n`,
    type: "application/x-ndjson",
    reason: "an additional binding with a body",
  },
  {
    path: "/feature/v1/watch/a/labels?count=2",
    text: '{"result":{"n":"1"}}\n{"result":{"n":"2"}}\n',
    type: "application/x-ndjson",
    reason: "response_body",
  },
  { path: "/feature/v1/exports/a?count=3", made: file, text: "0;1;2;", type: "text/csv", reason: "raw bytes" },
  {
    path: "/feature/v1/exports/a?count=2",
    made: file,
    headers: events,
    text: "0;1;",
    type: "text/csv",
    reason: "raw bytes are no events",
  },
  {
    path: "/feature/v1/exports/a",
    made: file,
    text: "",
    type: "application/octet-stream",
    reason: "a file of nothing",
  },
  { method: "HEAD", path: "/feature/v1/watch/a?count=2", text: "", type: "application/x-ndjson", reason: "HEAD" },
];

for (const protocol of ["h1", "h2"] as const) {
  const open = (sent: Sent) => openStream(protocol, protocol === "h1" ? server.port : server.h2Port, sent);

  for (const { made = things, text, type, reason, ...sent } of rows) {
    test(`${protocol}: ${reason}`, async () => {
      watch = made;
      const got = await open(sent);
      assert.equal(await got.end, "whole");
      assert.deepEqual([got.status, got.headers["content-type"], got.text()], [200, type, text]);
      assert.equal(got.headers["content-length"], undefined);
      assert.equal(got.headers["x-content-type-options"], "nosniff");
      assert.equal(got.headers["content-security-policy"], made === file ? "sandbox" : undefined);
    });
  }

  test(`${protocol}: a handler chooses the policy of its file`, async () => {
    const policy = "default-src 'none'";
    watch = async function* (request, call) {
      call.responseHeader.set("content-security-policy", policy);
      yield* file(request);
    };
    const got = await open({ path: "/feature/v1/exports/a?count=1" });
    assert.equal(got.headers["content-security-policy"], policy);
    await got.end;
  });

  test(`${protocol}: an error before the first answer is answered like any other`, async () => {
    watch = () => {
      throw notFound({ displayName: "thing", type: "test/Thing" }, "x");
    };
    for (const headers of [{}, events]) {
      const got = await server.send(protocol, { path: "/feature/v1/watch/x", headers });
      assert.deepEqual([got.status, got.headers["content-type"]], [404, "application/json"]);
      assert.ok(got.text.startsWith('{"code":5,"message":"Not found: thing: there is no thing x"'), got.text);
    }
    const json = { "content-type": "application/json" };
    const got = await server.send(protocol, { method: "POST", path: "/feature/v1/watch", headers: json, body: "{}" });
    assert.deepEqual([got.status, got.text], [400, violation("uid", "uid is required")]);
  });

  test(`${protocol}: an answer that cannot be written, as the first, is an error like any other`, async () => {
    watch = async function* () {
      yield { createTime: { seconds: 1n << 60n } };
    };
    server.internal.length = 0;
    const got = await server.send(protocol, { path: "/feature/v1/watch/x" });
    assert.deepEqual([got.status, got.text], [500, INTERNAL]);
    assert.equal(server.internal.length, 1);
  });

  const later = `{"code":9,"message":"Precondition failed: no","details":[${info("FAILED_PRECONDITION")},{"@type":"type.googleapis.com/google.rpc.PreconditionFailure","violations":[{"type":"T","description":"no"}]}]}`;
  const failures: readonly { path: string; headers?: Sent["headers"]; first: string; last: string; reason: string }[] =
    [
      {
        path: "/feature/v1/watch/a/labels",
        first: '{"result":{"a":"b"}}\n',
        last: `{"error":${later}}\n`,
        reason: "lines",
      },
      {
        path: "/feature/v1/watch/a/labels",
        headers: events,
        first: 'data: {"a":"b"}\n\n',
        last: `event: error\ndata: ${later}\n\n`,
        reason: "events",
      },
      { path: "/feature/v1/exports/a", first: "bytes", last: "", reason: "raw bytes" },
    ];

  for (const { path, headers = {}, first, last, reason } of failures) {
    test(`${protocol}: a stream that fails later is cut off after its error: ${reason}`, async () => {
      watch = async function* () {
        yield { labels: { a: "b" }, contentType: "text/plain", data: Buffer.from("bytes") };
        throw failedPrecondition("T", "no");
      };
      const got = await open({ path, headers });
      assert.equal(await got.end, "cut");
      assert.deepEqual([got.status, got.text()], [200, first + last]);
    });
  }

  test(`${protocol}: a later answer that cannot be written ends the stream, and the log is told`, async () => {
    watch = async function* () {
      yield { uid: "a" };
      yield { createTime: { seconds: 1n << 60n } };
    };
    server.internal.length = 0;
    const got = await open({ path: "/feature/v1/watch/a" });
    assert.equal(await got.end, "cut");
    assert.equal(got.text(), `{"result":${emptyThing("a")}}\n{"error":${INTERNAL}}\n`);
    assert.equal(server.internal.length, 1);
  });

  test(`${protocol}: answers arrive as they are made, and a caller that goes releases its stream`, async () => {
    const released = withResolvers();
    watch = async function* (_request, { signal }) {
      try {
        yield { labels: { n: "1" } };
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      } finally {
        released.resolve();
      }
    };
    server.internal.length = 0;
    const got = await open({ path: "/feature/v1/watch/a/labels" });
    await got.has('{"result":{"n":"1"}}\n');
    got.leave();
    await released.promise;
    assert.deepEqual(server.internal, []);
  });

  test(`${protocol}: a caller that goes before the first answer releases its stream`, async () => {
    const requested = withResolvers();
    const released = withResolvers();
    watch = async function* (_request, { signal }) {
      try {
        requested.resolve();
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
        yield {};
      } finally {
        released.resolve();
      }
    };
    const port = protocol === "h1" ? server.port : server.h2Port;
    const leave = sendUnheard(protocol, port, "/feature/v1/watch/a");
    await requested.promise;
    leave();
    await released.promise;
  });

  test(`${protocol}: no more is made than the caller reads`, async () => {
    let made = 0;
    const released = withResolvers();
    const data = Buffer.alloc(65_536);
    watch = async function* () {
      try {
        for (;;) {
          made++;
          yield { data };
        }
      } finally {
        released.resolve();
      }
    };
    const got = await open({ path: "/feature/v1/exports/a" });
    got.pause();
    // Until nothing moves any more: all buffers on the way are full.
    let before = -1;
    while (made !== before) {
      before = made;
      for (let i = 0; i < 20; i++) await server.send("h1", { path: "/feature/v1/labels/a" });
    }
    assert.ok(made < 1000, `${made} answers of 64 KiB for a caller that does not read`);
    got.resume();
    while (made === before) await server.send("h1", { path: "/feature/v1/labels/a" });
    got.leave();
    await released.promise;
  });

  test(`${protocol}: more than any buffer holds arrives whole`, async () => {
    watch = async function* () {
      for (let i = 0; i < 64; i++) yield { data: Buffer.alloc(65_536, i + 32) };
    };
    const got = await open({ path: "/feature/v1/exports/a" });
    assert.equal(await got.end, "whole");
    assert.equal(got.text().length, 64 * 65_536);
    assert.equal(got.text().at(-1), String.fromCharCode(63 + 32));
  });

  test(`${protocol}: headers of the handler come with the first answer, and the id of the request`, async () => {
    watch = async function* (_request, call) {
      call.responseHeader.set("x-cursor", "7");
      call.responseHeader.set("content-type", "text/html");
      yield {};
    };
    const got = await open({ path: "/feature/v1/watch/a", headers: { "x-request-id": "id-1" } });
    assert.equal(got.headers["x-cursor"], "7");
    assert.equal(got.headers["content-type"], "application/x-ndjson");
    assert.equal(got.headers["x-request-id"], "id-1");
    await got.end;
  });

  test(`${protocol}: the time a caller allows ends a stream, before its first answer and after`, async () => {
    watch = async function* ({ count }) {
      for (let i = 0; i < count; i++) yield { labels: {} };
      await new Promise(() => {});
    };
    const late = failure(4, "DEADLINE_EXCEEDED", "Deadline exceeded: the call took longer than allowed");
    const none = await server.send(protocol, { path: "/feature/v1/watch/a", headers: { "grpc-timeout": "20m" } });
    assert.deepEqual([none.status, none.text], [504, late]);
    const one = await open({
      path: "/feature/v1/watch/a/labels?count=1",
      headers: { "x-server-timeout": "1" },
    });
    assert.equal(await one.end, "cut");
    assert.equal(one.text(), `{"result":{}}\n{"error":${late}}\n`);
  });

  test(`${protocol}: events that are far between show that the stream lives, lines do not`, async () => {
    const go = withResolvers();
    watch = async function* () {
      yield { labels: { n: "1" } };
      await go.promise;
      yield { labels: { n: "2" } };
    };
    const lines = await open({ path: "/feature/v1/watch/a/labels" });
    const got = await open({ path: "/feature/v1/watch/a/labels", headers: events });
    await got.has(":\n\n:\n\n");
    go.resolve();
    await Promise.all([got.end, lines.end]);
    assert.match(got.text(), /^data: \{"n":"1"\}\n\n(?::\n\n)+data: \{"n":"2"\}\n\n$/);
    assert.equal(lines.text(), '{"result":{"n":"1"}}\n{"result":{"n":"2"}}\n');
  });
}

const accepts: readonly { accept: string; events: boolean }[] = [
  { accept: "text/event-stream", events: true },
  { accept: "TEXT/Event-Stream; charset=utf-8", events: true },
  { accept: "text/event-stream;charset=utf-8;q=0.5", events: true },
  { accept: "application/json, text/event-stream", events: true },
  { accept: "text/event-stream;q=0.5, application/x-ndjson", events: false },
  { accept: "text/event-stream, application/x-ndjson", events: true },
  { accept: "text/event-stream;q=0", events: false },
  { accept: "text/event-stream;q=2", events: false },
  { accept: "text/*", events: false },
  { accept: "*/*", events: false },
  { accept: "", events: false },
];

for (const { accept, events: expected } of accepts) {
  test(`accept ${JSON.stringify(accept)}: ${expected ? "events" : "lines"}`, async () => {
    watch = things;
    const got = await server.send("h1", { path: "/feature/v1/watch/a", headers: { accept } });
    assert.equal(got.headers["content-type"], expected ? "text/event-stream" : "application/x-ndjson");
  });
}
