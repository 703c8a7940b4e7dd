// The store of background jobs. Only the job runner and `arbor admin jobs list` use it, so units of work of the API
// never conflict with it.
import { getTableColumns } from "drizzle-orm";
import type { Awaitable, JobRow, JobStore } from "./port.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  statement,
  takeFirst,
} from "./statement.js";

const get = statement<{ name: string }, JobRow>((q, t) => q.select().from(t.jobs).where(buildEquals(t.jobs, "name")));
const list = statement<object, JobRow>((q, t) => q.select().from(t.jobs).orderBy(t.jobs.name));
const put = statement<JobRow>((q, t) => {
  const { name, ...columns } = getTableColumns(t.jobs);
  return q
    .insert(t.jobs)
    .values(buildInsertValues(t.jobs))
    .onConflictDoUpdate({
      target: t.jobs.name,
      set: buildUpsertValues(t.jobs, ...(Object.keys(columns) as (keyof typeof columns)[])),
    });
});

/** Background jobs; see {@link JobStore}. */
export class Jobs implements JobStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  nowMs(): Awaitable<number> {
    return this.#tx.nowMs();
  }

  find(name: string): Awaitable<JobRow | undefined> {
    return takeFirst(this.#tx.rows(get, { name }));
  }

  put(row: JobRow): Awaitable<void> {
    return discardRows(this.#tx.rows(put, row));
  }

  list(): Awaitable<JobRow[]> {
    return this.#tx.rows(list, {});
  }
}
