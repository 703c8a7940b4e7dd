/** A value that is available at once (SQLite) or later (PostgreSQL). */
export type Awaitable<T> = T | Promise<T>;
