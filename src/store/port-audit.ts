// What the API reads of the audit log: types only.
import type { Awaitable } from "./port-lists.js";
import type { StoredAuditRow } from "./tables/audit.js";

/** A recorded change, and its number in the chain: null while it is not sealed. */
export type AuditEventRow = StoredAuditRow & { readonly seq: number | null };

/** The columns by which an index finds the rows of an organisation. */
export type AuditFilterColumn = "subjectUid" | "actorUid" | "type" | "requestId";

/** A position in the order of time. */
export interface AuditPosition {
  readonly timeMs: number;
  readonly id: number;
}

/** Which rows of an organisation to read, in the order of their times. */
export interface AuditEventQuery {
  readonly rootUid: string;
  /** The column whose index is read; the order of time alone where undefined. */
  readonly by: { readonly column: AuditFilterColumn; readonly value: string } | undefined;
  /** The first time, inclusive. */
  readonly startMs: number;
  /** The last time, exclusive. */
  readonly endMs: number;
  readonly descending: boolean;
  readonly after: AuditPosition | undefined;
  /** The largest number of rows on the page. */
  readonly limit: number;
  /** What the index does not answer. The rows are read in slices and their number is bounded. */
  readonly matches: ((row: AuditEventRow) => boolean) | undefined;
  /** Called between slices; throws when the caller waits no longer. */
  readonly assertInTime: () => void;
}

/** A page of rows. */
export interface AuditEventPage {
  readonly rows: readonly AuditEventRow[];
  /** Where the next page begins; undefined after the last one. A page may be short although there is a next one. */
  readonly next: AuditPosition | undefined;
}

/** The audit log as the API reads it. */
export interface AuditEventStore {
  get(id: number): Awaitable<AuditEventRow | undefined>;
  page(query: AuditEventQuery): Promise<AuditEventPage>;
  /** The rows of all organisations with higher ids, in the order of ids. */
  after(id: number, limit: number): Awaitable<AuditEventRow[]>;
  /** Those of the rows that exist. */
  withIds(ids: readonly number[]): Awaitable<AuditEventRow[]>;
  /** The highest id; 0 in an empty log. */
  lastId(): Awaitable<number>;
}
