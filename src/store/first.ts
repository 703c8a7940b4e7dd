import type { Awaitable } from "./port.js";

/** The first of the rows to come, without a promise where they are there already. */
export function first<Row>(rows: Awaitable<Row[]>): Awaitable<Row | undefined> {
  return rows instanceof Promise ? rows.then((r) => r[0]) : rows[0];
}

/** Whether any rows come, without a promise where they are there already. */
export function any(rows: Awaitable<unknown[]>): Awaitable<boolean> {
  return rows instanceof Promise ? rows.then((r) => r.length > 0) : rows.length > 0;
}

/** Nothing, once the rows have come. */
export function done(rows: Awaitable<unknown[]>): Awaitable<void> {
  return rows instanceof Promise ? rows.then(() => undefined) : undefined;
}

/** How many rows come, without a promise where they are there already. */
export function count(rows: Awaitable<unknown[]>): Awaitable<number> {
  return rows instanceof Promise ? rows.then((r) => r.length) : rows.length;
}
