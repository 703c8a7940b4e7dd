// What the kinds of pipeline share: what they are made of, and how a call fails.
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { answerError, rejectReasonOf } from "../kernel/errors.js";
import type { Clock } from "../kernel/time.js";
import type { Store } from "../store/port.js";
import type { CallContext } from "./call.js";
import { withFieldSpelling } from "./field-names.js";

/** What the pipeline needs of the rest of the service. */
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

/** What a call that fails answers: an error with the names that its caller has for fields, reported if it is internal. */
export function answerCallError(
  error: unknown,
  { input }: DescMethod,
  call: CallContext,
  { errorDomain, onInternalError }: Pick<InvokeDeps, "errorDomain" | "onInternalError">,
): ConnectError {
  const spelled = withFieldSpelling(error, input, call.inbound.fieldSpelling);
  const answer = answerError(spelled, errorDomain, (internal) => onInternalError(internal, call));
  call.inbound.record?.setFailure(answer.code, rejectReasonOf(error));
  return answer;
}
