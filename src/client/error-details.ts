// Finds the google.rpc details that the service puts on its errors (spec
// section 7). All take any caught value, so that they can be called straight
// from a catch clause, and answer "nothing" for what is not an RPC error.
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
 * The fields that an INVALID_ARGUMENT complains about, each with the rule it breaks. `field` is the
 * camelCase JSON path, the same on every protocol.
 */
export function fieldViolations(error: unknown): BadRequest_FieldViolation[] {
  return detailsOf(error, BadRequestSchema).flatMap((detail) => detail.fieldViolations);
}

/** What stands in the way of a FAILED_PRECONDITION, such as a violation of type `RESOURCE_NOT_EMPTY`. */
export function preconditionViolations(error: unknown): PreconditionFailure_Violation[] {
  return detailsOf(error, PreconditionFailureSchema).flatMap((detail) => detail.violations);
}

/**
 * The quotas that a RESOURCE_EXHAUSTED is about: `subject` is whose, such as `group:<uid>` of an
 * organisation's root group. Empty where another limit was reached; see {@link retryDelayMs}.
 */
export function quotaViolations(error: unknown): QuotaFailure_Violation[] {
  return detailsOf(error, QuotaFailureSchema).flatMap((detail) => detail.violations);
}

/** How long the service asks to wait before another try (RetryInfo), in milliseconds; 0 when it does not say. */
export function retryDelayMs(error: unknown): number {
  const delay = detailsOf(error, RetryInfoSchema)[0]?.retryDelay;
  return delay === undefined ? 0 : Math.max(0, durationMs(delay));
}

function detailsOf<D extends DescMessage>(error: unknown, desc: D): MessageShape<D>[] {
  return error instanceof ConnectError ? error.findDetails(desc) : [];
}
