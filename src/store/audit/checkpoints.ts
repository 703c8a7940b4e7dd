// The store of the checkpoints at which chains of the audit log begin (docs/adr/0006-audit-chain.md).
import { and, asc, eq, gt, gte, inArray, lt, lte, type SQL, sql } from "drizzle-orm";
import { putRow, selectRows } from "../rows.js";
import { rowLimit, statement, TransactionPart, value } from "../statement.js";
import type { AuditCheckpoint } from "../tables/audit.js";
import type { Tables } from "../tables/tables.js";

/** A part of the organisations, some of which have chains that begin with an old row. */
export interface OldChains {
  readonly rootUids: readonly string[];
  /** Where the next part begins; undefined at the end. */
  readonly next: string | undefined;
}

/** How many organisations one search looks at. */
const ROOTS_AT_ONCE = 500;

const find = selectRows("auditCheckpoints", ["rootUid"]);
const put = putRow("auditCheckpoints", "rootUid");

// Two look-ups by key per organisation. The last entry is never deleted, so one that is the only one left is not old.
interface FirstRow {
  readonly rootUid: string;
  readonly timeMs: number | null;
}
const firstRows = (isAfter: typeof gt) =>
  statement<{ after: string; limit: number }, FirstRow>((q, t) => {
    const { audit, auditChain, auditHeads } = t;
    const first = q
      .select({ timeMs: audit.timeMs })
      .from(auditChain)
      .innerJoin(audit, eq(audit.id, auditChain.auditId))
      .where(and(eq(auditChain.rootUid, auditHeads.rootUid), lt(auditChain.seq, auditHeads.seq)))
      .orderBy(asc(auditChain.seq))
      .limit(rowLimit(1));
    return q
      .select({ rootUid: auditHeads.rootUid, timeMs: sql<number | null>`${first}`.mapWith(nullableNumber) })
      .from(auditHeads)
      .where(isAfter(auditHeads.rootUid, value("after")))
      .orderBy(auditHeads.rootUid)
      .limit(rowLimit("limit"));
  });
const nullableNumber = (found: unknown) => (found === null ? null : Number(found));
// The log of no organisation has the empty uid, which comes first.
const firstRowsFrom = firstRows(gte);
const firstRowsAfter = firstRows(gt);

interface Range {
  readonly rootUid: string;
  readonly afterSeq: number;
  readonly lastSeq: number;
}
const inRange = ({ auditChain: { rootUid, seq } }: Tables): SQL | undefined =>
  and(eq(rootUid, value("rootUid")), gt(seq, value("afterSeq")), lte(seq, value("lastSeq")));
const deleteRows = statement<Range, { id: number }>((q, t) =>
  q
    .delete(t.audit)
    .where(inArray(t.audit.id, q.select({ id: t.auditChain.auditId }).from(t.auditChain).where(inRange(t))))
    .returning({ id: t.audit.id }),
);
const deleteChain = statement<Range, { seq: number }>((q, t) =>
  q.delete(t.auditChain).where(inRange(t)).returning({ seq: t.auditChain.seq }),
);

/** The beginnings of chains. Only the job that deletes old rows writes here. */
export class AuditCheckpoints extends TransactionPart {
  find(rootUid: string): Promise<AuditCheckpoint | undefined> {
    return this.first(find, { rootUid });
  }

  /** Inserts or replaces a checkpoint. */
  put(checkpoint: AuditCheckpoint): Promise<void> {
    return this.run(put, checkpoint);
  }

  /**
   * Searches a part of all organisations, in some milliseconds, for those whose first row is older than `beforeMs` and
   * is not the one that their head signs.
   *
   * @param after `next` of the part before; without it the search begins
   */
  async findOld(beforeMs: number, after?: string): Promise<OldChains> {
    const found = await this.all(after === undefined ? firstRowsFrom : firstRowsAfter, {
      after: after ?? "",
      limit: ROOTS_AT_ONCE,
    });
    return {
      rootUids: found.filter(({ timeMs }) => timeMs !== null && timeMs < beforeMs).map(({ rootUid }) => rootUid),
      next: found.length === ROOTS_AT_ONCE ? found.at(-1)?.rootUid : undefined,
    };
  }

  /**
   * Deletes the entries of a chain after number `afterSeq` up to number `lastSeq`, with their rows.
   *
   * @returns how many entries and how many rows were deleted
   */
  async deleteEntries(rootUid: string, afterSeq: number, lastSeq: number): Promise<{ entries: number; rows: number }> {
    const range = { rootUid, afterSeq, lastSeq };
    const rows = await this.countOf(deleteRows, range);
    return { rows, entries: await this.countOf(deleteChain, range) };
  }
}
