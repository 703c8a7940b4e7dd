import type { TraceSpan } from "../kernel/trace.js";
import type { Awaitable, Store, Tx } from "../store/port.js";

/** The names of the spans of units of work. */
export const UNIT_SPAN_NAMES = { read: "read transaction", write: "write transaction" } as const;

/** Reads as {@link Store.read} does, as a part of the trace of a call, if that has one. */
export async function readTraced<T>(
  store: Store,
  { trace }: { readonly trace: TraceSpan | undefined },
  deadlineMs: number,
  unit: (tx: Tx) => Awaitable<T>,
): Promise<T> {
  const span = trace?.startChild(UNIT_SPAN_NAMES.read);
  try {
    const result = await store.read(unit, { deadlineMs, trace: span });
    span?.end();
    return result;
  } catch (error) {
    span?.fail(error);
    throw error;
  }
}
