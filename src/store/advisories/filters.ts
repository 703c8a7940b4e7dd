// The filters of lists of advisories: the values of an advisory that each one compares, as rows of advisory_values and as
// conditions on the advisory itself.
import { getTableColumns, type SQL, sql } from "drizzle-orm";
import type { Filter } from "../lists/resource.js";
import { unindexed } from "../lists/statements.js";
import type { RowIn } from "../rows.js";
import { columnOf } from "../statement.js";
import type { AdvisoryEventRow } from "../tables/advisories.js";
import type { Tables } from "../tables/tables.js";

type AdvisoryRow = RowIn<"advisories">;

/** Where a filter finds the values of an advisory. */
type ValueSource = {
  /** The number by which rows of advisory_values name the filter. It never changes. */
  readonly number: number;
} & (
  | { readonly of: "advisory"; readonly column: keyof AdvisoryRow }
  | { readonly of: "aliases" }
  | { readonly of: "events"; readonly column: keyof AdvisoryEventRow }
);

const ofAdvisory = (number: number, column: keyof AdvisoryRow): ValueSource => ({ number, of: "advisory", column });
const ofEvents = (number: number, column: keyof AdvisoryEventRow): ValueSource => ({ number, of: "events", column });

/** The filters that an advisory passes if it has one of some values, by their names in a query. */
export const valueFilters = {
  advisoryIds: ofAdvisory(1, "advisoryId"),
  legacyAdvisoryIds: ofAdvisory(2, "legacyAdvisoryId"),
  artifactNames: ofAdvisory(3, "artifactName"),
  artifactTypes: ofAdvisory(4, "artifactType"),
  artifactArchitectures: ofAdvisory(5, "artifactArchitecture"),
  componentNames: ofAdvisory(6, "componentName"),
  componentTypes: ofAdvisory(7, "componentType"),
  componentLocations: ofAdvisory(8, "componentLocation"),
  latestEventType: ofAdvisory(9, "latestEventType"),
  aliases: { number: 10, of: "aliases" } as ValueSource,
  eventReviewStates: ofEvents(11, "reviewState"),
  eventAuthors: ofEvents(12, "author"),
  eventReviewers: ofEvents(13, "reviewer"),
  eventTypes: ofEvents(14, "type"),
} satisfies Record<string, ValueSource>;

const sources: readonly ValueSource[] = Object.values(valueFilters);

export interface AdvisoryValue {
  readonly filter: number;
  readonly value: string;
}

/** Derives the values of an advisory with these events. */
export function buildValues(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): AdvisoryValue[] {
  return sources.flatMap((source) => {
    const { number: filter } = source;
    if (source.of === "advisory") return { filter, value: String(row[source.column]) };
    const values = source.of === "aliases" ? row.aliases : events.map((event) => String(event[source.column]));
    return [...new Set(values)].map((value) => ({ filter, value }));
  });
}

/** Builds queries for the same values of all advisories: `root_uid`, `filter`, `value` and `number`, one per filter. */
export function selectValues(t: Tables): { readonly filter: number; readonly query: SQL }[] {
  const { advisories, advisoryEvents: events } = t;
  return sources.map((source) => {
    const { number: filter } = source;
    const number = sql.raw(String(filter));
    const select = (value: SQL, from: SQL) =>
      sql`select ${advisories.rootUid} as root_uid, ${number} as filter, ${value} as value, ${advisories.number} as number from ${from}`;
    if (source.of === "advisory") {
      const column = columnOf(advisories, source.column);
      return { filter, query: select(sql`cast(${column} as text)`, sql`${advisories}`) };
    }
    if (source.of === "aliases")
      return { filter, query: select(sql`element.value`, sql`${advisories}, ${t.elementsOf(advisories.aliases)}`) };
    const join = sql`${events} join ${advisories} on ${advisories.uid} = ${events.advisoryUid}`;
    return { filter, query: select(sql`cast(${getTableColumns(events)[source.column]} as text)`, join) };
  });
}

// Conditions on an advisory that was read. Filters take a JSON array of texts.

const hasValue =
  (source: ValueSource) =>
  (name: string): Filter =>
  (t) => {
    const { advisories, advisoryEvents: events } = t;
    if (source.of === "advisory")
      return t.anyOf(sql`cast(${unindexed(columnOf(advisories, source.column))} as text)`, name);
    const [from, isOwn, column] =
      source.of === "aliases"
        ? [t.elementsOf(advisories.aliases), sql`true`, sql`element.value`]
        : [sql`${events}`, sql`${events.advisoryUid} = ${advisories.uid}`, getTableColumns(events)[source.column]];
    return sql`exists (select 1 from ${from} where ${isOwn} and ${t.anyOf(column, name)})`;
  };

// Each of these filters adds a shape of a statement. All others are always part of it, and an empty array disables them.
const adding = ["advisoryIds", "legacyAdvisoryIds", "artifactNames", "componentNames", "aliases"];

/** The filter that events by some authors do not pass; its values are those of `eventAuthors`. */
export const EXCLUDED_AUTHORS = "excludeEventAuthors";
/** The filter that advisories pass whose searched text contains its parameter. */
export const QUERY = "query";

const buildCondition = (name: string, source: ValueSource): Filter => {
  const condition = hasValue(source)(name);
  if (adding.includes(name)) return condition;
  return (t) => sql`(${sql.placeholder(name)} = '[]' or ${condition(t)})`;
};

/** All filters by their names in a query, as conditions. */
export const conditions: Readonly<Record<string, Filter>> = {
  ...Object.fromEntries(Object.entries(valueFilters).map(([name, source]) => [name, buildCondition(name, source)])),
  [EXCLUDED_AUTHORS]: (t) =>
    sql`(${sql.placeholder(EXCLUDED_AUTHORS)} = '[]' or not ${hasValue(valueFilters.eventAuthors)(EXCLUDED_AUTHORS)(t)})`,
  [QUERY]: (t) => t.contains(t.advisories.searched, QUERY),
};
