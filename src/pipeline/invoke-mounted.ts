// The pipeline of mounted methods. The caller is authorized in a read of its own, unless everybody may call the method;
// the handler runs outside any transaction, until it responds, its caller disconnects or the deadline passes.
import type { Message } from "@bufbuild/protobuf";
import { deadlineExceeded, toForeignError } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import { authorize } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";
import { type CallContext, MAX_CALL_MS, type UnaryCall } from "./call.js";
import { type CallEnd, watchEnd } from "./call-end.js";
import type { MethodEntry, UnaryEntry } from "./method-table.js";
import { type InvokeDeps, readTraced, toCallError } from "./unit-of-work.js";

/**
 * Runs a mounted unary method. A handler that ignores `call.signal` is not awaited after the end of its call.
 *
 * @throws ConnectError as the handler threw it, or with ErrorInfo where the call failed before or outside of it
 */
export async function invokeMounted(
  deps: InvokeDeps,
  method: UnaryEntry,
  call: UnaryCall,
  principal: Principal | undefined,
  request: Message,
): Promise<object> {
  const end = watchEnd(call, deps.clock);
  try {
    const caller = await end.race(() => authorizeMounted(deps, method, call, principal, request));
    call.begin(caller, principal, end.signal);
    try {
      return await end.race(async () => method.handler(request, call));
    } catch (error) {
      throw toMountedError(error, end, call, deps);
    }
  } catch (error) {
    throw toCallError(error, method.desc, call, deps);
  } finally {
    end.close();
  }
}

/**
 * Authorizes the caller of a mounted method. Undefined where everybody may call it; then the store is not read.
 *
 * @param request what the scope is read from; methods that take a stream have no scope
 * @throws ApiError as {@link authorize} does, DEADLINE_EXCEEDED
 */
export async function authorizeMounted(
  { store, clock }: InvokeDeps,
  { auth }: MethodEntry,
  call: CallContext,
  principal: Principal | undefined,
  request: Message,
): Promise<Caller | undefined> {
  // A stream may last longer than a transaction may.
  const deadlineMs = Math.min(call.deadlineMs, call.startMs + MAX_CALL_MS);
  if (clock() >= deadlineMs) throw deadlineExceeded();
  if (auth.mode !== "guarded") return undefined;
  // "write", because for an unscoped method only the identity is needed and not all of its grants.
  return readTraced(store, call, deadlineMs, (tx) => authorize(auth, principal, request, tx, "write"));
}

/** Converts the failure of a mounted method: to the reason why the call ended, otherwise what its handler threw. */
export function toMountedError(
  error: unknown,
  end: CallEnd,
  call: CallContext,
  { onInternalError }: Pick<InvokeDeps, "onInternalError">,
): unknown {
  return end.reason ?? toForeignError(error, (response) => onInternalError(response, call));
}
