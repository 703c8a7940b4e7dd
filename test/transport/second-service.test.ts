// A service that has nothing to do with the platform, served by its stack alone:
// the same responses by Connect, gRPC-Web and gRPC. What it is over REST is in rest/gateway.test.ts and rest/stream.test.ts.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { failedPrecondition } from "../../src/kernel/errors.js";
import { featureService } from "../support/feature/feature.js";
import { type FeatureStack, startFeatureStack, things, type WatchRequest } from "../support/feature/feature-service.js";
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

describe("a second service", () => {
  let stack: FeatureStack;
  before(async () => {
    stack = await startFeatureStack();
  });
  after(() => stack.stop());

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
