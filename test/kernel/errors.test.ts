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

const role = { displayName: "role binding", type: "iam.chainguard.dev/RoleBinding" };
const domain = "iam.example.org";

const rule = { field: "name", rule: "must match ^[a-z0-9 ._-]{1,}$" };
const pageSize = { field: "pageSize", rule: "must not be negative" };
const either = { field: "parts[1]", subject: "parts", rule: "must have {} or {}", args: ["a", "bC"] };
const sentence = { field: "form", subject: "", rule: "the form {} is too old" };
const written = (...violations: readonly errors.FieldViolation[]) => ({
  BadRequest: {
    fieldViolations: violations.map((one) => ({ field: one.field, description: errors.formatViolation(one) })),
  },
});
const notEmpty = { type: "RESOURCE_NOT_EMPTY", description: "cannot delete group with child repos" };
const resource = { resourceType: role.type, resourceName: "a/b" };
const tokenText = "Unauthenticated: authorization: a valid bearer token is required";
const retryAfter = (retryDelay: string) => ({ RetryInfo: { retryDelay } });

// The name, the error, the name of its code, its text, and the details after ErrorInfo as JSON by the short name of
// their type.
const cases: readonly (readonly [
  name: string,
  error: errors.ApiError,
  code: keyof typeof Code,
  text: string,
  details?: Readonly<Record<string, unknown>>,
])[] = [
  [
    "invalidArgument",
    errors.invalidArgument(rule),
    "InvalidArgument",
    "Invalid argument: name: name must match ^[a-z0-9 ._-]{1,}$",
    { BadRequest: { fieldViolations: [{ field: "name", description: "name must match ^[a-z0-9 ._-]{1,}$" }] } },
  ],
  [
    "invalidArgument of two fields",
    errors.invalidArgument(pageSize, either, sentence),
    "InvalidArgument",
    "Invalid argument: pageSize: pageSize must not be negative; parts[1]: parts must have a or bC; form: the form {} is too old",
    written(pageSize, either, sentence),
  ],
  [
    "malformedRequest",
    errors.invalidRequest("the body is no JSON"),
    "InvalidArgument",
    "Invalid argument: the body is no JSON",
  ],
  [
    "failedPrecondition",
    errors.failedPrecondition(notEmpty.type, notEmpty.description),
    "FailedPrecondition",
    "Precondition failed: cannot delete group with child repos",
    { PreconditionFailure: { violations: [notEmpty] } },
  ],
  [
    "notFound",
    errors.notFound(role, "a/b"),
    "NotFound",
    "Not found: role binding: there is no role binding a/b",
    { ResourceInfo: resource },
  ],
  [
    "notFound of something without a uid",
    errors.notFound(role, "", "none matches"),
    "NotFound",
    "Not found: role binding: none matches",
    { ResourceInfo: { resourceType: role.type } },
  ],
  [
    "alreadyExists",
    errors.alreadyExists(role, "a/b"),
    "AlreadyExists",
    "Already exists: role binding: a/b",
    { ResourceInfo: resource },
  ],
  [
    "permissionDenied",
    errors.permissionDenied("groups.list at a/b"),
    "PermissionDenied",
    "Permission denied: groups.list at a/b (or it might not exist)",
  ],
  ["unauthenticated", errors.unauthenticated(), "Unauthenticated", tokenText],
  ["unauthenticated with a cause", errors.unauthenticated(new Error("expired")), "Unauthenticated", tokenText],
  [
    "resourceExhausted",
    errors.resourceExhausted("body: larger than allowed"),
    "ResourceExhausted",
    "Resource exhausted: body: larger than allowed",
  ],
  [
    "resourceExhausted with a retry time",
    errors.resourceExhausted("asked too often", 61_500),
    "ResourceExhausted",
    "Resource exhausted: asked too often",
    retryAfter("61.500s"),
  ],
  ["unavailable", errors.unavailable("the service is stopping"), "Unavailable", "Unavailable: the service is stopping"],
  [
    "unavailable for a second",
    errors.unavailable("another process holds the database", 1_000, new Error("SQLITE_BUSY")),
    "Unavailable",
    "Unavailable: another process holds the database",
    retryAfter("1s"),
  ],
  ["unavailable for 0 ms", errors.unavailable("busy", 0), "Unavailable", "Unavailable: busy", retryAfter("0s")],
  [
    "unavailable for a fraction of a millisecond",
    errors.unavailable("busy", 1_499.2),
    "Unavailable",
    "Unavailable: busy",
    retryAfter("1.500s"),
  ],
  [
    "unavailable until a time in the past",
    errors.unavailable("busy", -1_500),
    "Unavailable",
    "Unavailable: busy",
    retryAfter("0s"),
  ],
  ["aborted", errors.aborted("too many concurrent changes"), "Aborted", "Aborted: too many concurrent changes"],
  [
    "deadlineExceeded",
    errors.deadlineExceeded(),
    "DeadlineExceeded",
    "Deadline exceeded: the call took longer than allowed",
  ],
  [
    "unimplemented",
    errors.unimplemented("method: no such method"),
    "Unimplemented",
    "Unimplemented: method: no such method",
  ],
  ["noSuchRoute", errors.noSuchRoute("/nowhere"), "NotFound", "Not found: path: no such path /nowhere"],
  [
    "noSuchRoute of a long path",
    errors.noSuchRoute(`/${"a".repeat(5_000)}`),
    "NotFound",
    `Not found: path: no such path /${"a".repeat(199)}`,
  ],
];

for (const [name, error, code, text, details = {}] of cases) {
  // The ErrorInfo of each of these has the name of its code in the spelling of google.rpc.Code.
  const reason = code.replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();

  test(`${name}: code, text and details`, () => {
    const converted = errors.connectErrorFrom(error, domain);
    assert.equal(converted.code, Code[code]);
    assert.equal(converted.rawMessage, text);
    assert.deepEqual(detailsOf(converted), { ErrorInfo: { reason, domain }, ...details });
    assert.ok(!converted.metadata.keys().next().value, "no metadata");
  });
}

test("ErrorInfo comes first", () => {
  for (const [, error] of cases) {
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

// INTERNAL for the codes that no error of the API has.
const libraryErrors: readonly (readonly [code: keyof typeof Code, reason: string])[] = [
  ["Canceled", "CANCELLED"],
  ["Unknown", "INTERNAL"],
  ["InvalidArgument", "INVALID_ARGUMENT"],
  ["DeadlineExceeded", "DEADLINE_EXCEEDED"],
  ["NotFound", "NOT_FOUND"],
  ["AlreadyExists", "ALREADY_EXISTS"],
  ["PermissionDenied", "PERMISSION_DENIED"],
  ["ResourceExhausted", "RESOURCE_EXHAUSTED"],
  ["FailedPrecondition", "FAILED_PRECONDITION"],
  ["Aborted", "ABORTED"],
  ["OutOfRange", "INTERNAL"],
  ["Unimplemented", "UNIMPLEMENTED"],
  ["Internal", "INTERNAL"],
  ["Unavailable", "UNAVAILABLE"],
  ["DataLoss", "INTERNAL"],
  ["Unauthenticated", "UNAUTHENTICATED"],
];

for (const [code, reason] of libraryErrors) {
  test(`a library's error with code ${code} keeps code and text and gets an ErrorInfo ${reason}`, () => {
    const converted = errors.connectErrorFrom(
      new ConnectError("message too large", Code[code], { "x-a": "b" }),
      domain,
    );
    assert.equal(converted.code, Code[code]);
    assert.equal(converted.rawMessage, "message too large");
    assert.equal(converted.metadata.get("x-a"), "b");
    assert.deepEqual(detailsOf(converted), { ErrorInfo: { reason, domain } });
  });
}

test("a library's error keeps its details after ErrorInfo", () => {
  const violations = [{ field: "a", description: "b" }];
  const given = new ConnectError("no", Code.InvalidArgument, undefined, [
    { desc: BadRequestSchema, value: { fieldViolations: violations } },
  ]);
  const converted = errors.connectErrorFrom(given, domain);
  assert.deepEqual(detailsOf(converted), {
    ErrorInfo: { reason: "INVALID_ARGUMENT", domain },
    BadRequest: { fieldViolations: violations },
  });
});

test("an error with an ErrorInfo is not changed", () => {
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
  {
    thrown: Object.assign(new Error("x"), { code: Code.NotFound }),
    reason: "an error with a code that is no ApiError",
  },
  { thrown: "secret", reason: "a string" },
  { thrown: undefined, reason: "nothing" },
  { thrown: null, reason: "null" },
];

for (const { thrown, reason } of unknown) {
  test(`thrown ${reason}: INTERNAL without the cause`, () => {
    const converted = errors.connectErrorFrom(thrown, domain);
    assert.equal(converted.code, Code.Internal);
    assert.equal(converted.rawMessage, "Internal: the service failed to handle the call");
    assert.deepEqual(detailsOf(converted), { ErrorInfo: { reason: "INTERNAL", domain } });
    assert.equal(converted.cause, thrown);
  });
}

test("a mounted handler that fails because its caller has gone changes no error of other calls", () => {
  const failed = errors.toForeignError(errors.callerGone(), () => assert.fail("it is no defect"));
  assert.ok(errors.isCallerGone(failed));
  const response = errors.answerError(errors.callerGone(), domain, () => assert.fail("it is no defect"));
  assert.deepEqual(detailsOf(response), { ErrorInfo: { reason: "CANCELLED", domain } });
});

// Encoded as the protocols send them, so that a detail that cannot be encoded fails here.
function detailsOf(error: ConnectError): Record<string, unknown> {
  const known = [ErrorInfoSchema, BadRequestSchema, PreconditionFailureSchema, ResourceInfoSchema, RetryInfoSchema];
  const found: Record<string, unknown> = {};
  for (const desc of known) {
    for (const detail of error.findDetails(desc)) found[desc.name] = toJson(desc, detail);
  }
  assert.equal(Object.keys(found).length, error.details.length, "every detail is of a known type, once");
  return found;
}
