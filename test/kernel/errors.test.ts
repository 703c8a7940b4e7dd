import assert from "node:assert/strict";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "#gen/google/rpc/error_details_pb.js";
import * as errors from "../../src/kernel/errors.js";

const role = { noun: "role binding", type: "iam.chainguard.dev/RoleBinding" };
const domain = "iam.example.org";

interface ErrorCase {
  readonly name: string;
  readonly error: errors.ApiError;
  readonly code: Code;
  readonly reason: string;
  readonly text: string;
  /** The details behind ErrorInfo as JSON, by the short name of their type. */
  readonly details?: Readonly<Record<string, unknown>>;
}

const cases: readonly ErrorCase[] = [
  {
    name: "invalidArgument",
    error: errors.invalidArgument({ field: "name", description: "name must match ^[a-z0-9 ._-]{1,}$" }),
    code: Code.InvalidArgument,
    reason: "INVALID_ARGUMENT",
    text: "Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$",
    details: {
      BadRequest: { fieldViolations: [{ field: "name", description: "name must match ^[a-z0-9 ._-]{1,}$" }] },
    },
  },
  {
    name: "invalidArgument of two fields",
    error: errors.invalidArgument(
      { field: "pageSize", description: "pageSize must not be negative" },
      { field: "skip", description: "skip must not be negative" },
    ),
    code: Code.InvalidArgument,
    reason: "INVALID_ARGUMENT",
    text: "Invalid argument: pageSize: pageSize must not be negative; skip: skip must not be negative",
    details: {
      BadRequest: {
        fieldViolations: [
          { field: "pageSize", description: "pageSize must not be negative" },
          { field: "skip", description: "skip must not be negative" },
        ],
      },
    },
  },
  {
    name: "malformedRequest",
    error: errors.malformedRequest("the body is no JSON"),
    code: Code.InvalidArgument,
    reason: "INVALID_ARGUMENT",
    text: "Invalid argument: the body is no JSON",
  },
  {
    name: "failedPrecondition",
    error: errors.failedPrecondition("RESOURCE_NOT_EMPTY", "cannot delete group with child repos"),
    code: Code.FailedPrecondition,
    reason: "FAILED_PRECONDITION",
    text: "Precondition failed: cannot delete group with child repos",
    details: {
      PreconditionFailure: {
        violations: [{ type: "RESOURCE_NOT_EMPTY", description: "cannot delete group with child repos" }],
      },
    },
  },
  {
    name: "notFound",
    error: errors.notFound(role, "a/b"),
    code: Code.NotFound,
    reason: "NOT_FOUND",
    text: "Not found: role binding: there is no role binding a/b",
    details: { ResourceInfo: { resourceType: role.type, resourceName: "a/b" } },
  },
  {
    name: "notFound of something without a uid",
    error: errors.notFound(role, "", "none matches"),
    code: Code.NotFound,
    reason: "NOT_FOUND",
    text: "Not found: role binding: none matches",
    details: { ResourceInfo: { resourceType: role.type } },
  },
  {
    name: "alreadyExists",
    error: errors.alreadyExists(role, "a/b"),
    code: Code.AlreadyExists,
    reason: "ALREADY_EXISTS",
    text: "Already exists: role binding: a/b",
    details: { ResourceInfo: { resourceType: role.type, resourceName: "a/b" } },
  },
  {
    name: "permissionDenied",
    error: errors.permissionDenied("groups.list at a/b"),
    code: Code.PermissionDenied,
    reason: "PERMISSION_DENIED",
    text: "Permission denied: groups.list at a/b (or it might not exist)",
  },
  {
    name: "unauthenticated",
    error: errors.unauthenticated(),
    code: Code.Unauthenticated,
    reason: "UNAUTHENTICATED",
    text: "Unauthenticated: authorization: a valid bearer token is required",
  },
  {
    name: "unauthenticated says nothing of its cause",
    error: errors.unauthenticated(new Error("expired")),
    code: Code.Unauthenticated,
    reason: "UNAUTHENTICATED",
    text: "Unauthenticated: authorization: a valid bearer token is required",
  },
  {
    name: "resourceExhausted",
    error: errors.resourceExhausted("body: larger than allowed"),
    code: Code.ResourceExhausted,
    reason: "RESOURCE_EXHAUSTED",
    text: "Resource exhausted: body: larger than allowed",
  },
  {
    name: "resourceExhausted until later",
    error: errors.resourceExhausted("asked too often", 61_500),
    code: Code.ResourceExhausted,
    reason: "RESOURCE_EXHAUSTED",
    text: "Resource exhausted: asked too often",
    details: { RetryInfo: { retryDelay: "61.500s" } },
  },
  {
    name: "unavailable",
    error: errors.unavailable("the service is stopping"),
    code: Code.Unavailable,
    reason: "UNAVAILABLE",
    text: "Unavailable: the service is stopping",
  },
  {
    name: "unavailable for a second",
    error: errors.unavailable("another process holds the database", 1_000, new Error("SQLITE_BUSY")),
    code: Code.Unavailable,
    reason: "UNAVAILABLE",
    text: "Unavailable: another process holds the database",
    details: { RetryInfo: { retryDelay: "1s" } },
  },
  {
    name: "unavailable for no time at all",
    error: errors.unavailable("busy", 0),
    code: Code.Unavailable,
    reason: "UNAVAILABLE",
    text: "Unavailable: busy",
    details: { RetryInfo: { retryDelay: "0s" } },
  },
  {
    name: "unavailable for a fraction of a millisecond",
    error: errors.unavailable("busy", 1_499.2),
    code: Code.Unavailable,
    reason: "UNAVAILABLE",
    text: "Unavailable: busy",
    details: { RetryInfo: { retryDelay: "1.500s" } },
  },
  {
    name: "unavailable until a moment that has passed",
    error: errors.unavailable("busy", -1_500),
    code: Code.Unavailable,
    reason: "UNAVAILABLE",
    text: "Unavailable: busy",
    details: { RetryInfo: { retryDelay: "0s" } },
  },
  {
    name: "aborted",
    error: errors.aborted("too many concurrent changes"),
    code: Code.Aborted,
    reason: "ABORTED",
    text: "Aborted: too many concurrent changes",
  },
  {
    name: "deadlineExceeded",
    error: errors.deadlineExceeded(),
    code: Code.DeadlineExceeded,
    reason: "DEADLINE_EXCEEDED",
    text: "Deadline exceeded: the call took longer than allowed",
  },
  {
    name: "unimplemented",
    error: errors.unimplemented("method: no such method"),
    code: Code.Unimplemented,
    reason: "UNIMPLEMENTED",
    text: "Unimplemented: method: no such method",
  },
  {
    name: "noSuchRoute",
    error: errors.noSuchRoute("/nowhere"),
    code: Code.NotFound,
    reason: "NOT_FOUND",
    text: "Not found: path: no such path /nowhere",
  },
  {
    name: "noSuchRoute of a long path",
    error: errors.noSuchRoute(`/${"a".repeat(5_000)}`),
    code: Code.NotFound,
    reason: "NOT_FOUND",
    text: `Not found: path: no such path /${"a".repeat(199)}`,
  },
];

for (const { name, error, code, reason, text, details = {} } of cases) {
  test(`${name}: code, text and details`, () => {
    const seen = errors.connectErrorFrom(error, domain);
    assert.equal(seen.code, code);
    assert.equal(seen.rawMessage, text);
    assert.deepEqual(detailsOf(seen), { ErrorInfo: { reason, domain }, ...details });
    assert.ok(!seen.metadata.keys().next().value, "no metadata");
  });
}

test("ErrorInfo comes first", () => {
  for (const { error } of cases) {
    const [first] = errors.connectErrorFrom(error, domain).details;
    assert.ok(first && "desc" in first && first.desc.typeName === ErrorInfoSchema.typeName);
  }
});

const causes: readonly { name: string; error: errors.ApiError }[] = [
  { name: "unauthenticated", error: errors.unauthenticated("the cause") },
  { name: "unavailable", error: errors.unavailable("busy", undefined, "the cause") },
  { name: "aborted", error: errors.aborted("lost", "the cause") },
];

for (const { name, error } of causes) {
  test(`${name} keeps its cause for the log`, () => {
    assert.equal(errors.connectErrorFrom(error, domain).cause, "the cause");
    assert.ok(!JSON.stringify(detailsOf(errors.connectErrorFrom(error, domain))).includes("cause"));
  });
}

const libraryErrors: readonly { code: Code; reason: string }[] = [
  { code: Code.Canceled, reason: "CANCELLED" },
  { code: Code.Unknown, reason: "INTERNAL" },
  { code: Code.InvalidArgument, reason: "INVALID_ARGUMENT" },
  { code: Code.DeadlineExceeded, reason: "DEADLINE_EXCEEDED" },
  { code: Code.NotFound, reason: "NOT_FOUND" },
  { code: Code.AlreadyExists, reason: "ALREADY_EXISTS" },
  { code: Code.PermissionDenied, reason: "PERMISSION_DENIED" },
  { code: Code.ResourceExhausted, reason: "RESOURCE_EXHAUSTED" },
  { code: Code.FailedPrecondition, reason: "FAILED_PRECONDITION" },
  { code: Code.Aborted, reason: "ABORTED" },
  { code: Code.OutOfRange, reason: "INTERNAL" },
  { code: Code.Unimplemented, reason: "UNIMPLEMENTED" },
  { code: Code.Internal, reason: "INTERNAL" },
  { code: Code.Unavailable, reason: "UNAVAILABLE" },
  { code: Code.DataLoss, reason: "INTERNAL" },
  { code: Code.Unauthenticated, reason: "UNAUTHENTICATED" },
];

for (const { code, reason } of libraryErrors) {
  test(`a library's error of code ${code} keeps code and text and gets an ErrorInfo ${reason}`, () => {
    const seen = errors.connectErrorFrom(new ConnectError("message too large", code, { "x-a": "b" }), domain);
    assert.equal(seen.code, code);
    assert.equal(seen.rawMessage, "message too large");
    assert.equal(seen.metadata.get("x-a"), "b");
    assert.deepEqual(detailsOf(seen), { ErrorInfo: { reason, domain } });
  });
}

test("a library's error keeps its details, behind ErrorInfo", () => {
  const violations = [{ field: "a", description: "b" }];
  const given = new ConnectError("no", Code.InvalidArgument, undefined, [
    { desc: BadRequestSchema, value: { fieldViolations: violations } },
  ]);
  const seen = errors.connectErrorFrom(given, domain);
  assert.deepEqual(detailsOf(seen), {
    ErrorInfo: { reason: "INVALID_ARGUMENT", domain },
    BadRequest: { fieldViolations: violations },
  });
});

test("an error that has an ErrorInfo stays as it is", () => {
  const once = errors.connectErrorFrom(errors.deadlineExceeded(), domain);
  assert.equal(errors.connectErrorFrom(once, "another.domain"), once);
});

const unknown: readonly { thrown: unknown; reason: string }[] = [
  { thrown: new Error("SELECT * FROM keys"), reason: "an error" },
  { thrown: new TypeError("secret"), reason: "a defect" },
  {
    thrown: Object.assign(new Error("SQLITE_CONSTRAINT: groups.uid"), { code: "SQLITE_CONSTRAINT" }),
    reason: "a driver's error",
  },
  { thrown: Object.assign(new Error("x"), { code: Code.NotFound }), reason: "a code of ours on an error that is not" },
  { thrown: "secret", reason: "a string" },
  { thrown: undefined, reason: "nothing" },
  { thrown: null, reason: "null" },
];

for (const { thrown, reason } of unknown) {
  test(`thrown ${reason}: INTERNAL, and the cause stays inside`, () => {
    const seen = errors.connectErrorFrom(thrown, domain);
    assert.equal(seen.code, Code.Internal);
    assert.equal(seen.rawMessage, "Internal: the service failed to handle the call");
    assert.deepEqual(detailsOf(seen), { ErrorInfo: { reason: "INTERNAL", domain } });
    assert.equal(seen.cause, thrown);
  });
}

// Through bytes, as front ends send them: what cannot be encoded fails here.
function detailsOf(error: ConnectError): Record<string, unknown> {
  const known = [ErrorInfoSchema, BadRequestSchema, PreconditionFailureSchema, ResourceInfoSchema, RetryInfoSchema];
  const found: Record<string, unknown> = {};
  for (const desc of known) {
    for (const detail of error.findDetails(desc)) found[desc.name] = toJson(desc, detail);
  }
  assert.equal(Object.keys(found).length, error.details.length, "every detail is of a known type, once");
  return found;
}
