// The store of tags, with their histories and marks.
import { and, asc, eq, gte, lt, notExists, sql } from "drizzle-orm";
import type { Awaitable } from "../awaitable.js";
import { IndexedTable } from "../lists/indexed-table.js";
import { listPage } from "../lists/page.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, ownColumns } from "../lists/resource.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  statement,
  takeFirst,
} from "../statement.js";
import type { TagFamily, TagMark, TagMove, TagRow } from "../tables/registry.js";

/** Tags as they are listed. */
export const tagKind = defineListedKind(10, {
  table: (t) => t.tags,
  parent: "repoUid",
  quota: "tags",
  sorts: { name: "name", updated_at: "updateTimeMs" },
  families: { column: "family", values: [0, 1, 2, 3] },
  filters: { updatedSince: (t) => gte(t.tags.updateTimeMs, sql.placeholder("updatedSince")) },
});

/** The families that lists show by default. */
const USUAL: readonly TagFamily[] = [0];

/** How many tags a part of a deletion deletes: some milliseconds on SQLite. */
const DELETE_BATCH = 20;

const tagByName = statement<{ repoUid: string; name: string }, TagRow>((q, t) =>
  q
    .select(ownColumns(t.tags))
    .from(t.tags)
    .where(buildEquals(t.tags, "repoUid", "name")),
);
const insertMove = statement<TagMove>((q, t) =>
  q.insert(t.tagHistory).values(buildInsertValues(t.tagHistory)).onConflictDoNothing(),
);
const moves = statement<{ tagUid: string; fromMs: number; toMs: number; limit: number }, TagMove>((q, t) =>
  q
    .select()
    .from(t.tagHistory)
    .where(
      and(
        eq(t.tagHistory.tagUid, sql.placeholder("tagUid")),
        gte(t.tagHistory.timeMs, sql.placeholder("fromMs")),
        lt(t.tagHistory.timeMs, sql.placeholder("toMs")),
      ),
    )
    .orderBy(asc(t.tagHistory.timeMs), asc(t.tagHistory.digest))
    .limit(sql.placeholder("limit")),
);
const digestsOfRepo = statement<{ repoUid: string }, { digest: string }>((q, t) =>
  q
    .select({ digest: t.tagHistory.digest })
    .from(t.tags)
    .innerJoin(t.tagHistory, eq(t.tagHistory.tagUid, t.tags.uid))
    .where(buildEquals(t.tags, "repoUid"))
    .groupBy(t.tagHistory.digest),
);
const deleteMoves = statement<{ tagUid: string }>((q, t) =>
  q.delete(t.tagHistory).where(buildEquals(t.tagHistory, "tagUid")),
);

const getMark = statement<Omit<TagMark, "timeMs">, Pick<TagMark, "timeMs">>((q, t) =>
  q
    .select({ timeMs: t.tagMarks.timeMs })
    .from(t.tagMarks)
    .where(buildEquals(t.tagMarks, "repoUid", "name")),
);
const putMark = statement<TagMark>((q, t) =>
  q
    .insert(t.tagMarks)
    .values(buildInsertValues(t.tagMarks))
    .onConflictDoUpdate({
      target: [t.tagMarks.repoUid, t.tagMarks.name],
      set: buildUpsertValues(t.tagMarks, "timeMs"),
    }),
);
const deleteMarks = statement<{ repoUid: string }>((q, t) =>
  q.delete(t.tagMarks).where(buildEquals(t.tagMarks, "repoUid")),
);
const sweepMarks = statement<{ timeMs: number }>((q, t) =>
  q.delete(t.tagMarks).where(
    and(
      lt(t.tagMarks.timeMs, sql.placeholder("timeMs")),
      notExists(
        q
          .select({ uid: t.tags.uid })
          .from(t.tags)
          .where(and(eq(t.tags.repoUid, t.tagMarks.repoUid), eq(t.tags.name, t.tagMarks.name))),
      ),
    ),
  ),
);

/** Tags. `list` without a filter on families contains only usual tags, whose order is stored separately. */
export class Tags extends IndexedTable<TagRow> {
  constructor(tx: Executor) {
    super(tx, tagKind);
  }

  override async delete(uid: string): Promise<void> {
    await super.delete(uid);
    await this.tx.rows(deleteMoves, { tagUid: uid });
  }

  override list(query: ListQuery): Promise<Page<TagRow>> {
    return listPage<TagRow>(this.tx, tagKind, query, { families: USUAL });
  }

  /** Lists tags of these families, or of all. */
  listAll(query: ListQuery, families?: readonly TagFamily[]): Promise<Page<TagRow>> {
    return listPage<TagRow>(this.tx, tagKind, query, { ...(families && { families }) });
  }

  findByName(repoUid: string, name: string): Awaitable<TagRow | undefined> {
    return takeFirst(this.tx.rows(tagByName, { repoUid, name }));
  }

  /** Records the digest that a tag points to; does nothing when it is already recorded. */
  recordMove(move: TagMove): Awaitable<void> {
    return discardRows(this.tx.rows(insertMove, move));
  }

  /** The moves of a tag from `fromMs` to before `toMs`, oldest first, at most `limit`. */
  listMoves(tagUid: string, fromMs: number, toMs: number, limit: number): Awaitable<TagMove[]> {
    return this.tx.rows(moves, { tagUid, fromMs, toMs, limit });
  }

  /** Every digest that the existing tags of a repo point to or pointed to. */
  async digestsOf(repoUid: string): Promise<string[]> {
    return (await this.tx.rows(digestsOfRepo, { repoUid })).map(({ digest }) => digest);
  }

  /** When a tag was last pushed or deleted according to the registry; undefined: never. */
  async findMark(repoUid: string, name: string): Promise<number | undefined> {
    return (await takeFirst(this.tx.rows(getMark, { repoUid, name })))?.timeMs;
  }

  putMark(repoUid: string, name: string, timeMs: number): Awaitable<void> {
    return discardRows(this.tx.rows(putMark, { repoUid, name, timeMs }));
  }

  /** Deletes some tags of a repo with their histories; resolves to how many, which is zero when none is left. */
  async deleteSome(repoUid: string): Promise<number> {
    const uids = await this.findUidsWhere("repoUid", repoUid, DELETE_BATCH);
    for (const uid of uids) await this.delete(uid);
    return uids.length;
  }

  /** Deletes all tags of a repo with their histories and marks. */
  async deleteOf(repoUid: string): Promise<void> {
    while ((await this.deleteSome(repoUid)) > 0);
    await this.tx.rows(deleteMarks, { repoUid });
  }

  /** Deletes marks older than `timeMs` of tags that no longer exist. */
  sweepMarks(timeMs: number): Awaitable<void> {
    return discardRows(this.tx.rows(sweepMarks, { timeMs }));
  }
}
