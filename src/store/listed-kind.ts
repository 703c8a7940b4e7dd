import type { Tables } from "./tables.js";

/** The columns that the ordered list needs of a listed kind's table. */
export type ListedTable = Tables["groups"];

/** A field a list can be ordered by, and where it is stored. */
export interface SortField {
  /** Where in the kind's declaration it stands, which names its list. */
  readonly list: number;
  readonly type: "text" | "time";
  readonly column: "name" | "createTimeMs" | "updateTimeMs";
}

/** What a kind declares to be kept in ordered lists; `uid` order needs no declaration. */
export interface ListedKind {
  readonly table: (tables: Tables) => ListedTable;
  /** Whether a row stands in its own subtree, as a group does. */
  readonly listsItself: boolean;
  /** Names the counters of the kind: of subtrees, and one up, of children. */
  readonly counter: number;
  readonly sorts: Readonly<Record<string, SortField>>;
}

/** Declares a kind. `id` is the kind's own for ever: it is part of stored keys. */
export function listedKind(
  id: number,
  kind: Omit<ListedKind, "counter" | "sorts"> & {
    readonly sorts: readonly (Omit<SortField, "list"> & { readonly field: string })[];
  },
): ListedKind {
  const sorts = kind.sorts.map(({ field, ...sort }, i) => [field, { ...sort, list: id * 8 + i }] as const);
  return { ...kind, counter: id * 2, sorts: Object.fromEntries(sorts) };
}
