// Counts token exchanges by outcome, for metrics.
import { Code } from "@connectrpc/connect";
import { ApiError, rejectReasonOf } from "../kernel/errors.js";

/** What was exchanged for an API token. */
type ExchangeGrant = "token_exchange" | "refresh_token";

/** How an exchange ended. */
type ExchangeOutcome =
  | "ok"
  | "unauthenticated"
  | "permission_denied"
  | "invalid_argument"
  | "resource_exhausted"
  | "unavailable"
  | "other";

export type ExchangeCounts = Readonly<Record<ExchangeGrant, Record<ExchangeOutcome, number>>>;

export function createExchangeCounts(): ExchangeCounts {
  const none = { unauthenticated: 0, permission_denied: 0, invalid_argument: 0 };
  const zero = { ok: 0, ...none, resource_exhausted: 0, unavailable: 0, other: 0 };
  return { token_exchange: { ...zero }, refresh_token: { ...zero } };
}

const OUTCOMES: Partial<Record<Code, ExchangeOutcome>> = {
  [Code.Unauthenticated]: "unauthenticated",
  [Code.PermissionDenied]: "permission_denied",
  [Code.InvalidArgument]: "invalid_argument",
  [Code.ResourceExhausted]: "resource_exhausted",
  [Code.Unavailable]: "unavailable",
  [Code.DeadlineExceeded]: "unavailable",
};

/** The outcome of an exchange that failed. */
export function outcomeOf(error: unknown): ExchangeOutcome {
  // UNAVAILABLE only because tokens with such keys are so many: no issuer fails.
  if (rejectReasonOf(error) === "token_unknown_key") return "unauthenticated";
  return (error instanceof ApiError && OUTCOMES[error.code]) || "other";
}
