// Turns the list request of any kind into a query of the store, and the page into the fields that list
// responses of all kinds share: pagination (AIP-158) and ordering (AIP-132).
import type { DescMessage } from "@bufbuild/protobuf";
import type { UIDPFilter } from "#gen/chainguard/platform/common/uidp_pb.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { PageTokens } from "../../kernel/page-token.js";
import { isUidp } from "../../kernel/uidp.js";
import type { ListFilter, ListQuery, Page } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import type { EqualsFilter, FieldName, Resource, SortName } from "./define.js";
import { type AddViolation, ListTokens, parsePageSize } from "./paging.js";
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

/** The method, the time and the visible groups of a list request. */
export interface ListContext {
  readonly tx: Tx;
  /** The name of the method: page tokens are bound to it, so a token of one list does not continue another. */
  readonly method: string;
  readonly tokens: PageTokens<Tx>;
  readonly nowMs: number;
  /** The groups whose subtrees the caller sees. */
  readonly visible: readonly string[];
  /** Rows that are visible as well and belong to no group. */
  readonly also?: readonly string[];
  /** Columns that must have these values, from the kind's own filters. */
  readonly equals?: Readonly<Record<string, string | number>>;
}

/** The fields that list responses of every kind share. */
export interface ListEnvelope {
  readonly nextPageToken: string;
  readonly totalCount: bigint;
  readonly skipped: number;
}

export interface ParsedList {
  readonly query: ListQuery;
  /** The shared fields of the response that holds `page`. */
  envelope(page: Page<unknown>): ListEnvelope;
}

const MAX_IDS = 1_000;

/**
 * Parses a list request.
 *
 * @throws ApiError INVALID_ARGUMENT for a negative size or skip, an order the resource does not offer,
 * a filter that is not a uid, or a page token of another list.
 */
export async function parseListQuery<D extends DescMessage, M extends FieldName<D>, Row>(
  resource: Pick<Resource<D, M, Row>, "sort" | "defaultOrder">,
  request: ListRequest,
  { tx, method, tokens, nowMs, visible, also, equals }: ListContext,
): Promise<ParsedList> {
  const violations: FieldViolation[] = [];
  const addViolation = (field: string, rule: string) => violations.push({ field, rule });
  const limit = parsePageSize(request.pageSize, undefined, addViolation);
  if (request.skip < 0) addViolation("skip", "must not be negative");
  const order = parseOrder(
    resource.sort,
    splitOrder(request.orderBy) ?? splitOrder(resource.defaultOrder) ?? [resource.sort[0] ?? "uid"],
    addViolation,
  );
  const filter = { ...parseFilter(request, addViolation), ...(equals && { equals }) };
  if (violations.length > 0) throw invalidArgument(...violations);

  const { skip } = request;
  const pages = new ListTokens(tokens, [method, order, filter], nowMs);
  const reading = pages.read(tx, request.pageToken);
  const cursor = reading && (await reading);
  const query: ListQuery = {
    visible,
    ...(also && { also }),
    filter,
    order,
    limit,
    // A caller repeats the whole query for the next page, so a skip that the token was issued under is not applied
    // again.
    skip: cursor?.skip === skip ? 0 : skip,
    ...(cursor && { after: { key: cursor.key, uid: cursor.uid } }),
  };
  return {
    query,
    envelope: ({ next, total }) => ({
      nextPageToken: pages.create(next, skip),
      totalCount: BigInt(total),
      skipped: skip,
    }),
  };
}

// The times of creation and change have two names each: one for ordering, and that of the field.
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

/**
 * Splits an order into its words: the field and the direction. Further spaces mean nothing (AIP-132).
 *
 * @returns undefined when it has no words
 */
export function splitOrder(orderBy = ""): readonly string[] | undefined {
  const words = orderBy.split(" ").filter((word) => word !== "");
  return words.length === 0 ? undefined : words;
}

function parseOrder(
  sortable: readonly SortName[],
  [name = "", direction = "asc", ...rest]: readonly string[],
  addViolation: AddViolation,
): ListQuery["order"] {
  const field = Object.hasOwn(sortNames, name) ? sortNames[name] : undefined;
  if (field !== undefined && sortable.includes(field) && /^(asc|desc)$/.test(direction) && rest.length === 0) {
    return { field: field === "group" ? "uid" : field, descending: direction === "desc" };
  }
  addViolation("orderBy", `must be one of ${sortable.join(", ")}, optionally followed by " asc" or " desc"`);
  return { field: "uid", descending: false };
}

/** Parses the filters that lists of every kind and version share. */
export function parseFilter(
  { uidp, name = "" }: Pick<ListRequest, "uidp" | "name">,
  addViolation: AddViolation,
): ListFilter {
  const uid = (field: string, value: string) => {
    if (!isUidp(value)) addViolation(`uidp.${field}`, "must be a uid, such as the service assigns");
    return value;
  };
  if (!isPrintable(name)) addViolation("name", "must not contain control characters");
  if (uidp === undefined) return name === "" ? {} : { name };
  if (uidp.ids.length > MAX_IDS) addViolation("uidp.ids", `must be at most ${MAX_IDS}`);
  // All of them share one violation, because errors must fit into a header.
  else if (!uidp.ids.every(isUidp)) addViolation("uidp.ids", "must be a uid, such as the service assigns");
  return {
    ...(name !== "" && { name }),
    ...(uidp.ids.length > 0 && { uids: [...uidp.ids].sort() }),
    ...(uidp.ancestorsOf !== "" && { ancestorsOf: uid("ancestorsOf", uidp.ancestorsOf) }),
    ...(uidp.descendantsOf !== "" && { descendantsOf: uid("descendantsOf", uidp.descendantsOf) }),
    ...(uidp.childrenOf !== "" && { childrenOf: uidp.childrenOf === "/" ? "/" : uid("childrenOf", uidp.childrenOf) }),
    ...(uidp.inRoot && { inRoot: true }),
  };
}

/**
 * Parses the kind's own filters, those that compare a column with a field of the request.
 *
 * @returns undefined where the request sets none of them
 * @throws ApiError INVALID_ARGUMENT naming each field that breaks its rule.
 */
export function parseEqualsFilters(
  { filters = {} }: { readonly filters?: Readonly<Record<string, EqualsFilter>> },
  request: object,
): Record<string, string | number> | undefined {
  const violations: FieldViolation[] = [];
  const equals: Record<string, string | number> = {};
  for (const [field, { column, rule }] of Object.entries(filters)) {
    const value = (request as Readonly<Record<string, string | number | undefined>>)[field];
    if (value === undefined || value === "" || value === 0) continue;
    const broken = rule?.(value, field);
    if (broken === undefined) equals[column] = value;
    else violations.push({ ...broken, field });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return Object.keys(equals).length === 0 ? undefined : equals;
}
