// Work that is done after Node's callbacks. Node emits requests and data from native code that is still reading the
// connection: to write to an HTTP/2 session or to end it there corrupts memory in some versions of Node.

/**
 * Creates a function that puts items off to the next turn of the event loop, where they are handled together and in
 * their order. Responses that are written together also cost less, because each write wakes an idle reader up.
 *
 * @param handle handles one item; after an error the other items are still handled
 * @param onError called with what `handle` throws
 * @param atMost how many items are handled in one turn; all unless given
 */
export function createDeferral<T>(
  handle: (item: T) => void,
  onError: (error: unknown, item: T) => void,
  atMost = Number.POSITIVE_INFINITY,
): (item: T) => void {
  let waiting: T[] = [];

  function handleAll(): void {
    const items = waiting;
    waiting = items.splice(atMost);
    if (waiting.length > 0) setImmediate(handleAll);
    for (const item of items) {
      try {
        handle(item);
      } catch (error) {
        onError(error, item);
      }
    }
  }

  return (item) => {
    if (waiting.push(item) === 1) setImmediate(handleAll);
  };
}
