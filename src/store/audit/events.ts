// The store from which the API reads the audit log. Each filter has an index that is ordered by time; rows that no
// index finds alone are read in slices.
import { and, asc, desc, eq, gt, inArray, max, sql } from "drizzle-orm";
import { isUidp, isWithin } from "../../kernel/uidp.js";
import {
  buildEquals,
  padParams,
  rowLimit,
  type Sql,
  statement,
  statementFamily,
  TransactionPart,
  value,
} from "../statement.js";
import type { StoredAuditRow } from "../tables/audit.js";
import type { Tables } from "../tables/tables.js";
import { auditColumns } from "./columns.js";

/** A recorded change, and its number in the chain: null while it is not sealed. */
export type AuditEventRow = StoredAuditRow & { readonly seq: number | null };

/** The columns by which an index finds the rows of an organisation. */
export type AuditFilterColumn = "subjectUid" | "actorUid" | "type";

/**
 * Where the rights to read an event count: at its subject, otherwise at its organisation; undefined where neither is.
 */
export function scopeOf({ rootUid, subjectUid }: Pick<AuditEventRow, "rootUid" | "subjectUid">): string | undefined {
  const scope = isUidp(subjectUid) && isWithin(subjectUid, rootUid) ? subjectUid : rootUid;
  return isUidp(scope) ? scope : undefined;
}

/** A position in the order of time. */
export interface AuditPosition {
  readonly timeMs: number;
  readonly id: number;
}

/** Which rows of an organisation to read, in the order of their times. */
export interface AuditEventQuery {
  readonly rootUid: string;
  /** The column whose index is read; the order of time alone where undefined. */
  readonly by: { readonly column: AuditFilterColumn; readonly value: string } | undefined;
  /** The first time, inclusive. */
  readonly startMs: number;
  /** The last time, exclusive. */
  readonly endMs: number;
  readonly descending: boolean;
  readonly after: AuditPosition | undefined;
  /** The largest number of rows on the page. */
  readonly limit: number;
  /** The conditions that the index does not decide. The rows are read in slices and their number is bounded. */
  readonly matches: ((row: AuditEventRow) => boolean) | undefined;
  /** Called between slices; throws when the caller waits no longer. */
  readonly assertInTime: () => void;
}

export interface AuditEventPage {
  readonly rows: readonly AuditEventRow[];
  /** Where the next page begins; undefined after the last one. A page may be short although there is a next one. */
  readonly next: AuditPosition | undefined;
}

/** Rows read by one statement where the index does not decide alone: some 2 ms. */
const SLICE_ROWS = 256;
/** Rows read for one page where the index does not decide alone. */
const MAX_READ_ROWS = 10_240;

const selectEvents = (q: Sql, t: Tables) =>
  q
    .select({ ...auditColumns(t), seq: t.auditChain.seq })
    .from(t.audit)
    .leftJoin(t.auditChain, eq(t.auditChain.auditId, t.audit.id));

const byId = statement<{ id: number }, AuditEventRow>((q, t) => selectEvents(q, t).where(buildEquals(t.audit, "id")));
const afterId = statement<{ id: number; limit: number }, AuditEventRow>((q, t) =>
  selectEvents(q, t)
    .where(gt(t.audit.id, value("id")))
    .orderBy(t.audit.id)
    .limit(rowLimit("limit")),
);
const withIds = statementFamily<number, Record<string, number>, AuditEventRow>(
  String,
  (size) => (q, t) =>
    selectEvents(q, t)
      .where(
        inArray(
          t.audit.id,
          Array.from({ length: size }, (_, i) => value(`id${i}`)),
        ),
      )
      .orderBy(t.audit.id),
);
const lastId = statement<object, { id: number | null }>((q, t) => q.select({ id: max(t.audit.id) }).from(t.audit));

interface SliceShape {
  /** The column whose index is read; the order of time alone where undefined. */
  readonly column: AuditFilterColumn | undefined;
  readonly descending: boolean;
}

interface SliceParams {
  rootUid: string;
  value: string;
  timeMs: number;
  id: number;
  limit: number;
}

/**
 * Builds the statement that reads the next rows of an index. Both databases read the comparison of pairs as a range of
 * it. A second bound of the time would mislead the planner of SQLite: it would read the index of time for all filters.
 * So would the organisation beside a subject, which names it.
 */
export const nextEvents = statementFamily<SliceShape, SliceParams, AuditEventRow>(
  ({ column = "", descending }) => `${column} ${descending}`,
  ({ column, descending }) =>
    (q, t) => {
      const { timeMs, id, rootUid } = t.audit;
      const position = sql`(${value("timeMs")}, ${value("id")})`;
      return selectEvents(q, t)
        .where(
          and(
            column === "subjectUid" ? undefined : eq(rootUid, value("rootUid")),
            column && eq(t.audit[column], value("value")),
            descending ? sql`(${timeMs}, ${id}) < ${position}` : sql`(${timeMs}, ${id}) > ${position}`,
          ),
        )
        .orderBy(...(descending ? [desc(timeMs), desc(id)] : [asc(timeMs), asc(id)]))
        .limit(rowLimit("limit"));
    },
);

/** The audit log as the API reads it. */
export class AuditEvents extends TransactionPart {
  find(id: number): Promise<AuditEventRow | undefined> {
    return this.first(byId, { id });
  }

  /** The rows of all organisations with higher ids, in the order of ids. */
  listAfter(id: number, limit: number): Promise<AuditEventRow[]> {
    return this.all(afterId, { id, limit });
  }

  /** The rows with these ids that exist, in the order of ids. */
  findByIds(ids: readonly number[]): Promise<AuditEventRow[]> {
    const { size, params } = padParams("id", ids);
    return this.all(withIds(size), params);
  }

  /** The highest id; 0 in an empty log. */
  lastId(): Promise<number> {
    return this.all(lastId, {}, ([row]) => row?.id ?? 0);
  }

  async list(query: AuditEventQuery): Promise<AuditEventPage> {
    const { rootUid, by, startMs, endMs, descending, limit, matches, assertInTime } = query;
    const statement = nextEvents({ column: by?.column, descending });
    const fixed = { rootUid, value: by?.value ?? "" };
    const rows: AuditEventRow[] = [];
    let position = query.after ?? { timeMs: descending ? endMs : startMs, id: 0 };
    for (let read = 0; ; ) {
      assertInTime();
      // One row more than fits shows whether there is a next page.
      const size = matches === undefined ? limit + 1 : SLICE_ROWS;
      const found = await this.all(statement, { ...fixed, ...position, limit: size });
      for (const row of found) {
        if (descending ? row.timeMs < startMs : row.timeMs >= endMs) return { rows, next: undefined };
        if (row.rootUid !== rootUid || matches?.(row) === false) continue;
        if (rows.length === limit) return { rows, next: findPosition(rows.at(-1)) };
        rows.push(row);
      }
      if (found.length < size) return { rows, next: undefined };
      read += found.length;
      position = findPosition(found.at(-1)) ?? position;
      if (read >= MAX_READ_ROWS) return { rows, next: position };
      await this.tx.pause?.();
    }
  }
}

function findPosition(row: AuditEventRow | undefined) {
  return row && { timeMs: row.timeMs, id: row.id };
}
