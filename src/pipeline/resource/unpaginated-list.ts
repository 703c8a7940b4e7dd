// Lists of version 1, which have no pages. The rows are read in chunks, each in a unit of work of its own.
import type { DescMessage } from "@bufbuild/protobuf";
import type { UIDPFilter } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import type { ListPosition, ListQuery } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import type { FieldName, Resource } from "./define.js";
import { type ListContext, parseFilter } from "./list-query.js";

/** The fields that filters of version 1 share. */
export interface UnpaginatedRequest {
  readonly id?: string;
  readonly uidp?: UIDPFilter | undefined;
  readonly name?: string;
}

/** How many rows are read in one unit of work. */
const CHUNK_SIZE = 200;

/**
 * Builds the query for the chunk of a list that follows `after`. Rows are in the order of uids, so that a
 * group comes before its descendants.
 *
 * @throws ApiError INVALID_ARGUMENT for a filter that is not a uid.
 */
export function buildChunkQuery(
  { id = "", ...request }: UnpaginatedRequest,
  { visible, also, equals }: Pick<ListContext, "visible" | "also" | "equals">,
  after: ListPosition | undefined,
): ListQuery {
  const violations: FieldViolation[] = [];
  const addViolation = (field: string, rule: string) => violations.push({ field, rule });
  if (id !== "" && !isUidp(id)) addViolation("id", "must be an id, such as the service assigns");
  const { uids, ...rest } = parseFilter(request, addViolation);
  if (violations.length > 0) throw invalidArgument(...violations);
  const named = id === "" ? uids : [id].filter((one) => uids === undefined || uids.includes(one));
  return {
    visible,
    ...(also && { also }),
    filter: { ...rest, ...(named && { uids: named }), ...(equals && { equals }) },
    order: { field: "uid", descending: false },
    skip: 0,
    limit: CHUNK_SIZE,
    uncounted: true,
    ...(after && { after }),
  };
}

/** The parts of a call that a chunk is read with. */
export interface ChunkCall {
  readonly tx: Tx;
  readonly startMs: number;
  visibleGroups(uidp?: UIDPFilter, named?: string): Promise<readonly string[]>;
}

/** A filter of version 1 in the terms of {@link buildChunkQuery}. */
export interface ChunkFilter extends Pick<ListContext, "equals"> {
  readonly request: UnpaginatedRequest;
}

/**
 * Creates the reader of the chunks of a list, which are the `items` of version 1.
 *
 * @param toProto converts a row
 * @param parseFilter converts the filter of the request, where it has fields of its own
 * @param limit how many rows a chunk has; fewer for large rows, because other calls wait while one is read
 */
export function createChunkReader<
  Filter extends UnpaginatedRequest | object,
  D extends DescMessage,
  M extends FieldName<D>,
  Row,
  Item,
>(
  resource: Pick<Resource<D, M, Row>, "table" | "builtIn">,
  toProto: (row: Row, call: ChunkCall) => Item,
  parseFilter: (filter: Filter) => ChunkFilter = (filter) => ({ request: filter }),
  limit = CHUNK_SIZE,
) {
  return async (filter: Filter, call: ChunkCall, after: ListPosition | undefined) => {
    const { request, equals } = parseFilter(filter);
    const visible = await call.visibleGroups(request.uidp, request.id);
    const also = resource.builtIn;
    const query = buildChunkQuery(request, { visible, ...(also && { also }), ...(equals && { equals }) }, after);
    const { rows, next } = await resource.table(call.tx).list({ ...query, limit });
    const items: Item[] = [];
    for (const row of rows) items.push(toProto(row, call));
    return { chunk: { items }, next };
  };
}
