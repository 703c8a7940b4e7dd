// One request id, followed through the response, the access log, the span, the audit log over the API, and the log of errors.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { mount } from "../../src/pipeline/mount.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { type Harness, startHarness } from "../support/harness.js";
import { LibraryService } from "../support/library/library_pb.js";
import { type CollectedSpan, type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { withVariables } from "../support/variables.js";
import { frame, openHttp2, rawHttp2, rawTcp } from "./harness.js";

type Line = Record<string, unknown>;

const lines: Line[] = [];
let service: Harness;
let collector: OtlpCollector;
let owner: { readonly group: string; readonly identity: string; readonly token: string };

before(async () => {
  const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const library = {
    getBook() {
      throw new Error("planted");
    },
  };
  const rule = { get: "/library/v1/{name=books/*}" };
  const broken = mount(LibraryService, library as never, {
    access: "public",
    http: { getBook: rule, createBook: null },
  });
  collector = await startOtlpCollector();
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
  const start = () => startHarness({ accessLog: "all" }, { logger, mounts: [broken] });
  service = await withVariables(variables, start);
  owner = await service.organisation("ids");
});
after(async () => {
  await service?.stop();
  await collector?.stop();
});

// A line is written when the response has closed on the side of the server.
async function accessLine(requestId: string): Promise<Line> {
  for (let i = 0; i < 300; i++) {
    const found = lines.filter((line) => line.msg === "request" && line.requestId === requestId);
    assert.ok(found.length < 2, "a request has one line");
    if (found[0] !== undefined) return found[0];
    await sleep(10);
  }
  throw new assert.AssertionError({ message: `no line of ${requestId}` });
}

// What the audit API says of a request.
async function readAuditedTypes(requestId: string): Promise<string[]> {
  const query = new URLSearchParams({ scope: owner.group, requestId, startTime: "2020-01-01T00:00:00Z" });
  const response = await fetch(`${service.url}/audit/v1/events?${query}`, {
    headers: { authorization: `Bearer ${owner.token}` },
  });
  assert.equal(response.status, 200);
  const { events = [] } = (await response.json()) as { events?: readonly { requestId: string; type: string }[] };
  assert.ok(events.every((event) => event.requestId === requestId));
  return events.map(({ type }) => type);
}

// The span of a request, which is exported some time after its response.
async function spanOf(requestId: string): Promise<CollectedSpan> {
  for (let i = 0; i < 300; i++) {
    const found = collector.spans.filter(({ attributes }) => attributes["arbor.request_id"] === requestId);
    assert.ok(found.length < 2, "a request has one span with its id");
    if (found[0] !== undefined) return found[0];
    await sleep(10);
  }
  throw new assert.AssertionError({ message: `no span of ${requestId}` });
}

/** What a caller of any protocol learns: the id on the response and how the call ended. */
interface Outcome {
  readonly id: string | undefined;
  readonly ok: boolean;
}

/** Creates a group; an empty name makes it fail. */
type Create = (name: string, requestId: string) => Promise<Outcome>;

const CREATE = "chainguard.platform.iam.v2beta1.GroupsService/CreateGroup";

const protocols: Readonly<Record<string, Create>> = {
  async rest(name, requestId) {
    const response = await fetch(`${service.url}/iam/v2beta1/groups/${owner.group}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${owner.token}`,
        "content-type": "application/json",
        "x-request-id": requestId,
      },
      body: JSON.stringify({ name }),
    });
    await response.arrayBuffer();
    return { id: response.headers.get("x-request-id") ?? undefined, ok: response.ok };
  },
  grpc: (name, id) => createBy(createGrpcTransport({ baseUrl: service.url }), name, id),
  "grpc-web": (name, id) => createBy(createGrpcWebTransport({ baseUrl: service.url, httpVersion: "1.1" }), name, id),
  connect: (name, id) => createBy(createConnectTransport({ baseUrl: service.url, httpVersion: "1.1" }), name, id),
};

async function createBy(transport: Transport, name: string, requestId: string): Promise<Outcome> {
  let id: string | undefined;
  const onHeader = (headers: Headers) => {
    id = headers.get("x-request-id") ?? undefined;
  };
  const headers = { authorization: `Bearer ${owner.token}`, "x-request-id": requestId };
  try {
    await createClient(GroupsService, transport).createGroup(
      { parent: owner.group, group: { name } },
      { headers, onHeader },
    );
    return { id, ok: true };
  } catch (error) {
    const failure = ConnectError.from(error);
    assert.equal(failure.code, Code.InvalidArgument, failure.message);
    return { id: id ?? failure.metadata.get("x-request-id") ?? undefined, ok: false };
  }
}

const GET_BOOK = "example.library.v1.LibraryService/GetBook";

/** Calls the method that throws; resolves to the id on its response. */
async function causeFault(protocol: string, requestId: string): Promise<string | undefined> {
  const headers = { "x-request-id": requestId };
  if (protocol === "rest") {
    const response = await fetch(`${service.url}/library/v1/books/a`, { headers });
    await response.arrayBuffer();
    assert.equal(response.status, 500);
    return response.headers.get("x-request-id") ?? undefined;
  }
  const baseUrl = service.url;
  const transport =
    protocol === "grpc"
      ? createGrpcTransport({ baseUrl })
      : protocol === "connect"
        ? createConnectTransport({ baseUrl, httpVersion: "1.1" })
        : createGrpcWebTransport({ baseUrl, httpVersion: "1.1" });
  let id: string | undefined;
  const onHeader = (fields: Headers) => {
    id = fields.get("x-request-id") ?? undefined;
  };
  const failure = await createClient(LibraryService, transport)
    .getBook({ name: "books/a" }, { headers, onHeader })
    .then(() => assert.fail("it must fail"), ConnectError.from);
  assert.equal(failure.code, Code.Internal);
  return id ?? failure.metadata.get("x-request-id") ?? undefined;
}

describe("one request id", () => {
  for (const [protocol, create] of Object.entries(protocols)) {
    test(`${protocol}: of a call that succeeds`, async () => {
      const requestId = `${protocol}.ok_1`;
      assert.deepEqual(await create(`by ${protocol}`, requestId), { id: requestId, ok: true });
      const line = await accessLine(requestId);
      assert.equal(line.protocol, protocol);
      assert.equal(line.method, CREATE);
      assert.equal(line.code, "OK");
      assert.equal(line.callerUid, owner.identity);
      assert.equal(line.organisation, owner.group);
      assert.equal(line.remoteAddress, "127.0.0.1");
      assert.ok(Number(line.bytes) > 40);
      assert.ok(Number(line.durationMs) > 0);
      const span = await spanOf(requestId);
      assert.deepEqual([span.name, span.traceId, span.attributes["error.type"]], [CREATE, line.traceId, undefined]);
      assert.deepEqual(await readAuditedTypes(requestId), ["dev.chainguard.api.iam.group.created.v1"]);
    });

    test(`${protocol}: of a call that fails`, async () => {
      const requestId = `${protocol}.failed-1`;
      assert.deepEqual(await create("/", requestId), { id: requestId, ok: false });
      const line = await accessLine(requestId);
      assert.equal(line.protocol, protocol);
      assert.equal(line.method, CREATE);
      assert.equal(line.code, "INVALID_ARGUMENT");
      assert.equal(line.callerUid, owner.identity);
      const span = await spanOf(requestId);
      assert.deepEqual([span.name, span.traceId], [CREATE, line.traceId]);
      assert.equal(span.attributes["error.type"], "INVALID_ARGUMENT");
      assert.deepEqual(await readAuditedTypes(requestId), [], "what changes nothing has no row");
    });

    test(`${protocol}: of a call in which the service has a fault`, async () => {
      const requestId = `${protocol}.fault-1`;
      assert.equal(await causeFault(protocol, requestId), requestId);
      const line = await accessLine(requestId);
      assert.deepEqual([line.protocol, line.method, line.code], [protocol, GET_BOOK, "INTERNAL"]);
      const span = await spanOf(requestId);
      assert.deepEqual([span.name, span.traceId, span.failed], [GET_BOOK, line.traceId, true]);
      assert.equal(span.attributes["error.type"], "INTERNAL");
      const errors = lines.filter((one) => one.level === "error" && one.requestId === requestId);
      assert.deepEqual(
        errors.map(({ err }) => (err as { message: string }).message),
        ["planted"],
      );
      assert.deepEqual(await readAuditedTypes(requestId), []);
    });
  }

  test("of a trace that the caller names", async () => {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, "x-request-id": "traced" };
    await fetch(`${service.url}/nowhere`, { headers });
    assert.equal((await accessLine("traced")).traceId, traceId);
    await fetch(`${service.url}/nowhere`, {
      headers: { traceparent: `00-${"0".repeat(32)}-x`, "x-request-id": "bare" },
    });
    assert.equal((await accessLine("bare")).traceId, undefined);
  });
});

const MADE = /^[0-9a-f]{32}$/;

describe("x-request-id is on", () => {
  const responses = [
    { path: "/healthz", status: 200 },
    { path: "/readyz", status: 200 },
    { path: "/openapi.json", status: 200 },
    { path: "/docs/", status: 200 },
    { path: "/.well-known/openid-configuration", status: 200 },
    { path: "/oauth", status: 400 },
    { path: "/nowhere", status: 404 },
    { path: "/iam/v2beta1/groups", status: 401 },
    { path: `/${CREATE}`, status: 405 },
    { path: "/a.B/C", status: 404 },
  ];
  for (const { path, status } of responses) {
    test(path, async () => {
      const bare = await fetch(service.url + path);
      await bare.arrayBuffer();
      assert.equal(bare.status, status);
      assert.match(bare.headers.get("x-request-id") ?? "", MADE);
      const id = `at${path.replaceAll(/[^a-zA-Z]/g, ".")}`;
      const named = await fetch(service.url + path, { headers: { "x-request-id": id } });
      await named.arrayBuffer();
      assert.equal(named.headers.get("x-request-id"), id);
    });
  }

  const rejected = [
    { name: "what is no HTTP", bytes: "GET\r\n\r\n", status: 400 },
    {
      name: "headers that are too large",
      bytes: `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(70_000)}\r\n\r\n`,
      status: 431,
    },
    {
      name: "a coding that is not known",
      bytes: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
      status: 501,
    },
  ];
  for (const { name, bytes, status } of rejected) {
    test(name, async () => {
      const text = await rawTcp(Number(new URL(service.url).port), bytes);
      const id = /^x-request-id: (.*)\r$/im.exec(text)?.[1] ?? "";
      assert.match(text, new RegExp(`^HTTP/1.1 ${status} `));
      assert.match(id, MADE);
      assert.equal((await accessLine(id)).status, status);
    });
  }

  test("a gRPC answer of trailers alone", async () => {
    const session = openHttp2(service.url);
    const fields = { "content-type": "application/grpc", ":path": "/a.B/C", "x-request-id": "trailers" };
    const { headers } = await rawHttp2(session, fields, frame(Buffer.alloc(0)));
    session.destroy();
    assert.equal(headers["grpc-status"], "12");
    assert.equal(headers["x-request-id"], "trailers");
  });
});

describe("an id is replaced", () => {
  const malformed: readonly { readonly name: string; readonly head: string }[] = [
    { name: "of 129 characters", head: `X-Request-Id: ${"a".repeat(129)}` },
    { name: "of two fields", head: "X-Request-Id: a\r\nX-Request-Id: a" },
    { name: "with a blank", head: "X-Request-Id: a b" },
    { name: "beyond ASCII", head: "X-Request-Id: \u00fc" },
    { name: "with what would end a line of the log", head: 'X-Request-Id: a"}{"level":"error' },
    { name: "with an escaped newline", head: "X-Request-Id: a\\nb" },
    { name: "that is empty", head: "X-Request-Id:" },
  ];
  for (const { name, head } of malformed) {
    test(name, async () => assert.match(await idOf(head), MADE));
  }
  test("but not one of 128 characters", async () => {
    const id = "aZ9._-aa".repeat(16);
    assert.equal(await idOf(`X-Request-Id: ${id}`), id);
  });

  test("over HTTP/2, where two fields come as two", async () => {
    const session = openHttp2(service.url);
    const twice = await rawHttp2(session, { ":method": "GET", ":path": "/healthz", "x-request-id": ["a", "a"] });
    const once = await rawHttp2(session, { ":method": "GET", ":path": "/healthz", "x-request-id": ["a"] });
    session.destroy();
    assert.match(String(twice.headers["x-request-id"]), MADE);
    assert.equal(once.headers["x-request-id"], "a");
  });

  async function idOf(head: string): Promise<string> {
    const port = Number(new URL(service.url).port);
    const text = await rawTcp(port, `GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${head}\r\n\r\n`);
    const ids = [...text.matchAll(/^x-request-id: (.*)\r$/gim)].map(([, id]) => id);
    assert.equal(ids.length, 1);
    return ids[0] ?? "";
  }
});
