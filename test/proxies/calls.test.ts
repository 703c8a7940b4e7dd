// Calls of every protocol through each proxy of deploy/proxies, over TLS: answers, errors, streams, large messages,
// deadlines, request ids, and the address of the caller.
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { request } from "node:https";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type HandlerContext, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { type Group, GroupSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { withResolvers } from "../support/feature/streamed.js";
import { type Harness, startHarness } from "../support/harness.js";
import { Library } from "../support/library/library.js";
import { type Book, BookSchema, LibraryService } from "../support/library/library_pb.js";
import { mountLibrary } from "../support/library/mounted.js";
import { type Received, requestOn, type Sent } from "../support/requests.js";
import { type Certificate, makeCertificate, proxyNames, type RunningProxy, startProxy } from "./proxy.js";

/** Nearly the largest message. */
const LARGE = "x".repeat(4 * 1024 * 1024 - 4_096);
/** Not the address of the proxy, so that both can be told apart. */
const CALLER = "127.0.0.2";

/** A library that says how long callers wait, and never answers those who ask for `books/never`. */
class Timed extends Library {
  readonly allowedMs: (number | undefined)[] = [];

  override async getBook({ name }: { name: string }, context: HandlerContext) {
    this.allowedMs.push(context.timeoutMs());
    if (name === "books/never") await sleep(60_000, undefined, { signal: context.signal, ref: false });
    return { name };
  }

  override createBook({ book }: { book?: Book | undefined }) {
    return create(BookSchema, { name: "books/large", title: book?.title ?? "" });
  }

  /** Called by a caller that has got the second book of a shelf. */
  readonly onSecond = new Map<string, () => void>();

  /** The third book of a shelf other than `g` is sent once the caller has got the second one. */
  override async *listBooks({ group, count }: { group: string; count: number }) {
    const { promise, resolve } = withResolvers();
    this.onSecond.set(group, resolve);
    for (let i = 1; i <= count; i++) {
      if (i === 3 && group !== "g") await promise;
      yield { name: `books/${i}` };
    }
  }
}

interface Line {
  readonly msg: string;
  readonly requestId: string;
  readonly remoteAddress: string;
  readonly protocol: string;
}

const library = new Timed();
const lines: Line[] = [];
let certificate: Certificate;
let harness: Harness;
let group: string;
let token: string;
before(async () => {
  certificate = makeCertificate();
  const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const settings = { behindProxy: true, trustedProxies: "127.0.0.1", accessLog: "all" };
  const mounts = [mountLibrary(library, { maxRequestBytes: 4 * 1024 * 1024 })];
  harness = await startHarness(settings, { logger, mounts });
  ({ group, token } = await harness.organisation("proxied"));
});
after(() => harness.stop());

function transportsOf(url: string): Readonly<Record<string, Transport>> {
  const nodeOptions = { ca: certificate.cert, localAddress: CALLER };
  const h1 = { baseUrl: url, httpVersion: "1.1", nodeOptions } as const;
  const h2 = { baseUrl: url, httpVersion: "2", nodeOptions } as const;
  return {
    grpc: createGrpcTransport({ baseUrl: url, nodeOptions }),
    "grpc-web http/1.1": createGrpcWebTransport(h1),
    "grpc-web h2": createGrpcWebTransport(h2),
    "connect http/1.1": createConnectTransport({ ...h1, useBinaryFormat: false }),
    "connect h2": createConnectTransport(h2),
    "connect GET": createConnectTransport({ ...h1, useHttpGet: true, useBinaryFormat: false }),
  };
}

async function send(version: "h1" | "h2", { port, url }: RunningProxy, sent: Sent): Promise<Received> {
  const options = { ca: certificate.cert, localAddress: CALLER };
  if (version === "h1") {
    const { method = "GET", path, headers, body } = sent;
    return new Promise((resolve, reject) => {
      const target = { ...options, host: "127.0.0.1", servername: "localhost", port, method, path, agent: false };
      const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
      const req = request({ ...target, headers: { host: `localhost:${port}`, ...length, ...headers } }, (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("error", reject);
        res.on("end", () => {
          const bytes = Buffer.concat(chunks);
          resolve({ status: res.statusCode ?? 0, headers: res.headers, bytes, text: bytes.toString() });
        });
      });
      req.on("error", reject);
      req.end(body);
    });
  }
  const session = connectHttp2(url, options);
  try {
    return await requestOn(session, sent);
  } finally {
    session.destroy();
  }
}

// The path of a method, and what writes its requests.
function pathOf<I extends DescMessage>(method: { parent: { typeName: string }; name: string; input: I }) {
  const serialize = (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message));
  return [`/${method.parent.typeName}/${method.name}`, serialize] as const;
}

async function lineOf(requestId: string): Promise<Line> {
  for (let tries = 0; tries < 300; tries++) {
    const found = lines.find((line) => line.msg === "request" && line.requestId === requestId);
    if (found !== undefined) return found;
    await sleep(10);
  }
  throw new Error(`there is no line of ${requestId}`);
}

for (const name of proxyNames) {
  describe(name, () => {
    let proxy: RunningProxy;
    before(async () => {
      proxy = await startProxy(name, { certificate, target: Number(new URL(harness.url).port) });
    });
    after(() => proxy.stop());

    for (const protocol of Object.keys(transportsOf("https://localhost"))) {
      const transport = () => transportsOf(proxy.url)[protocol] as Transport;
      const asOwner = (more: Record<string, string> = {}) => ({
        headers: { authorization: `Bearer ${token}`, ...more },
      });

      it(`${protocol}: answers and errors arrive whole`, async () => {
        const groups = createClient(GroupsService, transport());
        const found = await groups.getGroup({ uid: group }, asOwner());
        assert.equal(found.name, "proxied");
        const error = await rejection(groups.getGroup({ uid: `${group}/0123456789abcdef` }, asOwner()));
        assert.equal(error.code, Code.NotFound);
        assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "NOT_FOUND");
        const anonymous = await rejection(groups.getGroup({ uid: group }));
        assert.equal(anonymous.code, Code.Unauthenticated);
      });

      it(`${protocol}: a stream arrives as it is sent`, async () => {
        const client = createClient(LibraryService, transport());
        const names: string[] = [];
        const shelf = `${name} ${protocol}`;
        for await (const { name: book } of client.listBooks({ group: shelf, count: 4 }, { timeoutMs: 10_000 })) {
          names.push(book);
          if (names.length === 2) library.onSecond.get(shelf)?.();
        }
        assert.deepEqual(names, ["books/1", "books/2", "books/3", "books/4"]);
      });

      it(`${protocol}: a message of nearly 4 MiB arrives, and its answer`, async () => {
        const { title } = await createClient(LibraryService, transport()).createBook({ book: { title: LARGE } });
        assert.equal(title.length, LARGE.length);
      });

      it(`${protocol}: the deadline reaches the service`, async () => {
        const client = createClient(LibraryService, transport());
        library.allowedMs.length = 0;
        await client.getBook({ name: "books/a" }, { timeoutMs: 7_000 });
        const [allowed = 0] = library.allowedMs;
        assert.ok(allowed > 5_000 && allowed <= 7_000, `${allowed}`);
        const error = await rejection(client.getBook({ name: "books/never" }, { timeoutMs: 300 }));
        assert.equal(error.code, Code.DeadlineExceeded);
      });

      it(`${protocol}: the id and the address of the caller reach the log`, async () => {
        const requestId = `${name}-${protocol.replaceAll(/\W/g, "-")}`;
        let answered: string | null = null;
        const onHeader = (header: Headers) => {
          answered = header.get("x-request-id");
        };
        // What a caller claims is not believed.
        const headers = { "x-request-id": requestId, "x-forwarded-for": "203.0.113.9" };
        const groups = createClient(GroupsService, transport());
        await groups.getGroup({ uid: group }, { ...asOwner(headers), onHeader });
        assert.equal(answered, requestId);
        const line = await lineOf(requestId);
        assert.deepEqual([line.remoteAddress, line.protocol], [CALLER, protocol.split(" ")[0]]);
      });
    }

    it("grpc: a client that shares no code with the service", async () => {
      const client = new grpc.Client(`localhost:${proxy.port}`, grpc.credentials.createSsl(certificate.cert));
      const metadata = new grpc.Metadata();
      metadata.set("authorization", `Bearer ${token}`);
      try {
        const { getGroup } = GroupsService.method;
        const found = await new Promise<Group>((resolve, reject) => {
          client.makeUnaryRequest(
            ...pathOf(getGroup),
            (bytes: Buffer) => fromBinary(GroupSchema, bytes),
            create(getGroup.input, { uid: group }),
            metadata,
            { deadline: Date.now() + 10_000 },
            (error, response) => (response === undefined ? reject(error) : resolve(response)),
          );
        });
        assert.equal(found.name, "proxied");
        const { listBooks } = LibraryService.method;
        const request = create(listBooks.input, { group: "g", count: 3 });
        const books: string[] = [];
        const stream = client.makeServerStreamRequest(
          ...pathOf(listBooks),
          (bytes: Buffer) => fromBinary(BookSchema, bytes),
          request,
        );
        for await (const { name: book } of stream) books.push(book);
        assert.deepEqual(books, ["books/1", "books/2", "books/3"]);
      } finally {
        client.close();
      }
    });

    for (const version of ["h1", "h2"] as const) {
      const authorization = () => ({ authorization: `Bearer ${token}` });

      it(`REST ${version}: answers, errors and the id of the request`, async () => {
        const path = `/iam/v2beta1/groups/${group}`;
        const requestId = `${name}-rest-${version}`;
        const headers = { ...authorization(), "x-request-id": requestId, "x-forwarded-for": "203.0.113.9" };
        const found = await send(version, proxy, { path, headers });
        assert.equal(found.status, 200, found.text);
        assert.equal(JSON.parse(found.text).name, "proxied");
        assert.equal(found.headers["x-request-id"], requestId);
        assert.equal((await lineOf(requestId)).remoteAddress, CALLER);
        const missing = await send(version, proxy, { path: `${path}/0123456789abcdef`, headers: authorization() });
        assert.deepEqual([missing.status, JSON.parse(missing.text).details[0].reason], [404, "NOT_FOUND"]);
        assert.match(String(missing.headers["x-request-id"]), /^[0-9a-f]{32}$/);
      });

      it(`REST ${version}: paths and queries arrive as they are sent`, async () => {
        const query = `?uidp.descendants_of=${encodeURIComponent(group)}&name=${encodeURIComponent("a b+c/d%")}`;
        const path = `/iam/v2beta1/groups${query}`;
        const { status, text } = await send(version, proxy, { path, headers: authorization() });
        const direct = await fetch(`${harness.url}${path}`, { headers: authorization() });
        assert.deepEqual([status, text], [direct.status, await direct.text()]);
      });

      it(`REST ${version}: streams as lines and as events`, async () => {
        const path = "/library/v1/groups/g/books?count=3";
        const asLines = await send(version, proxy, { path });
        assert.equal(asLines.text.trim().split("\n").length, 3);
        const events = await send(version, proxy, { path, headers: { accept: "text/event-stream" } });
        assert.equal(events.headers["content-type"], "text/event-stream");
        assert.equal(events.text.match(/^data: /gm)?.length, 3);
      });

      it(`REST ${version}: a body of nearly 4 MiB, and one that is too large`, async () => {
        const headers = { "content-type": "application/json" };
        const body = (title: string) => JSON.stringify({ title });
        const sent = { method: "POST", path: "/library/v1/books", headers };
        const made = await send(version, proxy, { ...sent, body: body(LARGE) });
        assert.deepEqual([made.status, JSON.parse(made.text).title?.length], [200, LARGE.length]);
        const refused = await send(version, proxy, { ...sent, body: body(LARGE + LARGE) });
        assert.equal(refused.status, 413);
        assert.equal(JSON.parse(refused.text).code, Code.ResourceExhausted, "the answer is the service's");
      });

      it(`${version}: health checks`, async () => {
        assert.equal((await send(version, proxy, { path: "/readyz" })).status, 200);
      });
    }
  });
}

describe("controls", () => {
  it("without --trusted-proxies the address is that of the proxy", async () => {
    const mine: Line[] = [];
    const logger = createLogger("info", { write: (line) => void mine.push(JSON.parse(line)) });
    const other = await startHarness({ behindProxy: true, accessLog: "all" }, { logger });
    const proxy = await startProxy("nginx", { certificate, target: Number(new URL(other.url).port) });
    await send("h1", proxy, { path: "/version", headers: { "x-request-id": "untrusted" } });
    await proxy.stop();
    await other.stop();
    const found = mine.find(({ requestId }) => requestId === "untrusted");
    assert.equal(found?.remoteAddress, "127.0.0.1");
  });

  it("a client that does not trust the certificate does not connect", async () => {
    const proxy = await startProxy("haproxy", { certificate, target: Number(new URL(harness.url).port) });
    const transport = createGrpcTransport({ baseUrl: proxy.url });
    const error = await rejection(createClient(GroupsService, transport).getGroup({ uid: group }));
    await proxy.stop();
    assert.match(error.message, /self-signed certificate/);
  });
});

async function rejection(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConnectError, String(error));
  return error;
}
