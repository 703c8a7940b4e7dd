// Turns a list request of version 1, which knows no pages, into what the store
// is asked for one part of the list.
import type { UIDPFilter } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type FieldViolation, invalidArgument } from "../kernel/errors.js";
import { isUidp } from "../kernel/uidp.js";
import type { ListPosition, ListQuery } from "../store/port.js";
import { filterOf, type ListContext } from "./list-query.js";

/** The fields that filters of version 1 share. */
export interface WholeListRequest {
  readonly id?: string;
  readonly uidp?: UIDPFilter | undefined;
  readonly name?: string;
}

/** How many rows are read in one unit of work. */
const PART_SIZE = 500;

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
