// Turns a list request of version 1, which knows no pages, into what the store
// is asked for one part of the list.
import type { UIDPFilter } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import type { Awaitable, ListPosition, ListQuery, Page, Tx } from "../../store/port.js";
import { filterOf, type ListContext } from "./list-query.js";

/** The fields that filters of version 1 share. */
export interface WholeListRequest {
  readonly id?: string;
  readonly uidp?: UIDPFilter | undefined;
  readonly name?: string;
}

/** How many rows are read in one unit of work. */
const PART_SIZE = 200;

/**
 * The query for the part of a list that lies behind `after`, in the order of uids, so that groups come
 * before what lies below them (spec section 9: version 1 has no pages).
 *
 * @throws ApiError INVALID_ARGUMENT for a filter that is no uid.
 */
export function partQuery(
  { id = "", ...request }: WholeListRequest,
  { visible, also, equals }: Pick<ListContext, "visible" | "also" | "equals">,
  after: ListPosition | undefined,
): ListQuery {
  const violations: FieldViolation[] = [];
  const refuse = (field: string, rule: string) => violations.push({ field, description: `${field} ${rule}` });
  if (id !== "" && !isUidp(id)) refuse("id", "must be an id, such as the service assigns");
  const { uids, ...rest } = filterOf(request, refuse);
  if (violations.length > 0) throw invalidArgument(...violations);
  const named = id === "" ? uids : [id].filter((one) => uids === undefined || uids.includes(one));
  return {
    visible,
    ...(also && { also }),
    filter: { ...rest, ...(named && { uids: named }), ...(equals && { equals }) },
    order: { field: "uid", descending: false },
    skip: 0,
    limit: PART_SIZE,
    uncounted: true,
    ...(after && { after }),
  };
}

/** What reading a part takes of a call. */
export interface PartReader {
  readonly tx: Tx;
  readonly startMs: number;
  visibleGroups(uidp?: UIDPFilter, place?: string): Promise<readonly string[]>;
}

/** What a filter asks for, in the terms of {@link partQuery}. */
export interface Asked extends Pick<ListContext, "also" | "equals"> {
  readonly request: WholeListRequest;
}

/**
 * Reads the parts of a list of stored rows that the caller may see; for the `items` of version 1.
 *
 * @param rowsOf what holds the rows
 * @param view how a row is shown
 * @param asked what the filter asks for, where it has fields of its own
 * @param limit how many rows a part has; fewer for rows that may be large, since nobody has a turn meanwhile
 */
export function rowsInParts<Filter extends WholeListRequest | object, Row, Item>(
  rowsOf: (tx: Tx) => { list(query: ListQuery): Awaitable<Page<Row>> },
  view: (row: Row, call: PartReader) => Awaitable<Item>,
  asked: (filter: Filter) => Asked = (filter) => ({ request: filter }),
  limit = PART_SIZE,
) {
  return async (filter: Filter, call: PartReader, after: ListPosition | undefined) => {
    const { request, ...context } = asked(filter);
    const visible = await call.visibleGroups(request.uidp, request.id);
    const query = partQuery(request, { visible, ...context }, after);
    const { rows, next } = await rowsOf(call.tx).list({ ...query, limit });
    const items: Item[] = [];
    for (const row of rows) items.push(await view(row, call));
    return { chunk: { items }, next };
  };
}
