import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  HelpSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "#gen/google/rpc/error_details_pb.js";
import { formatError, httpStatusOf, retryAfterOf } from "../../src/codec/error-json.js";
import { createJsonWriters } from "../../src/codec/json-writer.js";
import { createTypeRegistry } from "../../src/codec/type-registry.js";
import * as errors from "../../src/kernel/errors.js";
import { featureMessage } from "../support/feature/feature.js";

const writers = createJsonWriters(createTypeRegistry([])).details;
const textOf = (error: unknown) => formatError(errors.connectErrorFrom(error, "iam.test"), writers);
const info = (reason: string) =>
  `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"${reason}","domain":"iam.test"}`;

const bodies: readonly { error: unknown; text: string; reason: string }[] = [
  {
    error: errors.invalidArgument({ field: "name", rule: "must match ^[a-z0-9 ._-]{1,}$" }),
    text:
      `{"code":3,"message":"Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$","details":[${info("INVALID_ARGUMENT")},` +
      '{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"name","description":' +
      '"name must match ^[a-z0-9 ._-]{1,}$"}]}]}',
    reason: "create a group without a name",
  },
  {
    error: errors.failedPrecondition("RESOURCE_NOT_EMPTY", "cannot delete group with child repos"),
    text:
      `{"code":9,"message":"Precondition failed: cannot delete group with child repos","details":[${info("FAILED_PRECONDITION")},` +
      '{"@type":"type.googleapis.com/google.rpc.PreconditionFailure","violations":[{"type":"RESOURCE_NOT_EMPTY",' +
      '"description":"cannot delete group with child repos"}]}]}',
    reason: "delete a group that has repos",
  },
  {
    error: errors.unavailable("busy", 1500),
    text:
      `{"code":14,"message":"Unavailable: busy","details":[${info("UNAVAILABLE")},` +
      '{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.500s"}]}',
    reason: "a duration among details",
  },
  {
    error: new Error("select * from groups"),
    text: `{"code":13,"message":"Internal: the service failed to handle the call","details":[${info("INTERNAL")}]}`,
    reason: "of anything unexpected nothing is said",
  },
  {
    error: new ConnectError('quote " and ä', Code.DataLoss),
    text: `{"code":15,"message":"quote \\" and ä","details":[${info("INTERNAL")}]}`,
    reason: "an error of a library",
  },
];

for (const { error, text, reason } of bodies) {
  test(`error body: ${reason}`, () => {
    assert.equal(textOf(error), text);
    JSON.parse(text);
  });
}

test("details that came over the wire are unpacked", () => {
  const error = new ConnectError("x", Code.Aborted);
  error.details.push({
    type: "google.rpc.ErrorInfo",
    value: toBinary(ErrorInfoSchema, create(ErrorInfoSchema, { reason: "R" })),
  });
  assert.equal(
    formatError(error, writers),
    '{"code":10,"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"R"}]}',
  );
});

test("no detail is lost: what cannot be read is sent as base64", () => {
  const error = new ConnectError("x", Code.Aborted);
  error.details.push({ type: "no.Such", value: new Uint8Array([1, 2]) });
  error.details.push({ type: "google.rpc.ErrorInfo", value: new Uint8Array([255]) });
  assert.equal(
    formatError(error, writers),
    '{"code":10,"message":"x","details":[{"@type":"type.googleapis.com/no.Such","value":"AQI="},' +
      '{"@type":"type.googleapis.com/google.rpc.ErrorInfo","value":"/w=="}]}',
  );
});

test("no error is lost: a detail that cannot be written at all leaves its type", () => {
  const broken = {
    desc: BadRequestSchema,
    value: { fieldViolations: 5 },
  } as unknown as ConnectError["details"][number];
  const error = new ConnectError("x", Code.Aborted, undefined, [{ desc: ErrorInfoSchema, value: { reason: "R" } }]);
  error.details.push(broken);
  const parsed = JSON.parse(formatError(error, writers)) as { details: object[] };
  assert.equal(parsed.details.length, 2);
  assert.deepEqual(parsed.details[0], { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "R" });
});

test("details of any type a handler knows are written", () => {
  const error = new ConnectError("x", Code.ResourceExhausted, undefined, [
    { desc: HelpSchema, value: { links: [{ url: "https://x" }] } },
    { desc: QuotaFailureSchema, value: {} },
    { desc: featureMessage("Detail"), value: { title: "t" } },
  ]);
  assert.equal(
    formatError(error, writers),
    '{"code":8,"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.Help","links":[{"url":"https://x"}]},' +
      '{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},' +
      '{"@type":"type.googleapis.com/arbor.test.feature.Detail","title":"t"}]}',
  );
});

const statuses: readonly [code: number, status: number][] = [
  [1, 499],
  [2, 500],
  [3, 400],
  [4, 504],
  [5, 404],
  [6, 409],
  [7, 403],
  [8, 429],
  [9, 400],
  [10, 409],
  [11, 400],
  [12, 501],
  [13, 500],
  [14, 503],
  [15, 500],
  [16, 401],
  [17, 500],
  [0, 500],
];

for (const [code, status] of statuses) {
  test(`code ${code} is HTTP ${status}`, () => assert.equal(httpStatusOf(code), status));
}

const delays: readonly { seconds: bigint; nanos: number; code: Code; after: number | undefined }[] = [
  { seconds: 2n, nanos: 0, code: Code.Unavailable, after: 2 },
  { seconds: 1n, nanos: 1, code: Code.ResourceExhausted, after: 2 },
  { seconds: 0n, nanos: 0, code: Code.Unavailable, after: 0 },
  { seconds: 2n, nanos: 0, code: Code.Aborted, after: undefined },
];

for (const { seconds, nanos, code, after } of delays) {
  test(`RetryInfo of ${seconds}.${nanos} s with code ${code}: Retry-After ${after}`, () => {
    const detail = { desc: RetryInfoSchema, value: { retryDelay: { seconds, nanos } } };
    assert.equal(retryAfterOf(new ConnectError("x", code, undefined, [detail])), after);
  });
}
