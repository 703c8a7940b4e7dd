// A service that has nothing to do with the platform, served by its stack alone:
// the same responses by REST, Connect, gRPC-Web and gRPC, with everything that
// google.api.http can say.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { failedPrecondition } from "../../src/kernel/errors.js";
import { featureService } from "../support/feature/feature.js";
import { emptyThing } from "../support/feature/feature-server.js";
import { type FeatureStack, startFeatureStack, things, type WatchRequest } from "../support/feature/feature-service.js";
import { requestH1, requestH2, type Sent } from "../support/requests.js";
import { transports } from "./harness.js";

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly onHeader?: (headers: Headers) => void;
  readonly onTrailer?: (headers: Headers) => void;
}

interface Thing {
  readonly uid: string;
  readonly displayName: string;
}

interface FeatureClient {
  getThing(request: { uid: string }): Promise<Thing>;
  createThing(request: object): Promise<Thing>;
  download(request: { uid: string }): Promise<{ contentType: string; data: Uint8Array }>;
  upload(request: object): Promise<{ contentType: string; size: bigint }>;
}

interface StreamClient {
  watch(request: Partial<WatchRequest>, options?: CallOptions): AsyncIterable<Thing>;
  export(request: Partial<WatchRequest>): AsyncIterable<{ contentType: string; data: Uint8Array }>;
}

const json = { "content-type": "application/json" };

interface Row extends Sent {
  readonly text: string;
  readonly status?: number;
  readonly type?: string;
  readonly reason: string;
}

const thing = (uid: string, displayName: string) =>
  emptyThing(uid).replace('"displayName":""', `"displayName":"${displayName}"`);

const rest: readonly Row[] = [
  {
    path: "/feature/v1/things/a/b",
    text: thing("a/b", "thing a/b").replace('"labels":{}', '"labels":{"a":"b"}'),
    reason: "a variable of several segments",
  },
  {
    path: "/feature/v1/aliases/a%2Fb",
    text: thing("a/b", "thing a/b").replace('"labels":{}', '"labels":{"a":"b"}'),
    reason: "an additional binding",
  },
  {
    method: "POST",
    path: "/feature/v1/things/a/b:archive",
    headers: json,
    body: '{"reason":"old"}',
    text: thing("a/b", "archived: old"),
    reason: "a verb",
  },
  { method: "PURGE", path: "/feature/v1/things/a", text: "{}", reason: "a method of its own" },
  { method: "PUT", path: "/feature/v1/any/a", text: emptyThing("a"), reason: "any method" },
  { method: "DELETE", path: "/feature/v1/things/a", text: "", reason: "nothing to say" },
  { path: "/feature/v1/labels/a", text: '{"a":"b"}', reason: "response_body" },
  {
    method: "PUT",
    path: "/feature/v1/tags/a",
    headers: json,
    body: '["x","y"]',
    text: '{"uid":"a","tags":["x","y"]}',
    reason: "a body that is a list",
  },
  { path: "/feature/v1/files/a/b", text: "a;a/b\n", type: "text/csv", reason: "raw bytes out" },
  {
    method: "PUT",
    path: "/feature/v1/files/a",
    headers: { "content-type": "image/png" },
    body: Buffer.from([0x89, 0x50]),
    text: '{"contentType":"image/png","size":"2"}',
    reason: "raw bytes in",
  },
  {
    path: "/feature/v1/watch/a?count=2",
    text: `{"result":${emptyThing("a1").replace('"labels":{}', '"labels":{"n":"1"}')}}\n{"result":${emptyThing("a2").replace('"labels":{}', '"labels":{"n":"2"}')}}\n`,
    type: "application/x-ndjson",
    reason: "a stream of lines",
  },
  {
    path: "/feature/v1/watch/a/labels?count=2",
    headers: { accept: "text/event-stream" },
    text: 'data: {"n":"1"}\n\ndata: {"n":"2"}\n\n',
    type: "text/event-stream",
    reason: "a stream of events, of a part of each answer",
  },
  {
    method: "POST",
    path: "/feature/v1/watch",
    headers: json,
    body: '{"uid":"a","count":0}',
    text: "",
    type: "application/x-ndjson",
    reason: "a stream by an additional binding",
  },
  { path: "/feature/v1/exports/a?count=2", text: "a;1\na;2\n", type: "text/csv", reason: "a stream of raw bytes" },
  {
    method: "POST",
    path: "/feature/v1/watch",
    headers: json,
    body: "{}",
    status: 400,
    text: '{"code":3,"message":"Invalid argument: uid: uid is required","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_ARGUMENT","domain":"feature.test"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"uid","description":"uid is required"}]}]}',
    reason: "a stream that is rejected",
  },
];

// Set in a query and in a body, and as they come back.
const wrappers: readonly { field: string; query: string; json: string }[] = [
  { field: "stringWrapper", query: "", json: '""' },
  { field: "string_wrapper", query: "x", json: '"x"' },
  { field: "int64Wrapper", query: "9007199254740993", json: '"9007199254740993"' },
  { field: "boolWrapper", query: "false", json: "false" },
  { field: "bytesWrapper", query: "AAE", json: '"AAE="' },
  { field: "doubleWrapper", query: "0.5", json: "0.5" },
];

describe("a second service", () => {
  let stack: FeatureStack;
  before(async () => {
    stack = await startFeatureStack();
  });
  after(() => stack.stop());

  for (const [version, send] of Object.entries({ "http/1.1": requestH1, h2: requestH2 })) {
    for (const { status = 200, text, type, reason, ...sent } of rest) {
      test(`REST ${version}: ${reason}`, async () => {
        stack.watch = things;
        const got = await send(stack.port, sent);
        assert.deepEqual([got.status, got.text], [status, text]);
        if (type !== undefined) assert.equal(got.headers["content-type"], type);
      });
    }

    for (const { field, query, json: value } of wrappers) {
      test(`REST ${version}: ${field}=${query}`, async () => {
        const name = field.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
        const found = await send(stack.port, { path: `/feature/v1/search?${field}=${query}` });
        assert.ok(found.text.includes(`"${name}":${value}`), found.text);
        const body = `{"${field}":${value}}`;
        const echoed = await send(stack.port, { method: "POST", path: "/feature/v1/echo", headers: json, body });
        assert.ok(echoed.text.includes(`"${name}":${value}`), echoed.text);
      });
    }
  }

  for (const [index, [protocol]] of transports("http://unused").entries()) {
    const client = <T>(service: string): T => {
      const transport = transports(stack.url)[index];
      assert.ok(transport);
      return createClient(featureService(service), transport[1]) as unknown as T;
    };
    const unary = () => client<FeatureClient>("FeatureService");
    const streams = () => client<StreamClient>("StreamService");

    test(`${protocol}: one answer`, async () => {
      const got = await unary().getThing({ uid: "a/b" });
      assert.deepEqual([got.uid, got.displayName], ["a/b", "thing a/b"]);
      const file = await unary().download({ uid: "x" });
      assert.deepEqual([file.contentType, Buffer.from(file.data).toString()], ["text/csv", "a;x\n"]);
      const up = await unary().upload({ uid: "x", file: { contentType: "a/b", data: new Uint8Array(3) } });
      assert.deepEqual([up.contentType, up.size], ["a/b", 3n]);
    });

    test(`${protocol}: a write is recorded`, async () => {
      const { uid } = await unary().createThing({ parent: "p", thing: { displayName: "n" } });
      assert.equal(uid, "p/new");
      const [row] = await stack.store.read((tx) => tx.audit.listNewest(1));
      assert.deepEqual([row?.subjectUid, row?.method], ["p/new", "/arbor.test.feature.FeatureService/CreateThing"]);
    });

    test(`${protocol}: a stream of answers`, async () => {
      stack.watch = things;
      const uids: string[] = [];
      for await (const { uid } of streams().watch({ uid: "a", count: 50 })) uids.push(uid);
      assert.equal(uids.length, 50);
      assert.equal(uids.at(-1), "a50");
      const lines: string[] = [];
      for await (const { data } of streams().export({ uid: "a", count: 2 })) lines.push(Buffer.from(data).toString());
      assert.deepEqual(lines, ["a;1\n", "a;2\n"]);
    });

    test(`${protocol}: a stream is rejected like any call, and fails like any`, async () => {
      const rejected = await failureOf(streams().watch({ count: 1 }));
      assert.deepEqual(
        [rejected.code, rejected.rawMessage],
        [Code.InvalidArgument, "Invalid argument: uid: uid is required"],
      );
      stack.watch = async function* () {
        yield { uid: "a1" };
        throw failedPrecondition("T", "a:b, 50% of ü — done");
      };
      const uids: string[] = [];
      const failed = await failureOf(streams().watch({ uid: "a" }), ({ uid }) => uids.push(uid));
      assert.deepEqual(
        [failed.code, failed.rawMessage],
        [Code.FailedPrecondition, "Precondition failed: a:b, 50% of ü — done"],
      );
      assert.deepEqual(
        failed.findDetails(ErrorInfoSchema).map(({ domain, reason }) => [domain, reason]),
        [["feature.test", "FAILED_PRECONDITION"]],
      );
      assert.deepEqual(uids, ["a1"]);
      stack.watch = () => {
        throw new TypeError("secret");
      };
      const bug = await failureOf(streams().watch({ uid: "a" }));
      assert.deepEqual([bug.code, bug.rawMessage], [Code.Internal, "Internal: the service failed to handle the call"]);
    });
  }
});

async function failureOf<T>(
  responses: AsyncIterable<T>,
  onAnswer: (response: T) => void = () => {},
): Promise<ConnectError> {
  try {
    for await (const response of responses) onAnswer(response);
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new assert.AssertionError({ message: "the stream ended well" });
}
