// The pipeline of methods that stream their responses. One unit of work authorizes
// the call; the stream itself, which may last for days, runs outside any transaction.
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { CALLER_GONE, connectErrorFrom, deadlineExceeded } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import type { Clock } from "../kernel/time.js";
import { authorize, maskNotFound } from "./auth/authorize.js";
import type { Caller } from "./auth/caller.js";
import { MAX_CALL_MS, type StreamCall } from "./call.js";
import { answerCallError, type InvokeDeps } from "./invoke.js";
import type { StreamEntry } from "./method-table.js";
import { assertNoNul, assertRequiredFields } from "./validate-request.js";

/**
 * Runs a method that streams its responses, each when it is read. The request must be of the method's input type;
 * the responses are those of the handler, init objects or messages of the output type.
 *
 * The stream ends with the handler's, when the caller disconnects, or at the deadline. In the last two cases the
 * handler is not awaited: its iterator is returned and `call.signal` aborts.
 *
 * @param principal the caller as the transport authenticated it; undefined for methods that need none
 * @throws ConnectError always, with ErrorInfo, whatever went wrong.
 */
export type InvokeStream = (
  method: StreamEntry,
  call: StreamCall,
  principal: Principal | undefined,
  request: Message,
) => AsyncGenerator<object, void, void>;

/** Creates the pipeline of streams. */
export function createInvokeStream(deps: InvokeDeps): InvokeStream {
  const { store, clock, errorDomain } = deps;

  return async function* invokeStream(method, call, principal, request) {
    const end = watchEnd(call, clock);
    let release: (() => void) | undefined;
    try {
      const caller = await end.or(() => authorizeCall(method, call, principal, request));
      call.begin(caller, end.signal);
      try {
        const messages = method.handler(request, call)[Symbol.asyncIterator]();
        const readNext = async () => messages.next();
        release = () => returnMessages(messages, call);
        for (;;) {
          const next = await end.or(readNext);
          if (next.done === true) break;
          yield next.value;
        }
        release = undefined;
      } catch (error) {
        throw method.auth.mode === "guarded" && caller ? maskNotFound(caller, error, method.auth, request) : error;
      }
    } catch (error) {
      throw answerCallError(error, method.desc, call, deps);
    } finally {
      end.close();
      release?.();
    }
  };

  async function authorizeCall(
    method: StreamEntry,
    call: StreamCall,
    principal: Principal | undefined,
    request: Message,
  ): Promise<Caller | undefined> {
    const { auth } = method;
    assertNoNul(method.desc.input, request);
    // The time a stream may last is not the time a database may take.
    const deadlineMs = Math.min(call.deadlineMs, call.startMs + MAX_CALL_MS);
    return store.read(
      async (tx) => {
        if (clock() > deadlineMs) throw deadlineExceeded();
        const caller = auth.mode === "guarded" ? await authorize(auth, principal, request, tx) : undefined;
        assertRequiredFields(method.desc.input, request);
        return caller;
      },
      { deadlineMs },
    );
  }

  // Not awaited: a handler that never settles must not delay the end of its call.
  function returnMessages(messages: AsyncIterator<object>, call: StreamCall): void {
    const cleanUp = async () => messages.return?.();
    cleanUp().catch((error) => deps.onInternalError(connectErrorFrom(error, errorDomain), call));
  }
}

// Timers hold 31 bits of milliseconds and fire at once beyond them.
const LONGEST_TIMER_MS = 2_147_483_647;

/** The end of a call that comes from outside: see {@link watchEnd}. */
export interface CallEnd {
  /** Fires at that end with what ended it as its reason, and at {@link close}. */
  readonly signal: AbortSignal;

  /**
   * What `work` resolves to, or a rejection with the reason as soon as the call ends before it; does
   * not begin after the end. One at a time.
   */
  or<T>(work: () => Promise<T>): Promise<T>;

  /** Stops watching. */
  close(): void;
}

/**
 * Watches for the caller to go away ({@link CALLER_GONE}) and for the time
 * it allowed to be up (ApiError DEADLINE_EXCEEDED).
 */
export function watchEnd(call: StreamCall, clock: Clock): CallEnd {
  const controller = new AbortController();
  const { signal } = controller;
  const gone = call.inbound.signal?.();
  let timer: NodeJS.Timeout | undefined;
  let interrupt: ((reason: Error) => void) | undefined;

  function end(reason: Error): void {
    controller.abort(reason);
    interrupt?.(reason);
    close();
  }

  // A front end that keeps time itself may find out first.
  function onGone(): void {
    const late = ConnectError.from(gone?.reason).code === Code.DeadlineExceeded;
    end(late ? deadlineExceeded() : CALLER_GONE);
  }

  // Asks the clock again when the timer fires: timers end early, and clocks are set.
  function arm(): void {
    const leftMs = call.deadlineMs - clock();
    if (leftMs < 0) end(deadlineExceeded());
    else timer = setTimeout(arm, Math.min(Math.ceil(leftMs), LONGEST_TIMER_MS));
  }

  function close(): void {
    clearTimeout(timer);
    gone?.removeEventListener("abort", onGone);
    controller.abort();
  }

  if (gone?.aborted) onGone();
  else gone?.addEventListener("abort", onGone, { once: true });
  if (!signal.aborted && call.deadlineMs !== Number.POSITIVE_INFINITY) arm();

  return {
    signal,
    close,
    or(work) {
      if (signal.aborted) return Promise.reject(signal.reason);
      return new Promise((resolve, reject) => {
        // Not Promise.race, which would keep something of every answer until the call is over.
        interrupt = reject;
        work().then(resolve, reject);
      });
    },
  };
}
