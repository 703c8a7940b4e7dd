// The audit log. A row is written in the unit of work of the change that it records, and never changed. Two columns of it are
// found here: the name that the actor had, and the hash of the body. The API reads the log by its filters and by time
// (events.ts); a job seals rows in the order of their ids with one hash chain for each organisation (chain.ts,
// docs/adr/0006-audit-chain.md), and another one deletes the oldest, whose end a checkpoint signs (checkpoints.ts).
import { and, desc, eq, gte, inArray, lt, sql } from "drizzle-orm";
import { hashBody } from "../../kernel/audit-body.js";
import {
  buildInsertValues,
  padParams,
  rowLimit,
  statement,
  statementFamily,
  TransactionPart,
  value,
} from "../statement.js";
import type { AuditRow, StoredAuditRow } from "../tables/audit.js";
import { auditColumns } from "./columns.js";
import type { AuditFilterColumn } from "./events.js";

/** Restricts the rows that are listed; all that is set must hold. */
export type AuditRowFilter = Partial<Readonly<Record<AuditFilterColumn | "requestId", string>>> & {
  /** The first time, inclusive. */
  readonly startMs?: number;
  /** The last time, exclusive. */
  readonly endMs?: number;
};

/** How many bodies one statement reads. */
const BODIES_AT_ONCE = 32;

/** The longest name of an actor in a row, in characters. */
const MAX_NAME = 255;

/** The version of the rows that are written (docs/adr/0020-audit-bodies.md). */
export const AUDIT_VERSION = 3;

// The name is read by the same statement, from a row that the transaction has read to authorize the call.
const append = statement<Required<AuditRow> & { readonly bodyHash: string }>((q, t) => {
  const { id, ...values } = buildInsertValues(t.audit);
  const { uid, name, email } = t.identities;
  const stored = sql`(select coalesce(nullif(${name}, ''), ${email}) from ${t.identities} where ${eq(uid, value("actorUid"))})`;
  const actorName = sql`substr(coalesce(${stored}, ${value("actorName")}), 1, ${sql.raw(String(MAX_NAME))})`;
  return q
    .insert(t.audit)
    .values({ ...values, version: AUDIT_VERSION, actorName } as unknown as typeof t.audit.$inferInsert);
});

const equalColumns = ["rootUid", "subjectUid", "actorUid", "type", "requestId"] as const;
type NewestParams = { limit: number; rootUid?: string } & AuditRowFilter;
const newest = statementFamily<NewestParams, NewestParams, StoredAuditRow>(
  (params) => Object.keys(params).sort().join(),
  (params) => (q, t) =>
    q
      .select(auditColumns(t))
      .from(t.audit)
      .where(
        and(
          ...equalColumns.map((name) => (params[name] === undefined ? undefined : eq(t.audit[name], value(name)))),
          params.startMs === undefined ? undefined : gte(t.audit.timeMs, value("startMs")),
          params.endMs === undefined ? undefined : lt(t.audit.timeMs, value("endMs")),
        ),
      )
      .orderBy(desc(t.audit.id))
      .limit(rowLimit("limit")),
);

const bodies = statementFamily<number, Record<string, number>, { id: number; body: string }>(
  String,
  (size) => (q, t) =>
    q
      .select({ id: t.audit.id, body: t.audit.body })
      .from(t.audit)
      .where(
        inArray(
          t.audit.id,
          Array.from({ length: size }, (_, i) => value(`id${i}`)),
        ),
      ),
);

/** The audit log; append-only. */
export class Audit extends TransactionPart {
  append(row: AuditRow): Promise<void> {
    const { actorName = "", traceId = "", body = "" } = row;
    return this.run(append, { ...row, actorName, traceId, body, bodyHash: hashBody(body) });
  }

  /**
   * The newest rows first, at most `limit`, of one organisation or of all. With a filter it may read the whole log, so
   * only commands on the host use one.
   */
  listNewest(limit: number, rootUid?: string, filter: AuditRowFilter = {}): Promise<StoredAuditRow[]> {
    const params = { limit, ...(rootUid !== undefined && { rootUid }), ...filter };
    return this.all(newest(params), params);
  }

  /** Reads the bodies of rows by their ids; those without one are left out. A body may have a megabyte. */
  async readBodies(rows: readonly Pick<StoredAuditRow, "id" | "bodyBytes">[]): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    const ids = rows.flatMap(({ id, bodyBytes }) => (bodyBytes > 0 ? [id] : []));
    for (let start = 0; start < ids.length; start += BODIES_AT_ONCE) {
      const { size, params } = padParams("id", ids.slice(start, start + BODIES_AT_ONCE));
      for (const { id, body } of await this.all(bodies(size), params)) found.set(id, body);
    }
    return found;
  }
}
