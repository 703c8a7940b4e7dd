// Turns a list request of any kind into what the store is asked, and the page
// found into the answer's envelope (spec section 4, pagination and ordering).
import type { DescMessage } from "@bufbuild/protobuf";
import type { UIDPFilter } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { isUidp } from "../../kernel/uidp.js";
import type { ListFilter, ListQuery, Page } from "../../store/port.js";
import type { FieldName, Resource, SortName } from "./define.js";
import { isPrintable } from "./rules.js";

/** The fields that list requests of every kind share. */
export interface ListRequest {
  readonly uidp?: UIDPFilter | undefined;
  readonly name?: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly orderBy: string;
  readonly skip: number;
}

/** Where and when a list is asked for. */
export interface ListContext {
  /** The full name of the method: a token of one list does not continue another. */
  readonly method: string;
  readonly tokens: PageTokens;
  readonly nowMs: number;
  /** The groups whose subtrees the caller sees. */
  readonly visible: readonly string[];
  /** Things visible besides, that lie in no group. */
  readonly also?: readonly string[];
  /** Columns that must have these values, from the filters of the kind's own. */
  readonly equals?: Readonly<Record<string, string | number>>;
}

/** The fields that list answers of every kind share. */
export interface ListEnvelope {
  readonly nextPageToken: string;
  readonly totalCount: bigint;
  readonly skipped: number;
}

/** A list request understood. */
export interface PreparedList {
  readonly query: ListQuery;
  /** The envelope of the answer that shows `page`. */
  envelope(page: Page<unknown>): ListEnvelope;
}

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 200;
const MAX_IDS = 1_000;

/**
 * Understands a list request.
 *
 * @throws ApiError INVALID_ARGUMENT for a negative size or skip, an order the resource does not offer,
 * a filter that is no uid, or a page token that is not of this list.
 */
export function listQueryOf<D extends DescMessage, M extends FieldName<D>>(
  resource: Resource<D, M>,
  request: ListRequest,
  { method, tokens, nowMs, visible, also, equals }: ListContext,
): PreparedList {
  const violations: FieldViolation[] = [];
  const refuse = (field: string, rule: string) => violations.push({ field, description: `${field} ${rule}` });
  if (request.pageSize < 0) refuse("pageSize", "must not be negative");
  if (request.skip < 0) refuse("skip", "must not be negative");
  const order = orderOf(resource.sort, request.orderBy || resource.defaultOrder || (resource.sort[0] ?? "uid"), refuse);
  const filter = { ...filterOf(request, refuse), ...(equals && { equals }) };
  if (violations.length > 0) throw invalidArgument(...violations);

  const binding = JSON.stringify([method, order, filter]);
  const { skip } = request;
  const cursor = request.pageToken === "" ? undefined : tokens.read(request.pageToken, binding, nowMs);
  const query: ListQuery = {
    visible,
    ...(also && { also }),
    filter,
    order,
    limit: pageSizeOf(request.pageSize),
    // Rule 1 repeats the query: the skip that the token has behind it is not applied again.
    skip: cursor?.skip === skip ? 0 : skip,
    ...(cursor && { after: { key: cursor.key, uid: cursor.uid } }),
  };
  return {
    query,
    envelope: ({ next, total }) => ({
      nextPageToken: next ? tokens.make({ ...next, skip }, binding, nowMs) : "",
      totalCount: BigInt(total),
      skipped: skip,
    }),
  };
}

/**
 * How many elements a page holds at most.
 *
 * @param pageSize what the request says; 0 for nothing
 * @throws ApiError INVALID_ARGUMENT when it is negative.
 */
export function pageSizeOf(pageSize: number): number {
  if (pageSize < 0) throw invalidArgument({ field: "pageSize", description: "pageSize must not be negative" });
  return Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

/** Told of a field and the rule that it breaks. */
export type Refuse = (field: string, rule: string) => void;

// Creation and change go by both of their names: as the spec orders by and as the field is called.
const sortNames: Readonly<Record<string, SortName>> = {
  uid: "uid",
  group: "group",
  name: "name",
  created_at: "created_at",
  createdAt: "created_at",
  create_time: "created_at",
  createTime: "created_at",
  updated_at: "updated_at",
  updatedAt: "updated_at",
  update_time: "updated_at",
  updateTime: "updated_at",
};

function orderOf(offered: readonly SortName[], orderBy: string, refuse: Refuse): ListQuery["order"] {
  const [name = "", direction = "asc", ...rest] = orderBy.split(" ");
  const field = Object.hasOwn(sortNames, name) ? sortNames[name] : undefined;
  if (field !== undefined && offered.includes(field) && /^(asc|desc)$/.test(direction) && rest.length === 0) {
    return { field: field === "group" ? "uid" : field, descending: direction === "desc" };
  }
  refuse("orderBy", `must be one of ${offered.join(", ")}, optionally followed by " asc" or " desc"`);
  return { field: "uid", descending: false };
}

/** The filters that lists of every kind and version share. */
export function filterOf({ uidp, name = "" }: Pick<ListRequest, "uidp" | "name">, refuse: Refuse): ListFilter {
  const uid = (field: string, value: string) => {
    if (!isUidp(value)) refuse(`uidp.${field}`, "must be a uid, such as the service assigns");
    return value;
  };
  if (!isPrintable(name)) refuse("name", "must not contain control characters");
  if (uidp === undefined) return name === "" ? {} : { name };
  if (uidp.ids.length > MAX_IDS) refuse("uidp.ids", `must be at most ${MAX_IDS}`);
  // One violation for all of them: errors have to fit into a header.
  else if (!uidp.ids.every(isUidp)) refuse("uidp.ids", "must be a uid, such as the service assigns");
  return {
    ...(name !== "" && { name }),
    ...(uidp.ids.length > 0 && { uids: [...uidp.ids].sort() }),
    ...(uidp.ancestorsOf !== "" && { ancestorsOf: uid("ancestorsOf", uidp.ancestorsOf) }),
    ...(uidp.descendantsOf !== "" && { descendantsOf: uid("descendantsOf", uidp.descendantsOf) }),
    ...(uidp.childrenOf !== "" && { childrenOf: uidp.childrenOf === "/" ? "/" : uid("childrenOf", uidp.childrenOf) }),
    ...(uidp.inRoot && { inRoot: true }),
  };
}
