// What a list is asked for, and its answer. The resource kit builds queries from requests.

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
