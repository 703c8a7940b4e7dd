// Counts token exchanges by outcome, for metrics.
import { Code } from "@connectrpc/connect";
import { ApiError } from "../../kernel/errors.js";

/** What was exchanged for an API token. */
export type ExchangeGrant = "token_exchange" | "refresh_token";

/** How an exchange ended. */
export type ExchangeOutcome =
  | "ok"
  | "unauthenticated"
  | "permission_denied"
  | "invalid_argument"
  | "resource_exhausted"
  | "unavailable"
  | "other";

/** How many exchanges ended how. */
export type ExchangeCounts = Readonly<Record<ExchangeGrant, Record<ExchangeOutcome, number>>>;

/** Creates counts of nothing. */
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
  return (error instanceof ApiError && OUTCOMES[error.code]) || "other";
}
