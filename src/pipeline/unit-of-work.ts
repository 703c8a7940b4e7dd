// What the pipelines of unary, streaming and mounted methods share: dependencies, traced reads, and errors of calls.
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { answerError, rejectReasonOf } from "../kernel/errors.js";
import type { Clock } from "../kernel/time.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import type { CallContext } from "./call.js";
import { withFieldSpelling } from "./field-names.js";

export interface InvokeDeps {
  readonly store: Store;
  readonly clock: Clock;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  /** Is called after a call that a pending binding of an organisation authorized. */
  readonly onPendingUsed?: (identityUid: string, rootUid: string) => void;
  /** Aborted when the service begins to stop: streams that have nothing to send end. */
  readonly stopping?: AbortSignal;
  /** Is called with errors whose cause the caller does not learn. */
  readonly onInternalError: (error: ConnectError, call: CallContext) => void;
}

/**
 * Converts the error of a call to what its caller gets, with the caller's names of fields, and reports an internal
 * one.
 */
export function toCallError(
  error: unknown,
  { input }: DescMethod,
  call: CallContext,
  { errorDomain, onInternalError }: Pick<InvokeDeps, "errorDomain" | "onInternalError">,
): ConnectError {
  const spelled = withFieldSpelling(error, input, call.inbound.fieldSpelling);
  const response = answerError(spelled, errorDomain, (internal) => onInternalError(internal, call));
  call.inbound.record?.setFailure(response.code, rejectReasonOf(error));
  return response;
}

export const UNIT_SPAN_NAMES = { read: "read transaction", write: "write transaction" } as const;

/** Reads as {@link Store.read} does, as a part of the trace of a call, if that has one. */
export async function readTraced<T>(
  store: Store,
  call: Pick<CallContext, "trace" | "inbound">,
  deadlineMs: number,
  unit: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { turn } = call.inbound;
  const span = call.trace?.startChild(UNIT_SPAN_NAMES.read);
  try {
    const result = await store.read(unit, { key: turn?.key, maxWaitMs: turn?.maxWaitMs, deadlineMs, trace: span });
    span?.end();
    return result;
  } catch (error) {
    span?.fail(error);
    throw error;
  }
}
