/** What a callback may return: whoever calls it awaits the result. Functions that may wait return a promise instead. */
export type Awaitable<T> = T | Promise<T>;
