// What the lists of all kinds have in common, and the stores that are no more than them.

/** A value that may be there at once (SQLite) or later (PostgreSQL). */
export type Awaitable<T> = T | Promise<T>;

/** What a list asks for; the resource kit makes it from a request. */
export interface ListQuery {
  /** The groups whose subtrees the caller sees, none within another. */
  readonly visible: readonly string[];
  /** Things visible besides, that lie in no group: the built-in roles. */
  readonly also?: readonly string[];
  readonly filter: ListFilter;
  readonly order: { readonly field: string; readonly descending: boolean };
  /** The last row of the page before: its sort key and uid. */
  readonly after?: ListPosition;
  /** How many rows to pass over first. */
  readonly skip: number;
  /** How many rows the page holds at most. */
  readonly limit: number;
  /** Nobody needs to know how many rows there are on all pages: the total is 0. */
  readonly uncounted?: boolean;
}

/** A position in an ordered list. */
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
  /** A uid, or "/" for the place above all roots. */
  readonly childrenOf?: string;
  readonly inRoot?: boolean;
  /** Columns that must have these values; at a cost bounded by the visible subtrees. */
  readonly equals?: Readonly<Record<string, string | number>>;
}

/** One page of a list. */
export interface Page<Row> {
  readonly rows: Row[];
  /** The position after the last row when more follow, else undefined. */
  readonly next: ListPosition | undefined;
  /** How many rows match on all pages. */
  readonly total: number;
}

/** What stores of listed kinds have in common. */
export interface ListedStore<Row> {
  get(uid: string): Awaitable<Row | undefined>;
  insert(row: Row): Awaitable<void>;
  /** Makes the stored row equal to `row`, which has the uid and creation time it had. */
  replace(row: Row): Awaitable<void>;
  /** Does nothing when it is not there. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<Row>>;
  /** The uids of those whose `column` has this value, at most `limit`. */
  uidsWhere(column: keyof Row & string, value: string, limit?: number): Awaitable<string[]>;
}
