// Tags, with their histories and marks.
import { and, asc, eq, gte, lt, notExists } from "drizzle-orm";
import type { Awaitable } from "../awaitable.js";
import { ListedTable } from "../lists/listed-table.js";
import { listPage } from "../lists/page.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind } from "../lists/resource.js";
import { deleteRows, insertMissing, putRow, selectRows } from "../rows.js";
import { buildEquals, type Executor, rowLimit, statement, value } from "../statement.js";
import type { TagFamily, TagMove, TagRow } from "../tables/registry.js";

/** Tags as they are listed. */
export const tagKind = defineListedKind(10, {
  table: "tags",
  parent: "repoUid",
  quota: "tags",
  sorts: { name: "name", updated_at: "updateTimeMs" },
  families: { column: "family", values: [0, 1, 2, 3] },
  filters: { updatedSince: (t) => gte(t.tags.updateTimeMs, value("updatedSince")) },
});

/** The families that lists show by default. */
const USUAL: readonly TagFamily[] = [0];

/** How many tags a part of a deletion deletes: some milliseconds on SQLite. */
const DELETE_BATCH = 20;

const byName = selectRows("tags", ["repoUid", "name"]);
const insertMove = insertMissing("tagHistory");
const deleteMoves = deleteRows("tagHistory", "tagUid");
const findMark = selectRows("tagMarks", ["repoUid", "name"]);
const putMark = putRow("tagMarks", "repoUid", "name");
const deleteMarks = deleteRows("tagMarks", "repoUid");

const moves = statement<{ tagUid: string; fromMs: number; toMs: number; limit: number }, TagMove>((q, t) =>
  q
    .select()
    .from(t.tagHistory)
    .where(
      and(
        buildEquals(t.tagHistory, "tagUid"),
        gte(t.tagHistory.timeMs, value("fromMs")),
        lt(t.tagHistory.timeMs, value("toMs")),
      ),
    )
    .orderBy(asc(t.tagHistory.timeMs), asc(t.tagHistory.digest))
    .limit(rowLimit("limit")),
);
const digestsOfRepo = statement<{ repoUid: string }, { digest: string }>((q, t) =>
  q
    .select({ digest: t.tagHistory.digest })
    .from(t.tags)
    .innerJoin(t.tagHistory, eq(t.tagHistory.tagUid, t.tags.uid))
    .where(buildEquals(t.tags, "repoUid"))
    .groupBy(t.tagHistory.digest),
);
const sweepMarks = statement<{ timeMs: number }>((q, t) =>
  q.delete(t.tagMarks).where(
    and(
      lt(t.tagMarks.timeMs, value("timeMs")),
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
export class Tags extends ListedTable<TagRow> {
  constructor(tx: Executor) {
    super(tx, tagKind);
  }

  override async delete(uid: string): Promise<void> {
    await super.delete(uid);
    await this.run(deleteMoves, { tagUid: uid });
  }

  override list(query: ListQuery): Promise<Page<TagRow>> {
    return listPage<TagRow>(this.tx, tagKind, query, { families: USUAL });
  }

  /** Lists tags of these families, or of all. */
  listAll(query: ListQuery, families?: readonly TagFamily[]): Promise<Page<TagRow>> {
    return listPage<TagRow>(this.tx, tagKind, query, { ...(families && { families }) });
  }

  findByName(repoUid: string, name: string): Awaitable<TagRow | undefined> {
    return this.first(byName, { repoUid, name });
  }

  /** Records the digest that a tag points to; does nothing when it is already recorded. */
  recordMove(move: TagMove): Awaitable<void> {
    return this.run(insertMove, move);
  }

  /** The moves of a tag from `fromMs` to before `toMs`, oldest first, at most `limit`. */
  listMoves(tagUid: string, fromMs: number, toMs: number, limit: number): Awaitable<TagMove[]> {
    return this.all(moves, { tagUid, fromMs, toMs, limit });
  }

  /** Every digest that the existing tags of a repo point to or pointed to. */
  async digestsOf(repoUid: string): Promise<string[]> {
    return (await this.all(digestsOfRepo, { repoUid })).map(({ digest }) => digest);
  }

  /** When a tag was last pushed or deleted according to the registry; undefined: never. */
  async findMark(repoUid: string, name: string): Promise<number | undefined> {
    return (await this.first(findMark, { repoUid, name }))?.timeMs;
  }

  putMark(repoUid: string, name: string, timeMs: number): Awaitable<void> {
    return this.run(putMark, { repoUid, name, timeMs });
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
    await this.run(deleteMarks, { repoUid });
  }

  /** Deletes marks older than `timeMs` of tags that no longer exist. */
  sweepMarks(timeMs: number): Awaitable<void> {
    return this.run(sweepMarks, { timeMs });
  }
}
