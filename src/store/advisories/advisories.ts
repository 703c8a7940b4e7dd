// The store of advisories, with their events, aliases and filters.
import { asc, inArray, type SQL, sql } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Awaitable } from "../awaitable.js";
import { ListedTable } from "../lists/listed-table.js";
import { listPage } from "../lists/page.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, type Filter } from "../lists/resource.js";
import { readByUids } from "../lists/walk.js";
import { ownColumns } from "../rows.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  hasRows,
  padParams,
  statement,
  statementFamily,
  takeFirst,
} from "../statement.js";
import type { AdvisoryAliasRow, AdvisoryEventRow, AdvisoryRow } from "../tables/advisories.js";
import type { Tables } from "../tables/schema.js";
import { indexChanges } from "./indexer.js";
import { searchAdvisories } from "./search.js";
import { changedUids } from "./search-statements.js";

// Filters take a JSON array of strings. Each filter that an index supports adds a shape of the statement.
// All other filters are always part of the statement, and an empty array disables them.
const anyOf = (column: (t: Tables) => AnySQLiteColumn) => (name: string) => (t: Tables) => t.anyOf(column(t), name);

const optional =
  (condition: (name: string) => Filter) =>
  (name: string): Filter =>
  (t) =>
    sql`(${sql.placeholder(name)} = '[]' or ${condition(name)(t)})`;

const advisory = (column: (a: Tables["advisories"]) => AnySQLiteColumn) => anyOf((t) => column(t.advisories));

const anyEvent =
  (column: (e: Tables["advisoryEvents"]) => AnySQLiteColumn) =>
  (name: string) =>
  (t: Tables): SQL =>
    sql`exists (select 1 from ${t.advisoryEvents} where ${t.advisoryEvents.advisoryUid} = ${t.advisories.uid} and ${t.anyOf(column(t.advisoryEvents), name)})`;

const noEvent =
  (column: (e: Tables["advisoryEvents"]) => AnySQLiteColumn) =>
  (name: string) =>
  (t: Tables): SQL =>
    sql`not ${anyEvent(column)(name)(t)}`;

const filters: Readonly<Record<string, (name: string) => Filter>> = {
  advisoryIds: advisory((a) => a.advisoryId),
  legacyAdvisoryIds: advisory((a) => a.legacyAdvisoryId),
  artifactNames: advisory((a) => a.artifactName),
  componentNames: advisory((a) => a.componentName),
  // `exists` would scan all advisories; this reads those with the alias.
  aliases: (name) => (t) =>
    sql`${t.advisories.uid} in (select ${t.advisoryAliases.advisoryUid} from ${t.advisoryAliases} where ${t.anyOf(t.advisoryAliases.alias, name)})`,
  artifactTypes: optional(advisory((a) => a.artifactType)),
  artifactArchitectures: optional(advisory((a) => a.artifactArchitecture)),
  componentTypes: optional(advisory((a) => a.componentType)),
  componentLocations: optional(advisory((a) => a.componentLocation)),
  latestEventType: optional(advisory((a) => a.latestEventType)),
  eventReviewStates: optional(anyEvent((e) => e.reviewState)),
  eventAuthors: optional(anyEvent((e) => e.author)),
  excludeEventAuthors: optional(noEvent((e) => e.author)),
  eventReviewers: optional(anyEvent((e) => e.reviewer)),
  eventTypes: optional(anyEvent((e) => e.type)),
  // A pattern of `like` whose special characters are escaped with a backslash; "%" matches everything.
  query: (name) => (t) => sql`${t.advisories.searched} like ${sql.placeholder(name)} escape '\\'`,
};

/** Advisories as they are listed. */
export const advisoryKind = defineListedKind(12, {
  table: "advisories",
  parent: "groupUid",
  quota: "advisories",
  sorts: { created_at: "createTimeMs", updated_at: "updateTimeMs" },
  filters: Object.fromEntries(Object.entries(filters).map(([name, filter]) => [name, filter(name)])),
});

const fromSource = statement<{ groupUid: string; sourceKey: string }, AdvisoryRow>((q, t) =>
  q
    .select(ownColumns(t.advisories))
    .from(t.advisories)
    .where(buildEquals(t.advisories, "groupUid", "sourceKey")),
);
const events = statementFamily<number, Record<string, string>, AdvisoryEventRow>(String, (size) => (q, t) => {
  const uids = Array.from({ length: size }, (_, i) => sql.placeholder(`uid${i}`));
  return q
    .select()
    .from(t.advisoryEvents)
    .where(inArray(t.advisoryEvents.advisoryUid, uids))
    .orderBy(asc(t.advisoryEvents.advisoryUid), asc(t.advisoryEvents.createTimeMs), asc(t.advisoryEvents.uid));
});
const putEvent = statement<AdvisoryEventRow>((q, t) =>
  q
    .insert(t.advisoryEvents)
    .values(buildInsertValues(t.advisoryEvents))
    .onConflictDoUpdate({
      target: t.advisoryEvents.uid,
      set: buildUpsertValues(t.advisoryEvents, "type", "author", "reviewer", "reviewState", "data", "updateTimeMs"),
    }),
);
const deleteEvents = statement<{ advisoryUid: string }>((q, t) =>
  q.delete(t.advisoryEvents).where(buildEquals(t.advisoryEvents, "advisoryUid")),
);

const insertAlias = statement<AdvisoryAliasRow>((q, t) =>
  q.insert(t.advisoryAliases).values(buildInsertValues(t.advisoryAliases)).onConflictDoNothing(),
);
const deleteAliases = statement<Pick<AdvisoryAliasRow, "advisoryUid">>((q, t) =>
  q.delete(t.advisoryAliases).where(buildEquals(t.advisoryAliases, "advisoryUid")),
);

/** Advisories. Their filters are named in `ListFilter.equals`; see advisories/advisories.ts. Their aliases are indexed in a table of their own. */
export class Advisories extends ListedTable<AdvisoryRow> {
  constructor(tx: Executor) {
    super(tx, advisoryKind);
  }

  override async insert(row: AdvisoryRow): Promise<void> {
    await super.insert(row);
    for (const alias of row.aliases) await this.tx.rows(insertAlias, { alias, advisoryUid: row.uid });
  }

  override async replace(row: AdvisoryRow): Promise<void> {
    await super.replace(row);
    await this.tx.rows(deleteAliases, { advisoryUid: row.uid });
    for (const alias of row.aliases) await this.tx.rows(insertAlias, { alias, advisoryUid: row.uid });
  }

  override async delete(uid: string): Promise<void> {
    await this.tx.rows(deleteAliases, { advisoryUid: uid });
    await this.deleteEvents(uid);
    await super.delete(uid);
  }

  override list(query: ListQuery): Promise<Page<AdvisoryRow>> {
    return listPage<AdvisoryRow>(this.tx, advisoryKind, query, { search: searchAdvisories(advisoryKind) });
  }

  /** The advisory that was imported from this record. */
  findBySource(groupUid: string, sourceKey: string): Awaitable<AdvisoryRow | undefined> {
    return takeFirst(this.tx.rows(fromSource, { groupUid, sourceKey }));
  }

  /** The events of these advisories, ordered by advisory, then oldest first. */
  async listEvents(advisoryUids: readonly string[]): Promise<AdvisoryEventRow[]> {
    if (advisoryUids.length === 0) return [];
    const { size, params } = padParams("uid", advisoryUids);
    return this.tx.rows(events(size), params);
  }

  putEvent(row: AdvisoryEventRow): Awaitable<void> {
    return discardRows(this.tx.rows(putEvent, row));
  }

  /** Whether advisories changed since they were indexed. */
  hasChanges(): Awaitable<boolean> {
    return hasRows(this.tx.rows(changedUids, { limit: 1 }));
  }

  /**
   * Indexes advisories that changed, so that filters find them at once. Lists are right without, but slow after more
   * than a thousand changes.
   *
   * @param limit how many changes to take up at most
   * @returns how many it took up: fewer than `limit` when none is left
   */
  indexChanges(limit: number): Promise<number> {
    const rows = (uids: readonly string[]) => readByUids(this.tx, advisoryKind, uids) as Promise<AdvisoryRow[]>;
    return indexChanges(this.tx, { rows, events: (uids) => this.listEvents(uids) }, limit);
  }

  deleteEvents(advisoryUid: string): Awaitable<void> {
    return discardRows(this.tx.rows(deleteEvents, { advisoryUid }));
  }
}
