// All errors that callers can see (docs/api-rules.md#errors). One constructor per case has the code, the text and the
// details, so that each text exists once. `connectErrorFrom` converts them; unknown errors become INTERNAL without
// their cause.
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "#gen/google/rpc/error_details_pb.js";
import type { RejectReason } from "./reject-reason.js";

type Detail = Extract<ConnectError["details"][number], { desc: unknown }>;

/** The `reason` of the ErrorInfo that every error carries. */
export type ErrorReason =
  | "ABORTED"
  | "ALREADY_EXISTS"
  | "CANCELLED"
  | "DEADLINE_EXCEEDED"
  | "FAILED_PRECONDITION"
  | "INTERNAL"
  | "INVALID_ARGUMENT"
  | "NOT_FOUND"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "UNAUTHENTICATED"
  | "UNAVAILABLE"
  | "UNIMPLEMENTED";

/** A rule that a request breaks. It is data, because versions and formats have different names for fields. */
export interface BrokenRule {
  /**
   * What the sentence begins with: the path of the field in JSON, its last parts, or the path of something within the
   * field. Empty for a sentence that names none.
   */
  readonly subject: string;
  /** The rest of the sentence, without a full stop. Each `{}` in it stands for one of `args`. */
  readonly rule: string;
  /** The paths of other fields that the sentence names. */
  readonly args?: readonly string[];
  /**
   * Whether there is no value, where `rule` does not say so. Then the description of the violation adds that it is
   * required. The message of the error does not, because its text is part of the API.
   */
  readonly isMissing?: boolean;
}

/** A field of a request and the rule that it violates. */
export interface FieldViolation extends Omit<BrokenRule, "subject"> {
  /** The path of the field in JSON. Callers of protocols in binary get it with the names of the proto. */
  readonly field: string;
  /** See {@link BrokenRule}; the field itself unless given. */
  readonly subject?: string;
}

/** Describes a rule that is broken. */
export function breakRule(subject: string, rule: string, ...args: readonly string[]): BrokenRule {
  return args.length === 0 ? { subject, rule } : { subject, rule, args };
}

/** Formats the rule that a violation breaks as a sentence without a full stop. */
export function formatViolation({ field, subject = field, rule, args = [] }: FieldViolation): string {
  let next = 0;
  const text = args.length === 0 ? rule : rule.replaceAll("{}", () => args[next++] ?? "");
  return subject === "" ? text : `${subject} ${text}`;
}

/** An error that callers may see unchanged. */
export class ApiError extends Error {
  readonly code: Code;
  readonly reason: ErrorReason;
  readonly details: readonly Detail[];
  /** Why the request is rejected, for logs and metrics; callers do not learn it. */
  readonly rejection: RejectReason | undefined;
  /** The fields that violate rules, from which text and details are made. */
  readonly violations: readonly FieldViolation[];
  /** The metadata of the ErrorInfo. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(
    code: Code,
    reason: ErrorReason,
    message: string,
    details: readonly Detail[] = [],
    cause?: unknown,
    rejection?: RejectReason,
    violations: readonly FieldViolation[] = [],
    metadata: Readonly<Record<string, string>> = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ApiError";
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.rejection = rejection;
    this.violations = violations;
    this.metadata = metadata;
  }
}

/** Why a request that ended with `error` was rejected, where the error says so. */
export function rejectReasonOf(error: unknown): RejectReason | undefined {
  return error instanceof ApiError ? error.rejection : undefined;
}

let callerGoneError: ConnectError | undefined;

/**
 * The error that ends the work for a caller that disconnected. It is one shared object: a closed connection ends
 * hundreds of calls at once, and creating a stack for each would delay other calls. It is created when it is needed:
 * the first ConnectError of a process makes Node load its `fetch`, for its headers.
 */
export function callerGone(): ConnectError {
  callerGoneError ??= new ConnectError("the caller has gone", Code.Canceled);
  return callerGoneError;
}

export function isCallerGone(error: unknown): boolean {
  return error !== undefined && error === callerGoneError;
}

/** INVALID_ARGUMENT: one or more fields violate a rule. */
export function invalidArgument(...violations: readonly FieldViolation[]): ApiError {
  const text = `Invalid argument: ${formatViolations(violations)}`;
  const details = [describeViolations(violations)];
  return new ApiError(Code.InvalidArgument, "INVALID_ARGUMENT", text, details, undefined, undefined, violations);
}

function formatViolations(violations: readonly FieldViolation[]): string {
  return violations.map((violation) => `${violation.field}: ${formatViolation(violation)}`).join("; ");
}

/**
 * The detail that names fields and rules.
 *
 * @param spell spells the path of a field as the caller does
 */
export function describeViolations(
  violations: readonly FieldViolation[],
  spell: (path: string) => string = (path) => path,
): Detail {
  const fieldViolations = violations.map((violation) => {
    const { field, subject = field, isMissing = false } = violation;
    const text = formatViolation(violation);
    return { field: spell(field), description: isMissing ? `${text}: ${subject} is required` : text };
  });
  return { desc: BadRequestSchema, value: { fieldViolations } };
}

/** The same error about other fields, such as those of another version of the API. */
export function replaceViolations(error: ApiError, violations: readonly FieldViolation[]): ApiError {
  return error.code === Code.PermissionDenied ? notPermittedField(...violations) : invalidArgument(...violations);
}

/** INVALID_ARGUMENT for a request that is malformed as a whole, so that no field can be named. */
export function invalidRequest(rule: string, rejection?: RejectReason): ApiError {
  return new ApiError(Code.InvalidArgument, "INVALID_ARGUMENT", `Invalid argument: ${rule}`, [], undefined, rejection);
}

/** UNAUTHENTICATED: a browser has no session of the console, or its sign-in is not valid. One text for all causes. */
export function noSession(): ApiError {
  const text = "Unauthenticated: this browser has no session: sign in";
  return new ApiError(Code.Unauthenticated, "UNAUTHENTICATED", text, [], undefined, "credential");
}

/** What the state of resources forbids. */
interface Precondition {
  readonly type: string;
  readonly description: string;
}

/** FAILED_PRECONDITION: the state of resources forbids it. `type` is the type of the violation. */
export function failedPrecondition(type: string, description: string): ApiError {
  return failedPreconditions([{ type, description }]);
}

/**
 * FAILED_PRECONDITION with several violations, of which the text has the first.
 *
 * @param metadata that of the ErrorInfo
 */
export function failedPreconditions(
  violations: readonly Precondition[],
  metadata: Readonly<Record<string, string>> = {},
): ApiError {
  const text = `Precondition failed: ${violations[0]?.description}`;
  const details = [{ desc: PreconditionFailureSchema, value: { violations: violations.map((one) => ({ ...one })) } }];
  return new ApiError(
    Code.FailedPrecondition,
    "FAILED_PRECONDITION",
    text,
    details,
    undefined,
    undefined,
    [],
    metadata,
  );
}

/** A kind of resource, as errors name it. */
export interface ResourceKind {
  /** The singular, such as `role binding`. */
  readonly displayName: string;
  /** The published resource type, such as `iam.chainguard.dev/RoleBinding`. */
  readonly type: string;
}

/**
 * NOT_FOUND: for callers who may read the parent; others get {@link permissionDenied}. `rule` describes what was
 * looked up where it is not a uid.
 */
export function notFound(
  { displayName, type }: ResourceKind,
  uid: string,
  rule = `there is no ${displayName} ${uid}`,
): ApiError {
  return new ApiError(Code.NotFound, "NOT_FOUND", `Not found: ${displayName}: ${rule}`, [
    { desc: ResourceInfoSchema, value: { resourceType: type, resourceName: uid } },
  ]);
}

/** ALREADY_EXISTS: the resource exists, and there can be only one. */
export function alreadyExists({ displayName, type }: ResourceKind, uid: string): ApiError {
  return new ApiError(Code.AlreadyExists, "ALREADY_EXISTS", `Already exists: ${displayName}: ${uid}`, [
    { desc: ResourceInfoSchema, value: { resourceType: type, resourceName: uid } },
  ]);
}

/** PERMISSION_DENIED, with one text for forbidden and for missing resources (AIP-211). */
export function permissionDenied(what: string, rejection?: RejectReason): ApiError {
  const text = `Permission denied: ${what} (or it might not exist)`;
  return new ApiError(Code.PermissionDenied, "PERMISSION_DENIED", text, [], undefined, rejection);
}

/**
 * PERMISSION_DENIED where no resource is concerned that might not exist. `rule` describes who may, as a sentence
 * without a full stop.
 */
export function notPermitted(rule: string, rejection?: RejectReason): ApiError {
  const text = `Permission denied: ${rule}`;
  return new ApiError(Code.PermissionDenied, "PERMISSION_DENIED", text, [], undefined, rejection);
}

/** PERMISSION_DENIED: a request names values that callers may not choose. Nothing is hidden, so the text says all. */
export function notPermittedField(...violations: readonly FieldViolation[]): ApiError {
  const text = `Permission denied: ${formatViolations(violations)}`;
  return new ApiError(Code.PermissionDenied, "PERMISSION_DENIED", text, [], undefined, undefined, violations);
}

/**
 * UNAUTHENTICATED: no token, or an invalid one. One text for all causes, so that callers cannot tell them apart.
 *
 * @param rejection which of the causes it is, for logs and metrics; that of `cause` unless given
 */
export function unauthenticated(
  cause?: unknown,
  rejection: RejectReason = rejectReasonOf(cause) ?? "credential",
): ApiError {
  return new ApiError(
    Code.Unauthenticated,
    "UNAUTHENTICATED",
    "Unauthenticated: authorization: a valid bearer token is required",
    [],
    cause,
    rejection,
  );
}

/** UNAUTHENTICATED for a token of this service that was valid and is no longer: its bearer knows which it is. */
export function tokenExpired(): ApiError {
  return new ApiError(
    Code.Unauthenticated,
    "UNAUTHENTICATED",
    "Unauthenticated: authorization: the bearer token has expired",
    [],
    undefined,
    "token_expired",
  );
}

/**
 * RESOURCE_EXHAUSTED: a limit is reached. `retryAfterMs` is when to retry, in milliseconds.
 *
 * @param rejection which limit it is, for logs and metrics
 */
export function resourceExhausted(what: string, retryAfterMs?: number, rejection: RejectReason = "size"): ApiError {
  return new ApiError(
    Code.ResourceExhausted,
    "RESOURCE_EXHAUSTED",
    `Resource exhausted: ${what}`,
    retryInfo(retryAfterMs),
    undefined,
    rejection,
  );
}

/**
 * RESOURCE_EXHAUSTED: a quota is reached. It has no retry time, because waiting does not help.
 *
 * @param subject the owner of the quota, such as `group:<uid of the root group>`
 * @param quota the name of the quota in settings
 * @param rule the limit and the current number, as a sentence without a full stop
 */
export function quotaExceeded(subject: string, quota: string, rule: string): ApiError {
  const text = `Resource exhausted: ${quota}: ${rule}`;
  const details = [{ desc: QuotaFailureSchema, value: { violations: [{ subject, description: rule }] } }];
  return new ApiError(Code.ResourceExhausted, "RESOURCE_EXHAUSTED", text, details, undefined, "quota");
}

/** Whether an error says that a quota is full. */
export function isQuotaExceeded(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === Code.ResourceExhausted && error.rejection === "quota";
}

/**
 * UNAVAILABLE: retry soon. `retryAfterMs` is in milliseconds.
 *
 * @param rejection the limit that is reached, if that is why, for logs and metrics
 */
export function unavailable(what: string, retryAfterMs?: number, cause?: unknown, rejection?: RejectReason): ApiError {
  const details = retryInfo(retryAfterMs);
  return new ApiError(Code.Unavailable, "UNAVAILABLE", `Unavailable: ${what}`, details, cause, rejection);
}

/** UNAVAILABLE: a unit of work has waited for the database for as long as it may. The caller may retry after a second. */
export function databaseBusy(): ApiError {
  return unavailable("the call waited too long for the database, try again", 1_000, undefined, "database");
}

/** UNAVAILABLE: the service has no time for a request, and has not begun it. The caller may retry after a second. */
export function overloaded(rejection: RejectReason): ApiError {
  return unavailable("the service is overloaded, try again", 1_000, undefined, rejection);
}

/** ABORTED: repeated conflicts with concurrent changes. The caller may retry. */
export function aborted(what: string, cause?: unknown): ApiError {
  return new ApiError(Code.Aborted, "ABORTED", `Aborted: ${what}`, [], cause);
}

/** DEADLINE_EXCEEDED: the caller's deadline, or 30 s, has passed. */
export function deadlineExceeded(): ApiError {
  return new ApiError(
    Code.DeadlineExceeded,
    "DEADLINE_EXCEEDED",
    "Deadline exceeded: the call took longer than allowed",
  );
}

/** INTERNAL: the caller broke a rule of the wire protocol, for which gRPC prescribes this code. */
export function protocolError(rule: string): ApiError {
  return new ApiError(Code.Internal, "INTERNAL", `Internal: ${rule}`);
}

/** UNIMPLEMENTED: no such method, route or encoding. */
export function unimplemented(what: string): ApiError {
  return new ApiError(Code.Unimplemented, "UNIMPLEMENTED", `Unimplemented: ${what}`);
}

/** NOT_FOUND for a path that no route serves. */
export function noSuchRoute(path: string): ApiError {
  return new ApiError(Code.NotFound, "NOT_FOUND", `Not found: path: no such path ${path.slice(0, 200)}`);
}

const answered = new WeakSet<ConnectError>();

/**
 * Converts an error of a mounted handler to that of connect's own servers: a `ConnectError` stays as it is,
 * also without ErrorInfo, and anything else becomes `internal error` and is reported. No other layer changes it.
 */
export function toForeignError(error: unknown, onInternal: (response: ConnectError) => void): ConnectError {
  const isResponse = error instanceof ConnectError;
  // Shared by all calls: to remember it for this one would leave those of others without ErrorInfo.
  if (isResponse && isCallerGone(error)) return error;
  const response = isResponse ? error : new ConnectError("internal error", Code.Internal, undefined, undefined, error);
  answered.add(response);
  if (!isResponse) onInternal(response);
  return response;
}

/**
 * Converts an error to what protocols send: with ErrorInfo first, followed by the other details. A `ConnectError` of a
 * library (framing, size, compression) keeps its code and text and gets an ErrorInfo. Anything else becomes INTERNAL,
 * with the cause for the log only.
 */
export function connectErrorFrom(error: unknown, domain: string): ConnectError {
  if (error instanceof ApiError) {
    const { reason, metadata } = error;
    const info: Detail = { desc: ErrorInfoSchema, value: { reason, domain, metadata: { ...metadata } } };
    return new ConnectError(error.message, error.code, undefined, [info, ...error.details], error.cause);
  }
  if (error instanceof ConnectError) {
    if (answered.has(error) || error.findDetails(ErrorInfoSchema).length > 0) return error;
    const reason = REASONS[error.code] ?? "INTERNAL";
    const info: Detail = { desc: ErrorInfoSchema, value: { reason, domain } };
    const completed = new ConnectError(error.rawMessage, error.code, error.metadata, [info], error.cause);
    completed.details.push(...error.details);
    return completed;
  }
  const info: Detail = { desc: ErrorInfoSchema, value: { reason: "INTERNAL", domain } };
  return new ConnectError("Internal: the service failed to handle the call", Code.Internal, undefined, [info], error);
}

/**
 * Converts an error to the one that the caller gets, and reports it if it is internal: neither an {@link ApiError} nor
 * a caller that has disconnected. An error that was converted before is returned as it is, so each layer may call this
 * and none reports twice.
 */
export function answerError(
  error: unknown,
  domain: string,
  onInternal: (response: ConnectError) => void,
): ConnectError {
  if (error instanceof ConnectError && answered.has(error)) return error;
  const response = connectErrorFrom(error, domain);
  answered.add(response);
  if (!(error instanceof ApiError || isCallerGone(error))) onInternal(response);
  return response;
}

function retryInfo(ms: number | undefined): Detail[] {
  if (ms === undefined) return [];
  // Clocks jump: a time in the past means now, and a Duration has whole nanoseconds.
  const wait = Math.max(0, Math.ceil(ms));
  const seconds = BigInt(Math.floor(wait / 1000));
  return [{ desc: RetryInfoSchema, value: { retryDelay: { seconds, nanos: (wait % 1000) * 1_000_000 } } }];
}

const REASONS: Partial<Record<Code, ErrorReason>> = {
  [Code.Aborted]: "ABORTED",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.Canceled]: "CANCELLED",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.NotFound]: "NOT_FOUND",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
};
