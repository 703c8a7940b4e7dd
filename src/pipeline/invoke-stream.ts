// The pipeline of methods that answer with a stream. What decides whether a call
// may be made at all is read in one unit of work; the stream itself, which may
// last for days, runs outside any transaction.
import type { Message } from "@bufbuild/protobuf";
import { ApiError, connectErrorFrom, deadlineExceeded } from "../kernel/errors.js";
import { authorize, maskNotFound } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";
import { type Call, MAX_CALL_MS } from "./call.js";
import { watchEnd } from "./call-end.js";
import type { InvokeDeps } from "./invoke.js";
import type { StreamEntry } from "./method-table.js";
import { createProve } from "./prove.js";
import { requiredFieldsOf } from "./required-fields.js";
import { requireText } from "./text-fields.js";

/**
 * Runs a method that streams its answers, one by one as they are asked for. The request must be of
 * the method's input type; the answers are what the handler made, init objects or messages of the
 * output type.
 *
 * The stream ends when the handler's does, when the caller goes away, or when the time the caller
 * allowed is up. The handler is not waited for in the last two cases: its iterator is returned, and
 * `call.signal` tells it so.
 *
 * @throws ConnectError always, with ErrorInfo, whatever went wrong.
 */
export type InvokeStream = (method: StreamEntry, call: Call, request: Message) => AsyncGenerator<object, void, void>;

/** Creates the pipeline of streams. */
export function createInvokeStream(deps: InvokeDeps): InvokeStream {
  const { store, clock, errorDomain } = deps;
  const prove = createProve(deps.authenticate);

  return async function* invokeStream(method, call, request) {
    const end = watchEnd(call, clock);
    let release: (() => void) | undefined;
    try {
      const caller = await end.or(() => admit(method, call, request));
      call.enterStream(caller, end.signal);
      try {
        const messages = method.handler(request, call)[Symbol.asyncIterator]();
        const ask = async () => messages.next();
        release = () => leave(messages, call);
        for (;;) {
          const next = await end.or(ask);
          if (next.done === true) break;
          yield next.value;
        }
        release = undefined;
      } catch (error) {
        throw method.auth.mode === "guarded" && caller ? maskNotFound(caller, error, method.auth, request) : error;
      }
    } catch (error) {
      const seen = connectErrorFrom(error, errorDomain);
      if (!(error instanceof ApiError || error === end.signal.reason)) deps.onInternalError(seen, call);
      throw seen;
    } finally {
      end.close();
      release?.();
    }
  };

  async function admit(method: StreamEntry, call: Call, request: Message): Promise<Caller | undefined> {
    const { auth } = method;
    call.principal ??= await prove(method, call.inbound.header("authorization"));
    requireText(method.desc.input, request);
    // The time a stream may last is not the time a database may take.
    const deadlineMs = Math.min(call.deadlineMs, call.startMs + MAX_CALL_MS);
    return store.read(
      async (tx) => {
        if (clock() > deadlineMs) throw deadlineExceeded();
        const caller = auth.mode === "guarded" ? await authorize(auth, call.principal, request, tx) : undefined;
        requiredFieldsOf(method.desc.input)(request);
        return caller;
      },
      { deadlineMs },
    );
  }

  // Not waited for: a handler that is stuck must not hold up the end of its own call.
  function leave(messages: AsyncIterator<object>, call: Call): void {
    const cleanUp = async () => messages.return?.();
    cleanUp().catch((error) => deps.onInternalError(connectErrorFrom(error, errorDomain), call));
  }
}
