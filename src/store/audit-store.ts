import { desc, eq, getTableColumns, sql } from "drizzle-orm";
import { done } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { AuditRow, AuditStore, Awaitable } from "./port.js";
import { type Executor, statement } from "./statement.js";
import type { Tables } from "./tables.js";

const append = statement<AuditRow>((q, t) => {
  const { id, ...values } = placeholdersFor(t.audit);
  return q.insert(t.audit).values(values as typeof t.audit.$inferInsert);
});
const columns = (t: Tables) => {
  const { id, ...rest } = getTableColumns(t.audit);
  return rest;
};
const newest = statement<{ limit: number }, AuditRow>((q, t) =>
  q.select(columns(t)).from(t.audit).orderBy(desc(t.audit.id)).limit(sql.placeholder("limit")),
);
const newestOf = statement<{ limit: number; root: string }, AuditRow>((q, t) =>
  q
    .select(columns(t))
    .from(t.audit)
    .where(eq(t.audit.rootUid, sql.placeholder("root")))
    .orderBy(desc(t.audit.id))
    .limit(sql.placeholder("limit")),
);

/** The audit log; see {@link AuditStore}. */
export class Audit implements AuditStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  append(row: AuditRow): Awaitable<void> {
    return done(this.#tx.rows(append, row));
  }

  newest(limit: number, rootUid?: string): Awaitable<AuditRow[]> {
    return rootUid === undefined ? this.#tx.rows(newest, { limit }) : this.#tx.rows(newestOf, { limit, root: rootUid });
  }
}
