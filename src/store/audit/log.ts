// The stores of the audit log and of the hash chains that seal it (docs/adr/0006-audit-chain.md).
import {
  and,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  lte,
  max,
  min,
  notExists,
  type SQL,
  sql,
} from "drizzle-orm";
import { hashBody } from "../../kernel/audit-body.js";
import type { Awaitable } from "../awaitable.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  padParams,
  rowLimit,
  type Sql,
  statement,
  statementFamily,
  takeFirst,
  value,
} from "../statement.js";
import type { AuditHead, AuditRow, ChainEntry, SealerRow, StoredAuditRow } from "../tables/audit.js";
import type { Tables } from "../tables/schema.js";
import { auditColumns } from "./columns.js";
import type { AuditFilterColumn } from "./events.js";

/** Restricts the rows that are listed; all that is set must hold. */
export type AuditRowFilter = Partial<Readonly<Record<AuditFilterColumn | "requestId", string>>> & {
  /** The first time, inclusive. */
  readonly startMs?: number;
  /** The last time, exclusive. */
  readonly endMs?: number;
};

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
export class Audit {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  append(row: AuditRow): Awaitable<void> {
    const { actorName = "", traceId = "", body = "" } = row;
    return discardRows(this.#tx.rows(append, { ...row, actorName, traceId, body, bodyHash: hashBody(body) }));
  }

  /**
   * The newest rows first, at most `limit`, of one organisation or of all. With a filter it may read the whole log, so
   * only commands on the host use one.
   */
  listNewest(limit: number, rootUid?: string, filter: AuditRowFilter = {}): Awaitable<StoredAuditRow[]> {
    const params = { limit, ...(rootUid !== undefined && { rootUid }), ...filter };
    return this.#tx.rows(newest(params), params);
  }

  /** Reads the bodies of rows by their ids; those without one are left out. A body may have a megabyte. */
  async readBodies(rows: readonly Pick<StoredAuditRow, "id" | "bodyBytes">[]): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    const ids = rows.flatMap(({ id, bodyBytes }) => (bodyBytes > 0 ? [id] : []));
    for (let start = 0; start < ids.length; start += BODIES_AT_ONCE) {
      const { size, params } = padParams("id", ids.slice(start, start + BODIES_AT_ONCE));
      for (const { id, body } of await this.#tx.rows(bodies(size), params)) found.set(id, body);
    }
    return found;
  }
}

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

/** How many bodies one statement reads. */
const BODIES_AT_ONCE = 32;

/** The key of the sealer's one row. */
const NAME = "audit";
/** How many entries one statement inserts: over a network each statement is a round trip. */
const ENTRIES_AT_ONCE = 32;

const sealer = statement<object, SealerRow>((q, t) => {
  const { name, ...columns } = getTableColumns(t.auditSealer);
  return q.select(columns).from(t.auditSealer).where(eq(name, NAME));
});
const putSealer = statement<SealerRow & { name: string }>((q, t) =>
  q
    .insert(t.auditSealer)
    .values(buildInsertValues(t.auditSealer))
    .onConflictDoUpdate({
      target: t.auditSealer.name,
      set: buildUpsertValues(t.auditSealer, "settledId", "passes"),
    }),
);

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
    .select({ rows: sql<number>`count(*)`.mapWith(Number) })
    .from(t.audit)
    .where(isUnsealed(q, t)),
);
const newestId = statement<object, { id: number | null }>((q, t) => q.select({ id: max(t.audit.id) }).from(t.audit));
const unsealedOf = statement<{ rootUid: string }, { rows: number; firstId: number | null }>((q, t) =>
  q
    .select({ rows: sql<number>`count(*)`.mapWith(Number), firstId: min(t.audit.id) })
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
const timeOf = statement<{ id: number }, { timeMs: number }>((q, t) =>
  q.select({ timeMs: t.audit.timeMs }).from(t.audit).where(buildEquals(t.audit, "id")),
);

const appendEntries = statementFamily<number, Record<string, string | number>>(
  String,
  (size) => (q, t) =>
    q.insert(t.auditChain).values(
      Array.from({ length: size }, (_, i) => ({
        rootUid: value(`rootUid${i}`) as unknown as SQL<string>,
        seq: value(`seq${i}`) as unknown as SQL<number>,
        auditId: value(`auditId${i}`) as unknown as SQL<number>,
        hash: value(`hash${i}`) as unknown as SQL<string>,
      })),
    ),
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

const head = statement<{ rootUid: string }, AuditHead>((q, t) =>
  q.select().from(t.auditHeads).where(buildEquals(t.auditHeads, "rootUid")),
);
const putHead = statement<AuditHead>((q, t) =>
  q
    .insert(t.auditHeads)
    .values(buildInsertValues(t.auditHeads))
    .onConflictDoUpdate({
      target: t.auditHeads.rootUid,
      set: buildUpsertValues(t.auditHeads, "seq", "hash", "timeMs", "signature"),
    }),
);

const rootsIn = (table: "audit" | "auditChain" | "auditHeads" | "auditCheckpoints") =>
  statement<object, { rootUid: string }>((q, t) =>
    q.select({ rootUid: t[table].rootUid }).from(t[table]).groupBy(t[table].rootUid),
  );
const roots = [rootsIn("audit"), rootsIn("auditChain"), rootsIn("auditHeads"), rootsIn("auditCheckpoints")];

/** The hash chains of the audit log. Only the sealer writes here. */
export class AuditChain {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /** The sealer's own row; undefined before anything was sealed. */
  findSealer(): Awaitable<SealerRow | undefined> {
    return takeFirst(this.#tx.rows(sealer, {}));
  }

  putSealer(row: SealerRow): Awaitable<void> {
    return discardRows(this.#tx.rows(putSealer, { name: NAME, ...row }));
  }

  /** Unsealed rows of all organisations with ids greater than `afterId`, in the order of ids, at most `limit`. */
  listUnsealed(afterId: number, limit: number): Awaitable<StoredAuditRow[]> {
    return this.#tx.rows(unsealed, { afterId, limit });
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
    const { id } = (await takeFirst(this.#tx.rows(newestId, {}))) ?? {};
    const afterId = Math.max(settledId, (id ?? 0) - newest);
    const { rows = 0 } = (await takeFirst(this.#tx.rows(countUnsealed, { afterId }))) ?? {};
    return { rows: Math.max(rows, 1), oldestTimeMs: oldest.timeMs };
  }

  async readUnsealedTail(rootUid: string): Promise<UnsealedTail> {
    const { rows = 0, firstId = null } = (await takeFirst(this.#tx.rows(unsealedOf, { rootUid }))) ?? {};
    const oldest = firstId === null ? undefined : await takeFirst(this.#tx.rows(timeOf, { id: firstId }));
    return { rows, firstId, firstTimeMs: oldest?.timeMs ?? null };
  }

  /**
   * Rows of an organisation that are not sealed, with ids greater than `afterId` and up to `lastId`, in the order of
   * ids, at most `limit`. Unlike {@link readUnsealedTail} it reads that range alone.
   */
  listUnsealedBetween(rootUid: string, range: { afterId: number; lastId: number }, limit: number) {
    return this.#tx.rows(unsealedBetween, { rootUid, ...range, limit });
  }

  async append(added: readonly ChainEntry[]): Promise<void> {
    for (let i = 0; i < added.length; ) {
      const size = added.length - i < ENTRIES_AT_ONCE ? 1 : ENTRIES_AT_ONCE;
      const params = added.slice(i, i + size).flatMap((entry, n) => {
        return Object.entries(entry).map(([name, field]) => [`${name}${n}`, field as string | number] as const);
      });
      await this.#tx.rows(appendEntries(size), Object.fromEntries(params));
      i += size;
    }
  }

  /** The number of the last entry of a chain; 0 where there is none. */
  async lastSeq(rootUid: string): Promise<number> {
    return (await takeFirst(this.#tx.rows(lastSeq, { rootUid })))?.seq ?? 0;
  }

  /** Entries with numbers greater than `afterSeq`, in order, with their rows, at most `limit`. */
  async listEntries(rootUid: string, afterSeq: number, limit: number): Promise<SealedRow[]> {
    const rows = await this.#tx.rows(entries, { rootUid, afterSeq, limit });
    return rows.map(({ seq, auditId, hash, ...row }) => {
      return { seq, auditId, hash, row: row.id === null ? null : (row as StoredAuditRow) };
    });
  }

  findHead(rootUid: string): Awaitable<AuditHead | undefined> {
    return takeFirst(this.#tx.rows(head, { rootUid }));
  }

  putHead(row: AuditHead): Awaitable<void> {
    return discardRows(this.#tx.rows(putHead, row));
  }

  /** Every organisation that has rows, a chain, a head or a checkpoint, in order. */
  async listRoots(): Promise<string[]> {
    const found = new Set<string>();
    for (const statement of roots) for (const { rootUid } of await this.#tx.rows(statement, {})) found.add(rootUid);
    return [...found].sort();
  }
}
