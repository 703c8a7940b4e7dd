// Lists without pages. Front ends that can send a list in chunks read them one by one; the others read all as one
// message.
import type { Message } from "@bufbuild/protobuf";
import { callerGone, deadlineExceeded, resourceExhausted } from "../kernel/errors.js";
import type { Principal } from "../kernel/principal.js";
import { type Clock, yieldToEventLoop } from "../kernel/time.js";
import type { UnaryCall } from "./call.js";
import type { Invoke } from "./invoke.js";
import type { UnaryEntry } from "./method-table.js";

/** How many elements a list may have that is assembled as one message. */
const MAX_AT_ONCE = 50_000;
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

/**
 * The response of a method as one message: of a list all of its chunks.
 *
 * @param join merges several chunks; it may throw where they are too large
 * @throws ConnectError with ErrorInfo; ApiError RESOURCE_EXHAUSTED for a list of more than 50,000 elements; what `join`
 * throws.
 */
export async function readAll(
  invoke: Invoke,
  clock: Clock,
  listCall: ListInvocation,
  join: (chunks: AsyncIterable<object>) => Promise<object>,
): Promise<object> {
  const { entry, call, principal, request } = listCall;
  const { list } = entry;
  if (list === undefined) return invoke(entry, call, principal, request);
  const lengthOf = (chunk: object) =>
    ((chunk as Record<string, unknown>)[list.localName] as unknown[] | undefined)?.length;
  let elements = 0;
  const chunks = readChunks(invoke, clock, listCall);
  let first: IteratorResult<object, void>;
  try {
    first = await chunks.next();
  } finally {
    // A list of several chunks is returned by its reader.
    if (call.nextCursor === undefined) await chunks.return();
  }
  if (first.done) throw new TypeError(`${entry.path} made no list`);
  if (call.nextCursor === undefined) return first.value;
  const { value } = first;
  async function* readAllChunks() {
    yield value;
    yield* chunks;
  }
  async function* countElements() {
    for await (const chunk of readAllChunks()) {
      elements += lengthOf(chunk) ?? 0;
      if (elements > MAX_AT_ONCE) {
        throw resourceExhausted(`list: more than ${MAX_AT_ONCE} elements; gRPC and REST answer longer ones`);
      }
      yield chunk;
    }
  }
  return join(countElements());
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
