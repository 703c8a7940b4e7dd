// The google.rpc details of the service's errors (docs/api-rules.md#errors). The functions accept any caught value; one
// that is no RPC error has no details.
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import {
  type BadRequest_FieldViolation,
  BadRequestSchema,
  type ErrorInfo,
  ErrorInfoSchema,
  type PreconditionFailure_Violation,
  PreconditionFailureSchema,
  type QuotaFailure_Violation,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "#gen/google/rpc/error_details_pb.js";

/** The reason and domain of an error, for programs to branch on; the message is for people. */
export function errorInfo(error: unknown): ErrorInfo | undefined {
  return detailsOf(error, ErrorInfoSchema)[0];
}

/**
 * The fields of an INVALID_ARGUMENT, each with the rule that it breaks. `field` is the
 * path in the names of the proto, or in those of JSON over Connect in JSON.
 */
export function fieldViolations(error: unknown): BadRequest_FieldViolation[] {
  return detailsOf(error, BadRequestSchema).flatMap((detail) => detail.fieldViolations);
}

/** The violations of a FAILED_PRECONDITION, such as one of type `RESOURCE_NOT_EMPTY`. */
export function preconditionViolations(error: unknown): PreconditionFailure_Violation[] {
  return detailsOf(error, PreconditionFailureSchema).flatMap((detail) => detail.violations);
}

/**
 * The quotas of a RESOURCE_EXHAUSTED. `subject` names the owner of a quota, such as `group:<uid>` for the root group of an
 * organisation. Empty for any other limit; see {@link retryDelayMs}.
 */
export function quotaViolations(error: unknown): QuotaFailure_Violation[] {
  return detailsOf(error, QuotaFailureSchema).flatMap((detail) => detail.violations);
}

/** The delay of the RetryInfo before another attempt, in milliseconds; 0 without one. */
export function retryDelayMs(error: unknown): number {
  const delay = detailsOf(error, RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? 0 : Math.max(0, durationMs(delay));
}

function detailsOf<D extends DescMessage>(error: unknown, desc: D): MessageShape<D>[] {
  return error instanceof ConnectError ? error.findDetails(desc) : [];
}
