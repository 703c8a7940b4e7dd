// Lists that have no pages, on their way out: whoever can send them piece by
// piece asks for their parts, everybody else for all of it at once.
import type { Message } from "@bufbuild/protobuf";
import type { Clock } from "../kernel/clock.js";
import { CALLER_GONE, deadlineExceeded, resourceExhausted } from "../kernel/errors.js";
import { yieldToEventLoop } from "../kernel/event-loop.js";
import type { Call } from "./call.js";
import type { Invoke } from "./invoke.js";
import type { UnaryEntry } from "./method-table.js";

/** How many elements a list may have that is put together as one message. */
const MAX_AT_ONCE = 50_000;
/** How many lists of one caller are under way at one time; more of them wait. */
const MAX_UNDER_WAY = 8;

/**
 * The parts of a list, each a message of the method's output type; of any other method its one answer.
 * Others have their turn between two parts. See {@link Invoke} for `request`. Whoever does not take all of the parts
 * must return the generator: until then its caller has one list more under way.
 *
 * @throws ConnectError with ErrorInfo, also between parts: rights and deadlines count for each of them.
 */
export async function* readChunks(
  invoke: Invoke,
  clock: Clock,
  entry: UnaryEntry,
  call: Call,
  request: Message | (() => Message),
): AsyncGenerator<object, void, void> {
  let decoded: Message | undefined;
  const once = () => {
    decoded ??= typeof request === "function" ? request() : request;
    return decoded;
  };
  const leave = entry.list === undefined ? undefined : await enter(call);
  try {
    for (;;) {
      // Each part takes milliseconds, and the first of a list may follow the last of another.
      if (leave !== undefined) await yieldToEventLoop();
      yield await invoke(entry, call, once);
      if (call.next === undefined) return;
      call.moveOn(clock());
    }
  } finally {
    leave?.();
  }
}

/**
 * The answer of a method as one message, a list of it with all of its parts.
 *
 * @param join makes one message of several, which it may refuse to hold
 * @throws ConnectError with ErrorInfo; ApiError RESOURCE_EXHAUSTED for a list of more than 50,000 elements;
 * what `join` throws.
 */
export async function readAll(
  invoke: Invoke,
  clock: Clock,
  entry: UnaryEntry,
  call: Call,
  request: Message,
  join: (parts: AsyncIterable<object>) => Promise<object>,
): Promise<object> {
  const { list } = entry;
  if (list === undefined) return invoke(entry, call, request);
  const sizeOf = (part: object) => ((part as Record<string, unknown>)[list.localName] as unknown[] | undefined)?.length;
  let elements = 0;
  const parts = readChunks(invoke, clock, entry, call, request);
  let first: IteratorResult<object, void>;
  try {
    first = await parts.next();
  } finally {
    // What follows ends with the parts themselves.
    if (call.next === undefined) await parts.return();
  }
  if (first.done) throw new TypeError(`${entry.path} made no list`);
  if (call.next === undefined) return first.value;
  const { value } = first;
  async function* all() {
    yield value;
    yield* parts;
  }
  async function* counted() {
    for await (const part of all()) {
      elements += sizeOf(part) ?? 0;
      if (elements > MAX_AT_ONCE) {
        throw resourceExhausted(`list: more than ${MAX_AT_ONCE} elements; gRPC and REST answer longer ones`);
      }
      yield part;
    }
  }
  return join(counted());
}

interface Lists {
  underWay: number;
  readonly waiting: (() => void)[];
}

const listsByCaller = new Map<string, Lists>();

// What a list holds while it is under way is the larger, the more its caller may see; a caller who asks for many
// at once waits for itself.
async function enter(call: Call): Promise<() => void> {
  const caller = call.principal?.identityUid ?? "";
  const lists = listsByCaller.get(caller) ?? { underWay: 0, waiting: [] };
  listsByCaller.set(caller, lists);
  if (lists.underWay >= MAX_UNDER_WAY) await place(lists.waiting, call.signal);
  else lists.underWay++;
  return () => {
    const next = lists.waiting.shift();
    if (next !== undefined) next();
    else if (--lists.underWay === 0) listsByCaller.delete(caller);
  };
}

// Whoever goes away or runs out of time while waiting leaves the queue at once.
function place(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const begin = () => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = () => {
      const at = waiting.indexOf(begin);
      if (at >= 0) waiting.splice(at, 1);
      const late = signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
      reject(late ? deadlineExceeded() : CALLER_GONE);
    };
    if (signal.aborted) {
      giveUp();
      return;
    }
    waiting.push(begin);
    signal.addEventListener("abort", giveUp, { once: true });
  });
}

/** The uid of who calls a method, as soon as it was run; empty where anybody may. */
export function callerUidOf({ auth }: UnaryEntry, call: Call): string {
  return auth.mode === "guarded" ? call.caller.uid : "";
}
