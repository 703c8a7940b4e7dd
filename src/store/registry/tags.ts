// Tags, with their histories and marks.
import { and, asc, eq, gt, gte, inArray, lt, notExists, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { countRow } from "../lists/counters.js";
import { ListedTable } from "../lists/listed-table.js";
import { listPage } from "../lists/page.js";
import type { ListQuery, Page } from "../lists/query.js";
import type { Filter } from "../lists/resource.js";
import { deleteRows, deleteSome, insertMissing, putRow, selectRows } from "../rows.js";
import { buildEquals, padParams, rowLimit, statement, statementFamily, value } from "../statement.js";
import type { TagMark, TagMove } from "../tables/registry.js";
import { type TagFamily, tagFamilies } from "./tag-families.js";

const filters: Readonly<Record<string, Filter>> = {
  updatedSince: (t) => gte(t.tags.updateTimeMs, value("updatedSince")),
};

const declared = declareKind({
  number: 10,
  key: "tags",
  name: "tags",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    repoUid: c
      .str("repo_uid")
      .notNull()
      .references(() => t.repos.uid),
    rootUid: c.str("root_uid").notNull(),
    name: c.str("name").notNull(),
    /** The digest of the manifest that it points to; empty for a tag of version 1 that has no image yet. */
    digest: c.str("digest").notNull(),
    family: c.int("family").notNull(),
    deprecated: c.bool("deprecated").notNull(),
    bundles: c.json<string[]>("bundles").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [c.uniqueIndex("tags_name").on(t.repoUid, t.name), c.index("tags_digest").on(t.digest, t.uid)],
  parent: "repoUid",
  quota: "tags",
  sorts: { name: "name", updated_at: "updateTimeMs" },
  families: { column: "family", values: tagFamilies },
  filters,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly tags: KindTable<typeof declared>;
  }
}

export type TagRow = KindRow<typeof declared>;

/** The families that lists show by default. */
const USUAL: readonly TagFamily[] = [0];

/** How many rows a part of a deletion deletes: some milliseconds on SQLite. */
const DELETE_BATCH = 64;
/** How many marks one step of the sweep examines. */
const SWEPT_MARKS = 1_000;

const byName = selectRows("tags", ["repoUid", "name"]);
const insertMove = insertMissing("tagHistory");
const deleteMoves = deleteRows("tagHistory", "tagUid");
/** Comes after all uids. */
const AFTER_ALL = "g";

/** A place in the order of marks. */
export type MarkPlace = Pick<TagMark, "repoUid" | "name">;

const findMark = selectRows("tagMarks", ["repoUid", "name"]);
const putMark = putRow("tagMarks", "repoUid", "name");
const deleteTags = deleteSome("tags", "repoUid", ["uid"], ["uid", "family"]);
const deleteMarks = deleteSome("tagMarks", "repoUid", ["repoUid", "name"], ["name"]);

const withDigest = statement<{ digest: string; after: string; end: string; limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.tags.uid })
    .from(t.tags)
    .where(and(buildEquals(t.tags, "digest"), gt(t.tags.uid, value("after")), lt(t.tags.uid, value("end"))))
    .orderBy(asc(t.tags.uid))
    .limit(rowLimit("limit")),
);
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
const deleteMovesOf = statementFamily<number, Record<string, string>>(String, (size) => (q, t) => {
  const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
  return q.delete(t.tagHistory).where(inArray(t.tagHistory.tagUid, uids));
});

const nextMark = statement<MarkPlace & { skip: number }, MarkPlace>((q, t) => {
  const { repoUid, name } = t.tagMarks;
  return q
    .select({ repoUid, name })
    .from(t.tagMarks)
    .where(sql`(${repoUid}, ${name}) > (${value("repoUid")}, ${value("name")})`)
    .orderBy(asc(repoUid), asc(name))
    .limit(rowLimit(1))
    .offset(rowLimit("skip"));
});
const sweepMarks = statement<MarkPlace & { timeMs: number; endRepoUid: string; endName: string }>((q, t) =>
  q.delete(t.tagMarks).where(
    and(
      sql`(${t.tagMarks.repoUid}, ${t.tagMarks.name}) > (${value("repoUid")}, ${value("name")})`,
      sql`(${t.tagMarks.repoUid}, ${t.tagMarks.name}) <= (${value("endRepoUid")}, ${value("endName")})`,
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

/** Tags. `list` without a filter on families contains only usual tags. */
export class Tags extends ListedTable<TagRow> {
  override async delete(uid: string): Promise<void> {
    await super.delete(uid);
    await this.run(deleteMoves, { tagUid: uid });
  }

  override list(query: ListQuery): Promise<Page<TagRow>> {
    return listPage<TagRow>(this.tx, this.kind, query, { families: USUAL });
  }

  /** Lists tags of these families, or of all. */
  listAll(query: ListQuery, families?: readonly TagFamily[]): Promise<Page<TagRow>> {
    return listPage<TagRow>(this.tx, this.kind, query, { ...(families && { families }) });
  }

  findByName(repoUid: string, name: string): Promise<TagRow | undefined> {
    return this.first(byName, { repoUid, name });
  }

  /**
   * The uids of the tags below a group or a repo that point to a digest, in their order, from the first one after `after`, at
   * most `limit`.
   */
  async findByDigest(digest: string, top: string, after: string, limit: number): Promise<string[]> {
    const rows = await this.all(withDigest, { digest, after: after > top ? after : top, end: `${top}0`, limit });
    return rows.map(({ uid }) => uid);
  }

  /** Records the digest that a tag points to; does nothing when it is already recorded. */
  recordMove(move: TagMove): Promise<void> {
    return this.run(insertMove, move);
  }

  /** The moves of a tag from `fromMs` to before `toMs`, oldest first, at most `limit`. */
  listMoves(tagUid: string, fromMs: number, toMs: number, limit: number): Promise<TagMove[]> {
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

  putMark(repoUid: string, name: string, timeMs: number): Promise<void> {
    return this.run(putMark, { repoUid, name, timeMs });
  }

  /**
   * Deletes some tags of a repo with their histories, or when it has none, some of their marks.
   *
   * @returns how many rows; zero when none is left
   */
  async deleteSome(repoUid: string): Promise<number> {
    const tags = await this.all(deleteTags, { repoUid, limit: DELETE_BATCH });
    if (tags.length === 0) return (await this.all(deleteMarks, { repoUid, limit: DELETE_BATCH })).length;
    const { size, params } = padParams(
      "uid",
      tags.map(({ uid }) => uid),
    );
    await this.run(deleteMovesOf(size), params);
    for (const family of new Set(tags.map((tag) => tag.family))) {
      const ofFamily = tags.filter((tag) => tag.family === family);
      if (ofFamily[0]) await countRow(this.tx, this.kind, ofFamily[0], -ofFamily.length);
    }
    return tags.length;
  }

  /** Deletes all tags of a repo with their histories and marks. */
  async deleteOf(repoUid: string): Promise<void> {
    while ((await this.deleteSome(repoUid)) > 0);
  }

  /**
   * Deletes marks older than `timeMs` of tags that no longer exist, among the next ones after a place.
   *
   * @returns where to continue; undefined at the end
   */
  async sweepMarks(timeMs: number, after: MarkPlace = { repoUid: "", name: "" }): Promise<MarkPlace | undefined> {
    const last = await this.first(nextMark, { ...after, skip: SWEPT_MARKS - 1 });
    const { repoUid, name } = last ?? { repoUid: AFTER_ALL, name: "" };
    await this.run(sweepMarks, { ...after, endRepoUid: repoUid, endName: name, timeMs });
    return last;
  }
}

export const tagKind = defineKind(declared, Tags);
