// A call of a mounted service ends when its caller leaves or its time is up, whatever its handler does; its size is
// limited and its line is logged as for any other.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient, type HandlerContext, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createLogger } from "../../../src/telemetry/logger.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { Library } from "../../support/library/library.js";
import { LibraryService } from "../../support/library/library_pb.js";
import { mountLibrary } from "../../support/library/mounted.js";
import { standStill } from "../../support/stand-still.js";
import { waitUntil } from "../../support/wait-until.js";
import { openHttp2, rawHttp2 } from "../harness.js";

interface CallOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** A library whose streams wait for their end, and whose handlers may wait for longer. */
class Waiting extends Library {
  /** What reading streams of requests failed with. */
  readonly failures: unknown[] = [];
  /** How long handlers wait before they read a stream of requests. */
  delayMs = 0;
  /** How long the callers of books and lists still waited when their handlers began, in milliseconds. */
  readonly left: (number | undefined)[] = [];
  hasBlocked = false;

  override getBook(request: { name: string }, context: HandlerContext) {
    if (request.name === "books/blocks") {
      this.hasBlocked = true;
      standStill(20);
    } else this.left.push(context.timeoutMs());
    return super.getBook(request, context);
  }

  override async *listBooks({ group }: { group: string }, { signal, timeoutMs }: HandlerContext) {
    this.left.push(timeoutMs());
    if (group === "none") return;
    try {
      yield { name: "books/first" };
      if (group === "deaf") await sleep(60_000, undefined, { ref: false });
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        if (signal.aborted) reject(signal.reason);
      });
    } finally {
      this.ended.push(signal.reason);
    }
  }

  override async returnBooks(books: AsyncIterable<unknown>, { signal }: HandlerContext) {
    signal.addEventListener("abort", () => this.ended.push(signal.reason), { once: true });
    try {
      if (this.delayMs > 0) await sleep(this.delayMs);
      for await (const _ of books);
    } catch (error) {
      this.failures.push(error);
      throw error;
    }
    return { count: 0 };
  }

  override deleteBook() {
    return sleep(60_000, {}, { ref: false });
  }
}

interface Calls {
  slow(options: CallOptions): Promise<unknown>;
  deaf(options: CallOptions): Promise<unknown>;
  list(group: string, options: CallOptions, onFirst?: () => void): Promise<unknown>;
  create(title: string): Promise<unknown>;
  bug(): Promise<unknown>;
}

// The deadline as a field alone: clients that keep time themselves leave at the same moment.
function rpcOptions({ timeoutMs, signal }: CallOptions) {
  const fields = { "grpc-timeout": `${timeoutMs}m`, "connect-timeout-ms": String(timeoutMs) };
  return { ...(signal && { signal }), ...(timeoutMs !== undefined && { headers: fields }) };
}

function rpcCalls(transport: Transport): Calls {
  const client = createClient(LibraryService, transport);
  return {
    slow: (options) => client.getBook({ name: "books/slow" }, rpcOptions(options)),
    deaf: (options) => client.deleteBook({ name: "books/a" }, rpcOptions(options)),
    async list(group, options, onFirst) {
      for await (const _ of client.listBooks({ group }, rpcOptions(options))) onFirst?.();
    },
    create: (title) => client.createBook({ book: { name: "books/a", title } }),
    bug: () => client.getBook({ name: "books/bug" }),
  };
}

function restCalls(baseUrl: string): Calls {
  const send = async (
    path: string,
    { timeoutMs, signal }: CallOptions,
    more: RequestInit = {},
    onFirst?: () => void,
  ) => {
    const headers = {
      "content-type": "application/json",
      ...(timeoutMs !== undefined && { "x-server-timeout": String(timeoutMs / 1000) }),
    };
    const response = await fetch(baseUrl + path, { ...more, headers, ...(signal && { signal }) });
    let text = "";
    try {
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk).toString();
        onFirst?.();
      }
    } catch (error) {
      // A stream that failed is cut off after its error.
      if (signal?.aborted) throw error;
    }
    const last = text.trim().split("\n").at(-1) ?? "";
    const { code, error = { code }, message } = JSON.parse(last === "" ? "{}" : last);
    if (error.code !== undefined) throw new ConnectError(message ?? error.message, error.code);
  };
  return {
    slow: (options) => send("/library/v1/books/slow", options),
    deaf: (options) => send("/library/v1/books/a", options, { method: "DELETE" }),
    list: (group, options, onFirst) => send(`/library/v1/groups/${group}/books`, options, {}, onFirst),
    create: (title) =>
      send("/library/v1/books", {}, { method: "POST", body: JSON.stringify({ name: "books/a", title }) }),
    bug: () => send("/library/v1/books/bug", {}),
  };
}

const protocols: Readonly<Record<string, (baseUrl: string) => Calls>> = {
  grpc: (baseUrl) => rpcCalls(createGrpcTransport({ baseUrl })),
  "grpc-web": (baseUrl) => rpcCalls(createGrpcWebTransport({ baseUrl, httpVersion: "2" })),
  connect: (baseUrl) => rpcCalls(createConnectTransport({ baseUrl, httpVersion: "1.1" })),
  "JSON over HTTP": restCalls,
};

// A frame of HTTP/2: Node's client ends a stream before it resets it, which other clients do not.
function h2Frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream]), payload]);
}

describe("a mounted service's calls", () => {
  const library = new Waiting();
  const lines: string[] = [];
  let service: Harness;

  before(async () => {
    const logger = createLogger("info", { write: (line) => void lines.push(line) });
    const mounts = [mountLibrary(library)];
    service = await startHarness({ accessLog: true }, { mounts, logger });
  });
  after(() => service?.stop());
  beforeEach(() => {
    library.ended.length = 0;
    library.failures.length = 0;
    library.delayMs = 0;
    library.left.length = 0;
    lines.length = 0;
  });

  const codeOf = (error: unknown) => Code[ConnectError.from(error).code];
  const failureOf = (call: Promise<unknown>) => call.then(() => "none", codeOf);
  const reason = () => waitUntil(() => library.ended.at(0));

  for (const [protocol, callsOf] of Object.entries(protocols)) {
    test(`${protocol}: the deadline aborts the signal`, async () => {
      assert.equal(await failureOf(callsOf(service.url).slow({ timeoutMs: 500 })), "DeadlineExceeded");
      assert.equal(codeOf(await reason()), "DeadlineExceeded");
    });

    test(`${protocol}: the deadline ends a call whose handler does not heed the signal`, async () => {
      assert.equal(await failureOf(callsOf(service.url).deaf({ timeoutMs: 300 })), "DeadlineExceeded");
      assert.equal(await failureOf(callsOf(service.url).list("deaf", { timeoutMs: 300 })), "DeadlineExceeded");
    });

    test(`${protocol}: what a call has waited for its turn is a part of its timeout`, async () => {
      const calls = callsOf(service.url);
      // Connects, so that the calls below are read before their turn.
      await calls.list("none", {});
      library.left.length = 0;
      // On one connection, so that all of them are read before the calls below.
      const session = openHttp2(service.url);
      const path = "/library/v1/books/blocks";
      library.hasBlocked = false;
      const before = Array.from({ length: 40 }, () => rawHttp2(session, { ":method": "GET", ":path": path }));
      await waitUntil(() => library.hasBlocked || undefined);
      await Promise.all([calls.slow({ timeoutMs: 5_000 }).catch(() => {}), calls.list("none", { timeoutMs: 5_000 })]);
      await Promise.all(before);
      session.close();
      assert.equal(library.left.length, 2);
      for (const ms of library.left) assert.ok(ms !== undefined && ms < 4_850 && ms > 0, `${ms} ms were left`);
    });

    test(`${protocol}: a caller that leaves aborts the signal`, async () => {
      const gone = new AbortController();
      const failure = failureOf(callsOf(service.url).slow({ signal: gone.signal }));
      await sleep(200);
      gone.abort();
      assert.equal(codeOf(await reason()), "Canceled");
      await failure;
    });

    test(`${protocol}: a caller that leaves a stream releases it`, async () => {
      const gone = new AbortController();
      const failure = failureOf(callsOf(service.url).list("g", { signal: gone.signal }, () => gone.abort()));
      assert.equal(codeOf(await reason()), "Canceled");
      await failure;
    });

    test(`${protocol}: a request that is larger than allowed is rejected`, async () => {
      const calls = callsOf(service.url);
      await calls.create("x".repeat(15 * 1024));
      const code = await failureOf(calls.create("x".repeat(17 * 1024)));
      assert.equal(code, "ResourceExhausted");
    });

    test(`${protocol}: one line for a call, and one for an error that the caller gets as INTERNAL`, async () => {
      assert.equal(await failureOf(callsOf(service.url).bug()), "Internal");
      const request = await waitUntil(() => lines.find((line) => line.includes('"msg":"request"')));
      assert.match(request, /GetBook|books\/bug/);
      assert.match(request, /"code":"INTERNAL"/);
      const errors = lines.filter((line) => line.includes('"level":"error"'));
      assert.equal(errors.length, 1, errors.join(""));
      assert.match(errors[0] ?? "", /secret/);
    });
  }

  test("a caller that leaves a stream of requests aborts the signal", async () => {
    const gone = new AbortController();
    const client = createClient(LibraryService, createGrpcTransport({ baseUrl: service.url }));
    async function* books() {
      yield { name: "books/a" };
      await sleep(60_000, undefined, { ref: false });
    }
    const failure = failureOf(client.returnBooks(books(), { signal: gone.signal }));
    await sleep(300);
    gone.abort();
    assert.equal(codeOf(await reason()), "Canceled");
    await failure;
  });

  test("a stream of requests whose caller waits for 100 Continue gets it", async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    let received = "";
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
    });
    socket.write(
      `POST /${LibraryService.typeName}/ReturnBooks HTTP/1.1\r\nHost: a\r\nConnection: close\r\n` +
        "Content-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
    );
    await waitUntil(() => received.includes("100 Continue") || undefined);
    const message = Buffer.from('{"name":"books/a"}');
    const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
    socket.write(
      Buffer.concat([Buffer.from(`${envelope.length.toString(16)}\r\n`), envelope, Buffer.from("\r\n0\r\n\r\n")]),
    );
    await once(socket, "close");
    assert.match(received, /HTTP\/1\.1 200 OK/);
    assert.match(received, /\{"count":|\{\}/);
  });

  test("a stream of requests over HTTP/1.1 with a message that is too large is read to its end", async () => {
    const message = Buffer.alloc(6 * 1024 * 1024, 32);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.length, 1);
    for (let i = 0; i < 3; i++) {
      const response = await fetch(`${service.url}/${LibraryService.typeName}/ReturnBooks`, {
        method: "POST",
        headers: { "content-type": "application/connect+json" },
        body: Buffer.concat([prefix, message]),
      });
      assert.match(await response.text(), /"code":"resource_exhausted"/);
    }
  });

  const cuts: Readonly<Record<string, (socket: Socket) => void>> = {
    "resets a stream of requests": (socket) => socket.write(h2Frame(3, 0, 1, Buffer.from([0, 0, 0, 8]))),
    "cuts its connection within a stream of requests": (socket) => socket.destroy(),
  };
  const cases = Object.entries(cuts).flatMap(([what, cut]) => [0, 600].map((delayMs) => ({ what, cut, delayMs })));
  for (const { what, cut, delayMs } of cases) {
    test(`a caller that ${what} is no failure, and its stream none that is whole, read after ${delayMs} ms`, async () => {
      library.delayMs = delayMs;
      const { hostname, port } = new URL(service.url);
      const socket = connect(Number(port), hostname);
      const fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": `/${LibraryService.typeName}/ReturnBooks`,
        ":authority": `${hostname}:${port}`,
        "content-type": "application/grpc",
        te: "trailers",
      };
      // Literal fields, not indexed (RFC 7541, section 6.2.2).
      const head = Object.entries(fields).flatMap(([name, value]) => [
        Buffer.from([0, name.length]),
        Buffer.from(name),
        Buffer.from([value.length]),
        Buffer.from(value),
      ]);
      socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
      socket.write(h2Frame(4, 0, 0, Buffer.alloc(0)));
      socket.write(h2Frame(1, 4, 1, Buffer.concat(head)));
      socket.write(h2Frame(0, 0, 1, Buffer.alloc(5)));
      await sleep(300);
      cut(socket);
      assert.equal(codeOf(await reason()), "Canceled");
      assert.equal(codeOf(await waitUntil(() => library.failures.at(0))), "Canceled");
      await waitUntil(() => lines.find((line) => line.includes('"msg":"request"')));
      assert.deepEqual(
        lines.filter((line) => line.includes('"level":"error"')),
        [],
      );
      socket.destroy();
    });
  }
});

test("where it is mounted larger requests may be allowed", async () => {
  const mounts = [mountLibrary(new Library(), { maxRequestBytes: 1024 * 1024 })];
  const service = await startHarness({}, { mounts });
  try {
    for (const callsOf of Object.values(protocols)) await callsOf(service.url).create("x".repeat(1_000_000));
  } finally {
    await service.stop();
  }
});
