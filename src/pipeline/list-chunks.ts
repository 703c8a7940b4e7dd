// Lists without pages, which front ends read in chunks.
import type { Message } from "@bufbuild/protobuf";
import { callerGone, deadlineExceeded } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import { type Clock, yieldToEventLoop } from "../kernel/time.js";
import type { UnaryCall } from "./call.js";
import type { Invoke } from "./invoke.js";
import type { UnaryEntry } from "./method-table.js";

/** How many lists one caller may read at a time; more of them wait. */
const MAX_CONCURRENT_LISTS = 8;

/** A call of a list: what {@link Invoke} takes. */
export interface ListInvocation {
  readonly entry: UnaryEntry;
  readonly call: UnaryCall;
  readonly principal: Principal | undefined;
  readonly request: Message | (() => Message);
}

/**
 * The chunks of a list, each a message of the method's output type; of any other method its one response. Other work
 * runs between two chunks. A caller that does not read all chunks must return the generator: the list counts among
 * its concurrent ones until then.
 *
 * @throws ConnectError with ErrorInfo, also between chunks: each of them is authorized and has a deadline.
 */
export async function* readChunks(
  invoke: Invoke,
  clock: Clock,
  { entry, call, principal, request }: ListInvocation,
): AsyncGenerator<object, void, void> {
  let decoded: Message | undefined;
  const once = () => {
    decoded ??= typeof request === "function" ? request() : request;
    return decoded;
  };
  const release = entry.list === undefined ? undefined : await acquireSlot(principal, call.signal);
  try {
    for (;;) {
      // A chunk takes milliseconds, so it gets a tick of the event loop of its own.
      if (release !== undefined) await yieldToEventLoop();
      yield await invoke(entry, call, principal, once);
      if (call.nextCursor === undefined) return;
      call.nextChunk(clock());
    }
  } finally {
    release?.();
  }
}

interface Slots {
  taken: number;
  readonly waiting: (() => void)[];
}

const slotsByCaller = new Map<string, Slots>();

// A list in progress holds memory in proportion to what its caller may see, so a caller with many lists waits for
// its own.
async function acquireSlot(principal: Principal | undefined, signal: AbortSignal): Promise<() => void> {
  const caller = principal?.identityUid ?? "";
  const slots = slotsByCaller.get(caller) ?? { taken: 0, waiting: [] };
  slotsByCaller.set(caller, slots);
  if (slots.taken >= MAX_CONCURRENT_LISTS) await waitForSlot(slots.waiting, signal);
  else slots.taken++;
  return () => {
    const next = slots.waiting.shift();
    if (next !== undefined) next();
    else if (--slots.taken === 0) slotsByCaller.delete(caller);
  };
}

// A caller that disconnects or runs out of time while it waits leaves the queue at once.
function waitForSlot(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = () => {
      const at = waiting.indexOf(begin);
      if (at >= 0) waiting.splice(at, 1);
      const isTimeout = signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
      reject(isTimeout ? deadlineExceeded() : callerGone());
    };
    if (signal.aborted) {
      giveUp();
      return;
    }
    waiting.push(begin);
    signal.addEventListener("abort", giveUp, { once: true });
  });
}
