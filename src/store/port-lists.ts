// What the lists of all kinds have in common, and the interface of stores that keep their rows in lists.

/** A value that is available at once (SQLite) or later (PostgreSQL). */
export type Awaitable<T> = T | Promise<T>;

/** A query for one page of a list; the resource kit builds it from a request. */
export interface ListQuery {
  /** The groups whose subtrees the caller may see, none within another. */
  readonly visible: readonly string[];
  /** The uids of further visible rows, which belong to no group: the built-in roles. */
  readonly also?: readonly string[];
  readonly filter: ListFilter;
  readonly order: { readonly field: string; readonly descending: boolean };
  /** The position of the last row of the page before. */
  readonly after?: ListPosition;
  /** How many rows to skip first. */
  readonly skip: number;
  /** How many rows the page holds at most. */
  readonly limit: number;
  /** Saves the cost of counting the rows on all pages: the total is 0. */
  readonly uncounted?: boolean;
}

/** A position in an ordered list: the sort key and the uid of a row. */
export interface ListPosition {
  readonly key: string | number;
  readonly uid: string;
}

/** Restricts a list; all that are set must hold. */
export interface ListFilter {
  readonly name?: string;
  readonly uids?: readonly string[];
  readonly ancestorsOf?: string;
  readonly descendantsOf?: string;
  /** A uid, or "/" for root groups. */
  readonly childrenOf?: string;
  readonly inRoot?: boolean;
  /** Columns that must have these values; at a cost bounded by the visible subtrees. */
  readonly equals?: Readonly<Record<string, string | number>>;
}

/** One page of a list. */
export interface Page<Row> {
  readonly rows: Row[];
  /** The position of the last row when more follow, else undefined. */
  readonly next: ListPosition | undefined;
  /** How many rows match on all pages. */
  readonly total: number;
}

/** The store of a kind whose rows are kept in ordered lists. */
export interface IndexedStore<Row> {
  find(uid: string): Awaitable<Row | undefined>;
  insert(row: Row): Awaitable<void>;
  /** Makes the stored row equal to `row`; the uid and the creation time must be unchanged. */
  replace(row: Row): Awaitable<void>;
  /** Does nothing when the row does not exist. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<Row>>;
  /** The uids of rows whose `column` has this value, at most `limit`. */
  findUidsWhere(column: keyof Row & string, value: string, limit?: number): Awaitable<string[]>;
}

/** As {@link IndexedStore}, for a kind whose rows change by patches. */
export interface PatchStore<Row, Patch> extends Pick<IndexedStore<Row>, "find" | "insert" | "delete" | "list"> {
  /** Applies `patch` to the row and returns it, or undefined when it does not exist. */
  update(uid: string, patch: Patch, nowMs: number): Awaitable<Row | undefined>;
}
