// The hash chains that seal the audit log, one for each organisation, and their signed heads (docs/adr/0006-audit-chain.md).
import { and, eq, getTableColumns, gt, gte, isNull, lte, max, min, notExists, sql } from "drizzle-orm";
import { putRow, selectRows } from "../rows.js";
import {
  buildEquals,
  buildManyValues,
  rowLimit,
  type Sql,
  statement,
  statementFamily,
  TransactionPart,
  toNumber,
  value,
} from "../statement.js";
import type { AuditHead, ChainEntry, SealerRow, StoredAuditRow } from "../tables/audit.js";
import type { Tables } from "../tables/tables.js";
import { auditColumns } from "./columns.js";

/** A chain entry with the audit row it seals; null when the row no longer exists. */
export interface SealedRow extends Omit<ChainEntry, "rootUid"> {
  readonly row: StoredAuditRow | null;
}

/** The rows of an organisation's log that are not sealed. */
export interface UnsealedTail {
  readonly rows: number;
  /** Of the oldest such row; null where there is none. */
  readonly firstId: number | null;
  readonly firstTimeMs: number | null;
}

/** How many rows of the log are not sealed. */
export interface UnsealedCount {
  readonly rows: number;
  /** Of the oldest one; null where there is none. */
  readonly oldestTimeMs: number | null;
}

/** The key of the sealer's one row. */
const NAME = "audit";
/** How many entries one statement inserts: over a network each statement is a round trip. */
const ENTRIES_AT_ONCE = 32;

const sealer = statement<object, SealerRow>((q, t) => {
  const { name, ...columns } = getTableColumns(t.auditSealer);
  return q.select(columns).from(t.auditSealer).where(eq(name, NAME));
});
const putSealer = putRow("auditSealer", "name");

// Both sides are ranges of an index from the same id on. The bound is written for both, because neither
// database derives it for one from the other; without it the scan would begin at the first entry.
const isUnsealed = (q: Sql, t: Tables) =>
  and(
    gt(t.audit.id, value("afterId")),
    notExists(
      q
        .select({ one: sql`1` })
        .from(t.auditChain)
        .where(and(eq(t.auditChain.auditId, t.audit.id), gt(t.auditChain.auditId, value("afterId")))),
    ),
  );
const unsealed = statement<{ afterId: number; limit: number }, StoredAuditRow>((q, t) =>
  q.select(auditColumns(t)).from(t.audit).where(isUnsealed(q, t)).orderBy(t.audit.id).limit(rowLimit("limit")),
);
const countUnsealed = statement<{ afterId: number }, { rows: number }>((q, t) =>
  q
    .select({ rows: toNumber(sql`count(*)`) })
    .from(t.audit)
    .where(isUnsealed(q, t)),
);
const newestId = statement<object, { id: number | null }>((q, t) => q.select({ id: max(t.audit.id) }).from(t.audit));
const unsealedOf = statement<{ rootUid: string }, { rows: number; firstId: number | null }>((q, t) =>
  q
    .select({ rows: toNumber(sql`count(*)`), firstId: min(t.audit.id) })
    .from(t.audit)
    .leftJoin(t.auditChain, eq(t.auditChain.auditId, t.audit.id))
    .where(and(eq(t.audit.rootUid, value("rootUid")), isNull(t.auditChain.auditId))),
);
const unsealedBetween = statement<
  { rootUid: string; afterId: number; lastId: number; limit: number },
  { id: number; timeMs: number }
>((q, t) =>
  q
    .select({ id: t.audit.id, timeMs: t.audit.timeMs })
    .from(t.audit)
    .leftJoin(t.auditChain, eq(t.auditChain.auditId, t.audit.id))
    .where(
      and(
        eq(t.audit.rootUid, value("rootUid")),
        gt(t.audit.id, value("afterId")),
        lte(t.audit.id, value("lastId")),
        isNull(t.auditChain.auditId),
      ),
    )
    .orderBy(t.audit.id)
    .limit(rowLimit("limit")),
);
const timeOf = selectRows("audit", ["id"], { columns: ["timeMs"] });

const appendEntries = statementFamily<number, Record<string, string | number>>(
  String,
  (size) => (q, t) => q.insert(t.auditChain).values(buildManyValues(t.auditChain, size)),
);
const lastSeq = statement<{ rootUid: string }, { seq: number | null }>((q, t) =>
  q
    .select({ seq: max(t.auditChain.seq) })
    .from(t.auditChain)
    .where(buildEquals(t.auditChain, "rootUid")),
);
type EntryWithRow = Omit<SealedRow, "row"> & { [K in keyof StoredAuditRow]: StoredAuditRow[K] | null };
const entries = statement<{ rootUid: string; afterSeq: number; limit: number }, EntryWithRow>((q, t) =>
  q
    .select({
      seq: t.auditChain.seq,
      auditId: t.auditChain.auditId,
      hash: t.auditChain.hash,
      ...auditColumns(t),
    })
    .from(t.auditChain)
    .leftJoin(t.audit, eq(t.audit.id, t.auditChain.auditId))
    .where(and(eq(t.auditChain.rootUid, value("rootUid")), gt(t.auditChain.seq, value("afterSeq"))))
    .orderBy(t.auditChain.seq)
    .limit(rowLimit("limit")),
);

const head = selectRows("auditHeads", ["rootUid"]);
// The log of no organisation has the empty uid, which comes first.
const headsFrom = (isAfter: typeof gt) =>
  statement<{ after: string; limit: number }, AuditHead>((q, t) =>
    q
      .select()
      .from(t.auditHeads)
      .where(isAfter(t.auditHeads.rootUid, value("after")))
      .orderBy(t.auditHeads.rootUid)
      .limit(rowLimit("limit")),
  );
const firstHeads = headsFrom(gte);
const nextHeads = headsFrom(gt);
const putHead = putRow("auditHeads", "rootUid");

const rootsIn = (table: "audit" | "auditChain" | "auditHeads" | "auditCheckpoints") =>
  statement<object, { rootUid: string }>((q, t) =>
    q.select({ rootUid: t[table].rootUid }).from(t[table]).groupBy(t[table].rootUid),
  );
const roots = [rootsIn("audit"), rootsIn("auditChain"), rootsIn("auditHeads"), rootsIn("auditCheckpoints")];

/** The hash chains of the audit log. Only the sealer writes here. */
export class AuditChain extends TransactionPart {
  /** The sealer's own row; undefined before anything was sealed. */
  findSealer(): Promise<SealerRow | undefined> {
    return this.first(sealer, {});
  }

  putSealer(row: SealerRow): Promise<void> {
    return this.run(putSealer, { name: NAME, ...row });
  }

  /** Unsealed rows of all organisations with ids greater than `afterId`, in the order of ids, at most `limit`. */
  listUnsealed(afterId: number, limit: number): Promise<StoredAuditRow[]> {
    return this.all(unsealed, { afterId, limit });
  }

  /**
   * Counts the unsealed rows of all organisations.
   *
   * @param newest among how many of the newest rows
   */
  async countUnsealed(newest: number): Promise<UnsealedCount> {
    const { settledId = 0 } = (await this.findSealer()) ?? {};
    const [oldest] = await this.listUnsealed(settledId, 1);
    if (oldest === undefined) return { rows: 0, oldestTimeMs: null };
    const { id } = (await this.first(newestId, {})) ?? {};
    const afterId = Math.max(settledId, (id ?? 0) - newest);
    const { rows = 0 } = (await this.first(countUnsealed, { afterId })) ?? {};
    return { rows: Math.max(rows, 1), oldestTimeMs: oldest.timeMs };
  }

  async readUnsealedTail(rootUid: string): Promise<UnsealedTail> {
    const { rows = 0, firstId = null } = (await this.first(unsealedOf, { rootUid })) ?? {};
    const oldest = firstId === null ? undefined : await this.first(timeOf, { id: firstId });
    return { rows, firstId, firstTimeMs: oldest?.timeMs ?? null };
  }

  /**
   * Rows of an organisation that are not sealed, with ids greater than `afterId` and up to `lastId`, in the order of
   * ids, at most `limit`. Unlike {@link readUnsealedTail} it reads that range alone.
   */
  listUnsealedBetween(rootUid: string, range: { afterId: number; lastId: number }, limit: number) {
    return this.all(unsealedBetween, { rootUid, ...range, limit });
  }

  async append(added: readonly ChainEntry[]): Promise<void> {
    for (let i = 0; i < added.length; ) {
      const size = added.length - i < ENTRIES_AT_ONCE ? 1 : ENTRIES_AT_ONCE;
      const params = added.slice(i, i + size).flatMap((entry, n) => {
        return Object.entries(entry).map(([name, field]) => [`${name}${n}`, field as string | number] as const);
      });
      await this.all(appendEntries(size), Object.fromEntries(params));
      i += size;
    }
  }

  /** The number of the last entry of a chain; 0 where there is none. */
  async lastSeq(rootUid: string): Promise<number> {
    return (await this.first(lastSeq, { rootUid }))?.seq ?? 0;
  }

  /** Entries with numbers greater than `afterSeq`, in order, with their rows, at most `limit`. */
  async listEntries(rootUid: string, afterSeq: number, limit: number): Promise<SealedRow[]> {
    const rows = await this.all(entries, { rootUid, afterSeq, limit });
    return rows.map(({ seq, auditId, hash, ...row }) => {
      return { seq, auditId, hash, row: row.id === null ? null : (row as StoredAuditRow) };
    });
  }

  findHead(rootUid: string): Promise<AuditHead | undefined> {
    return this.first(head, { rootUid });
  }

  /** The head of the organisation after `after` in the order of uids, or the first one; undefined at the end. */
  async findNextHead(after?: string): Promise<AuditHead | undefined> {
    const heads = await this.all(after === undefined ? firstHeads : nextHeads, { after: after ?? "", limit: 1 });
    return heads[0];
  }

  putHead(row: AuditHead): Promise<void> {
    return this.run(putHead, row);
  }

  /** Every organisation that has rows, a chain, a head or a checkpoint, in order. */
  async listRoots(): Promise<string[]> {
    const found = new Set<string>();
    for (const statement of roots) for (const { rootUid } of await this.all(statement, {})) found.add(rootUid);
    return [...found].sort();
  }
}
