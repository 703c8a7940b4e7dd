// The pipeline of methods that stream their responses. One unit of work authorizes
// the call; the stream itself, which may last for days, runs outside any transaction.
import type { Message } from "@bufbuild/protobuf";
import { connectErrorFrom, deadlineExceeded, permissionDenied } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import { authorize, formatCapabilities, maskNotFound } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";
import { MAX_CALL_MS, type StreamCall } from "./call.js";
import { type CallEnd, watchEnd } from "./call-end.js";
import { authorizeMounted, toMountedError } from "./invoke-mounted.js";
import type { InputStreamEntry, StreamEntry } from "./method-table.js";
import { type InvokeDeps, readTraced, toCallError } from "./unit-of-work.js";
import { assertNoNul, assertRequiredFields } from "./validate-request.js";

/**
 * Runs a method that streams its responses, each when it is read. The request must be of the method's input type, or a
 * stream of such for a method that takes one; the responses are those of the handler, init objects or messages of the
 * output type.
 *
 * The stream ends with the handler's, when the caller disconnects, or at the deadline. In the last two cases the
 * handler is not awaited: its iterator is returned and `call.signal` aborts.
 *
 * @param principal the caller as the transport authenticated it; undefined for methods that need none
 * @throws ConnectError always, with ErrorInfo, whatever went wrong.
 */
export type InvokeStream = (
  method: StreamEntry | InputStreamEntry,
  call: StreamCall,
  principal: Principal | undefined,
  request: Message | AsyncIterable<Message>,
) => AsyncGenerator<object, void, void>;

export function createInvokeStream(deps: InvokeDeps): InvokeStream {
  const { store, clock, errorDomain } = deps;

  return async function* invokeStream(method, call, principal, request) {
    const end = watchEnd(call, clock, deps.stopping);
    let release: (() => void) | undefined;
    try {
      const caller = await end.race(() => authorizeCall(method, call, principal, request));
      call.begin(caller, principal, end.signal);
      endWithRights(end, method, caller, request);
      try {
        // Front ends make sure that the request is what the method takes.
        const messages = method.handler(request as never, call)[Symbol.asyncIterator]();
        const readNext = async () => messages.next();
        release = () => returnMessages(messages, call);
        for (;;) {
          const next = await end.race(readNext);
          if (next.done === true) break;
          yield next.value;
        }
        release = undefined;
      } catch (error) {
        if (method.mounted) throw toMountedError(error, end, call, deps);
        throw method.auth.mode === "guarded" && caller
          ? maskNotFound(caller, error, method.auth, request as Message)
          : error;
      }
    } catch (error) {
      throw toCallError(error, method.desc, call, deps);
    } finally {
      end.close();
      release?.();
    }
  };

  // The handlers of mounted methods do not look again at the rights of their callers.
  function endWithRights(
    end: CallEnd,
    { auth, mounted }: StreamEntry | InputStreamEntry,
    caller: Caller | undefined,
    request: Message | AsyncIterable<Message>,
  ): void {
    if (mounted === undefined || auth.mode !== "guarded" || auth.scope === undefined || caller === undefined) return;
    const scope = auth.scope.of(request as Message);
    const endMs = caller.endOf(auth.capabilities, scope);
    if (endMs !== null) end.endAt(endMs, permissionDenied(`${formatCapabilities(auth.capabilities)} at ${scope}`));
  }

  async function authorizeCall(
    method: StreamEntry | InputStreamEntry,
    call: StreamCall,
    principal: Principal | undefined,
    given: Message | AsyncIterable<Message>,
  ): Promise<Caller | undefined> {
    const { auth } = method;
    // Only mounted methods take a stream, and their authorization reads no request.
    const request = given as Message;
    if (method.mounted) return authorizeMounted(deps, method, call, principal, request);
    assertNoNul(method.desc.input, request);
    // A stream may last longer than a transaction may.
    const deadlineMs = Math.min(call.deadlineMs, call.startMs + MAX_CALL_MS);
    return readTraced(store, call, deadlineMs, async (tx) => {
      if (clock() > deadlineMs) throw deadlineExceeded();
      const caller = auth.mode === "guarded" ? await authorize(auth, principal, request, tx) : undefined;
      assertRequiredFields(method.desc.input, request);
      return caller;
    });
  }

  // Not awaited: a handler that never settles must not delay the end of its call.
  function returnMessages(messages: AsyncIterator<object>, call: StreamCall): void {
    const cleanUp = async () => messages.return?.();
    cleanUp().catch((error) => deps.onInternalError(connectErrorFrom(error, errorDomain), call));
  }
}
