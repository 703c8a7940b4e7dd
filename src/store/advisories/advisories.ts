// The store of advisories, with their events and the values by which filters find them.
import { and, asc, eq, inArray } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import { declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { listPage } from "../lists/page.js";
import type { ListLimits } from "../lists/plan.js";
import type { ListQuery, Page } from "../lists/query.js";
import { unindexed } from "../lists/statements.js";
import { deleteRows, ownColumns, putRow, selectRows } from "../rows.js";
import { buildEquals, buildManyValues, padParams, statement, statementFamily, value } from "../statement.js";
import type { AdvisoryEventRow } from "../tables/advisories.js";
import { type AdvisoryValue, buildValues, conditions, QUERY } from "./filters.js";
import { createSearch, type SearchLimits } from "./search.js";

const declared = declareKind({
  number: 12,
  key: "advisories",
  name: "advisories",
  columns: (c, t) => ({
    /** The values of an advisory name it by this number. */
    number: c.rowNumber("number"),
    uid: c.str("uid").notNull().unique(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    advisoryId: c.str("advisory_id").notNull(),
    legacyAdvisoryId: c.str("legacy_advisory_id").notNull(),
    author: c.str("author").notNull(),
    artifactName: c.str("artifact_name").notNull(),
    artifactType: c.str("artifact_type").notNull(),
    artifactArchitecture: c.str("artifact_architecture").notNull(),
    componentName: c.str("component_name").notNull(),
    componentLocation: c.str("component_location").notNull(),
    componentType: c.str("component_type").notNull(),
    aliases: c.json<string[]>("aliases").notNull(),
    /** The JSON of its severities. */
    severities: c.json<object>("severities").notNull(),
    /** The text that a query searches: names and aliases in lower case, one a line. */
    searched: c.str("searched").notNull(),
    /** The type of the latest approved event; 0 where there is none. */
    latestEventType: c.int("latest_event_type").notNull(),
    /** The record it was imported from, so that a record is stored once; empty for others. */
    sourceKey: c.str("source_key").notNull(),
    /** The hash of the imported record. */
    sourceHash: c.str("source_hash").notNull(),
    deleteTimeMs: c.long("delete_time_ms"),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [
    c.index("advisories_by_number").on(t.rootUid, t.number),
    c.uniqueIndex("advisories_id").on(t.advisoryId, t.groupUid),
    c.index("advisories_legacy").on(t.legacyAdvisoryId),
    c.index("advisories_source").on(t.groupUid, t.sourceKey),
  ],
  parent: "groupUid",
  quota: "advisories",
  sorts: { created_at: "createTimeMs", updated_at: "updateTimeMs" },
  filters: conditions,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly advisories: KindTable<typeof declared>;
  }
}

/** An advisory as stored. Its number is known to the store alone. */
export type AdvisoryRow = KindRow<typeof declared>;

const fromSource = selectRows("advisories", ["groupUid", "sourceKey"]);
const fromId = statement<{ groupUid: string; advisoryId: string }, AdvisoryRow>((q, t) =>
  q
    .select(ownColumns(t.advisories))
    .from(t.advisories)
    .where(and(buildEquals(t.advisories, "advisoryId"), eq(unindexed(t.advisories.groupUid), value("groupUid")))),
);
const events = statementFamily<number, Record<string, string>, AdvisoryEventRow>(String, (size) => (q, t) => {
  const uids = Array.from({ length: size }, (_, i) => value(`uid${i}`));
  return q
    .select()
    .from(t.advisoryEvents)
    .where(inArray(t.advisoryEvents.advisoryUid, uids))
    .orderBy(asc(t.advisoryEvents.advisoryUid), asc(t.advisoryEvents.createTimeMs), asc(t.advisoryEvents.uid));
});
const putEvent = putRow("advisoryEvents", "uid");
const deleteEvents = deleteRows("advisoryEvents", "advisoryUid");
const numberOf = statement<{ uid: string }, { number: number }>((q, t) =>
  q.select({ number: t.advisories.number }).from(t.advisories).where(buildEquals(t.advisories, "uid")),
);

type ValueParams = Record<string, string | number>;

const insertValues = statementFamily<number, ValueParams>(String, (size) => (q, t) => {
  const rows = buildManyValues(t.advisoryValues, size, "rootUid", "number");
  return q.insert(t.advisoryValues).values(rows).onConflictDoNothing();
});
const deleteValues = statement<ValueParams>((q, t) => {
  const { advisoryValues: v } = t;
  const isValue = t.isOneOf(v.filter, v.value, "values");
  return q.delete(v).where(and(eq(v.rootUid, value("rootUid")), isValue, eq(v.number, value("number"))));
});

/** Filters read an advisory and its events, so they cost more than those of other kinds. */
const FILTERED: ListLimits = { step: 5_000, slice: 1_500 };
/** How many values one statement inserts at most. On SQLite a statement that writes several costs more than as many. */
const MAX_VALUES = 16;

/**
 * Advisories. Their filters are named in `ListFilter.equals`: see advisories/filters.ts; `query` is a pattern of `like` with
 * a text between two `%`, whose special characters have a backslash.
 */
export class Advisories extends ListedTable<AdvisoryRow> {
  override async insert(row: AdvisoryRow, events: readonly AdvisoryEventRow[] = []): Promise<void> {
    await super.insert(row);
    for (const event of events) await this.run(putEvent, event);
    await this.#insertValues(row.uid, buildValues(row, events));
  }

  /**
   * As for all kinds.
   *
   * @param events its new events; absent: unchanged
   */
  override replace(row: AdvisoryRow, events?: readonly AdvisoryEventRow[]): Promise<void> {
    return this.#change(row.uid, async () => {
      await super.replace(row);
      if (events === undefined) return;
      await this.run(deleteEvents, { advisoryUid: row.uid });
      for (const event of events) await this.run(putEvent, event);
    });
  }

  /** Creates an event of an advisory, or replaces it apart from its creation time. */
  putEvent(event: AdvisoryEventRow): Promise<void> {
    return this.#change(event.advisoryUid, async () => {
      await this.run(putEvent, event);
    });
  }

  override async delete(uid: string): Promise<void> {
    await this.#deleteValues(uid, await this.#readValues(uid));
    await this.run(deleteEvents, { advisoryUid: uid });
    await super.delete(uid);
  }

  // Makes a change and writes which values of the advisory differ after it.
  async #change(uid: string, change: () => Promise<void>): Promise<void> {
    const before = await this.#readValues(uid);
    await change();
    const after = await this.#readValues(uid);
    const without = (all: readonly AdvisoryValue[], others: readonly AdvisoryValue[]) => {
      const known = new Set(others.map((one) => `${one.filter} ${one.value}`));
      return all.filter((one) => !known.has(`${one.filter} ${one.value}`));
    };
    await this.#deleteValues(uid, without(before, after));
    await this.#insertValues(uid, without(after, before));
  }

  async #readValues(uid: string): Promise<AdvisoryValue[]> {
    const row = await this.find(uid);
    return row ? buildValues(row, await this.listEvents([uid])) : [];
  }

  async #insertValues(uid: string, values: readonly AdvisoryValue[]): Promise<void> {
    if (values.length === 0) return;
    const key = await this.#readKey(uid);
    const most = this.tx.counterSlots === 1 ? 1 : MAX_VALUES;
    for (let start = 0; start < values.length; start += most) {
      const some = values.slice(start, start + most);
      // The last value is repeated.
      let size = 1;
      while (size < some.length) size *= 2;
      const params: ValueParams = { ...key };
      for (let i = 0; i < size; i++) {
        const { filter, value } = some[Math.min(i, some.length - 1)] as AdvisoryValue;
        Object.assign(params, { [`filter${i}`]: filter, [`value${i}`]: value });
      }
      await this.run(insertValues(size), params);
    }
  }

  async #deleteValues(uid: string, values: readonly AdvisoryValue[]): Promise<void> {
    if (values.length === 0) return;
    const key = await this.#readKey(uid);
    const byFilter = new Map<number, string[]>();
    for (const { filter, value } of values) byFilter.set(filter, [...(byFilter.get(filter) ?? []), value]);
    for (const entry of byFilter) await this.run(deleteValues, { ...key, values: JSON.stringify(entry) });
  }

  async #readKey(uid: string): Promise<ValueParams> {
    const row = await this.first(numberOf, { uid });
    if (row === undefined) throw new TypeError(`the advisory ${uid} has no row`);
    return { rootUid: rootOf(uid), number: row.number };
  }

  /** @param limits smaller ones in tests */
  override list(
    query: ListQuery,
    limits?: { readonly lists: ListLimits; readonly search?: SearchLimits },
  ): Promise<Page<AdvisoryRow>> {
    const { filter } = query;
    const { [QUERY]: pattern, ...others } = filter.equals ?? {};
    const text = String(pattern ?? "")
      .slice(1, -1)
      .replace(/\\(.)/gs, "$1");
    const equals = pattern === undefined ? filter.equals : { ...others, [QUERY]: text };
    const lists = limits?.lists ?? (equals && FILTERED);
    const options = { search: createSearch(limits?.search), ...(lists && { limits: lists }) };
    return listPage<AdvisoryRow>(
      this.tx,
      advisoryKind,
      { ...query, filter: { ...filter, ...(equals && { equals }) } },
      options,
    );
  }

  findById(groupUid: string, advisoryId: string): Promise<AdvisoryRow | undefined> {
    return this.first(fromId, { groupUid, advisoryId });
  }

  /** The advisory that was imported from this record. */
  findBySource(groupUid: string, sourceKey: string): Promise<AdvisoryRow | undefined> {
    return this.first(fromSource, { groupUid, sourceKey });
  }

  /** The events of these advisories, ordered by advisory, then oldest first. */
  async listEvents(advisoryUids: readonly string[]): Promise<AdvisoryEventRow[]> {
    if (advisoryUids.length === 0) return [];
    const { size, params } = padParams("uid", advisoryUids);
    return this.all(events(size), params);
  }
}

export const advisoryKind = defineKind(declared, Advisories);
