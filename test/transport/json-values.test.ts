// Values that JSON can hold and messages cannot, and the reverse, over every protocol that takes JSON: rejected with the
// field's name where they come from a caller, INTERNAL where they come from a handler, and never changed into others.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { featureService } from "../support/feature/feature.js";
import { type FeatureStack, startFeatureStack, things } from "../support/feature/feature-service.js";
import { requestH2 } from "../support/requests.js";
import { transports } from "./harness.js";

const prefix = "type.googleapis.com/arbor.test.feature.";
const read: readonly { body: string; member: string; reason: string }[] = [
  {
    body: '{"choiceString":"a","choiceDetail":null,"choiceColor":null,"choiceWrapper":null}',
    member: '"choiceString":"a"',
    reason: "null for the other members of a oneof",
  },
  {
    body: `{"empty":{"nope":1},"stringWrapper":"x","any":{"@type":"${prefix}TouchRequest","nope":{"a":1}}}`,
    member: '"stringWrapper":"x"',
    reason: "unknown fields in Empty and Any",
  },
  { body: '{"fieldMask":"a_b,cD"}', member: '"fieldMask":"aB,cD"', reason: "either spelling of masks" },
];
const rejected: readonly { body: string; field: string; reason: string }[] = [
  { body: '{"timestamp":"2024-02-30T00:00:00Z"}', field: "timestamp", reason: "30 February" },
  { body: '{"timestamp":"2024-02-29T24:00:00Z"}', field: "timestamp", reason: "24:00" },
  { body: '{"int64Value":9007199254740993}', field: "int64Value", reason: "a number beyond 2^53" },
  { body: '{"longs":[1,9007199254740993]}', field: "longs[1]", reason: "a number beyond 2^53 in a list" },
  {
    body: `{"any":{"@type":"${prefix}Thing","size":9007199254740993}}`,
    field: "any.size",
    reason: "a number beyond 2^53 in an Any",
  },
  { body: '{"optionalColor":"NO_SUCH"}', field: "optionalColor", reason: "a name that an enum does not have" },
  { body: '{"duration":"1 hour"}', field: "duration", reason: "a duration in words" },
  { body: `{"int64Value":"${"9".repeat(9_000)}"}`, field: "int64Value", reason: "more digits than can be counted" },
  { body: '{"stringWrapper":"\\u0000"}', field: "stringWrapper", reason: "U+0000" },
  { body: '{"stringWrapper":"a","string_wrapper":"a"}', field: "stringWrapper", reason: "one field in two spellings" },
];

interface Echo {
  echo(request: object): Promise<object>;
}

interface Streams {
  watch(request: object): AsyncIterable<{ readonly uid: string }>;
}

const INTERNAL = "Internal: the service failed to handle the call";
const RPC = "/arbor.test.feature.FeatureService/Echo";

interface Outcome {
  /** 200, or the HTTP status of the error. */
  readonly status: number;
  readonly text: string;
}

type Send = (stack: FeatureStack, body: string) => Promise<Outcome>;

const post = async (stack: FeatureStack, path: string, type: string, body: string | Buffer) =>
  requestH2(stack.port, { method: "POST", path, headers: { "content-type": type }, body });

function wrapInEnvelope(text: string): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([prefix, Buffer.from(text)]);
}

const protocols: Readonly<Record<string, Send>> = {
  REST: (stack, body) => post(stack, "/feature/v1/echo", "application/json", body),
  Connect: (stack, body) => post(stack, RPC, "application/json", body),
  "gRPC-Web": async (stack, body) => {
    const { text } = await post(stack, RPC, "application/grpc-web+json", wrapInEnvelope(body));
    return { status: text.includes("grpc-status: 3\r\n") ? 400 : 200, text };
  },
};

describe("values over every protocol", () => {
  let stack: FeatureStack;
  before(async () => {
    stack = await startFeatureStack();
  });
  after(() => stack.stop());

  for (const [protocol, send] of Object.entries(protocols)) {
    for (const { body, member, reason } of read) {
      test(`${protocol} reads ${reason}`, async () => {
        let given: object | undefined;
        stack.echo = (request) => {
          given = request;
          return { ...request, any: undefined };
        };
        const { status, text } = await send(stack, body);
        assert.equal(status, 200, text);
        assert.ok(given !== undefined && text.includes(member), text);
      });
    }
    for (const { body, field, reason } of rejected) {
      test(`${protocol} rejects ${reason}`, async () => {
        stack.echo = () => assert.fail("the handler must not be called");
        const { status, text } = await send(stack, body);
        assert.equal(status, 400, text);
        assert.ok(text.includes(`${field}: ${field} `), text);
      });
    }
  }

  for (const [query, status] of [
    ["timestamp=2024-02-29T23:59:59Z", 200],
    ["timestamp=2023-02-29T00:00:00Z", 400],
    ["timestamp=2024-02-30T00:00:00Z", 400],
    ["timestamp=2024-04-31T00:00:00%2B02:00", 400],
    ["timestamp=2024-02-29T24:00:00Z", 400],
    ["duration=1second", 400],
    ["duration=1.5s", 200],
  ] as const) {
    test(`a query with ${query} is ${status}`, async () => {
      const response = await requestH2(stack.port, { path: `/feature/v1/search?${query}` });
      assert.equal(response.status, status, response.text);
    });
  }

  const values: readonly { value: object; reason: string }[] = [
    { value: { stringWrapper: "\ud800" }, reason: "half a surrogate pair" },
    { value: { optionalInt32: Number.NaN }, reason: "NaN for an integer" },
    { value: { optionalInt32: 2 ** 31 }, reason: "an integer out of range" },
    { value: { struct: { a: Number.NaN } }, reason: "NaN in a Struct" },
    { value: { timestamp: new Date() }, reason: "a Date for a timestamp" },
  ];
  for (const { value, reason } of values) {
    test(`REST answers INTERNAL for ${reason}`, async () => {
      stack.echo = () => value;
      const { status, text } = await post(stack, "/feature/v1/echo", "application/json", "{}");
      assert.equal(status, 500);
      assert.ok(text.startsWith(`{"code":13,"message":"${INTERNAL}"`), text);
    });
    for (const [index, [protocol]] of transports("http://unused").entries()) {
      test(`${protocol} answers INTERNAL for ${reason}`, async () => {
        stack.echo = () => value;
        const transport = transports(stack.url)[index];
        assert.ok(transport);
        const client = createClient(featureService("FeatureService"), transport[1]) as unknown as Echo;
        const error = await client.echo({}).then(
          (response) => assert.fail(JSON.stringify(response)),
          (thrown: unknown) => ConnectError.from(thrown),
        );
        assert.deepEqual([error.code, error.rawMessage], [Code.Internal, INTERNAL]);
      });
    }
  }

  for (const [index, [protocol]] of transports("http://unused").entries()) {
    test(`${protocol}: a stream ends with INTERNAL where the next value cannot be written`, async () => {
      stack.watch = async function* (request) {
        yield* things(request);
        yield { uid: "\ud800" };
      };
      const transport = transports(stack.url)[index];
      assert.ok(transport);
      const client = createClient(featureService("StreamService"), transport[1]) as unknown as Streams;
      const seen: string[] = [];
      const read = async () => {
        for await (const { uid } of client.watch({ uid: "a", count: 1 })) seen.push(uid);
      };
      await assert.rejects(read, { code: Code.Internal, rawMessage: INTERNAL });
      assert.deepEqual(seen, ["a1"]);
    });
  }
});
