// The bodies that the Get and List handlers of all kinds share.
import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import type { UIDPFilter } from "#gen/chainguard/platform/common/uidp_pb.js";
import { notFound, type ResourceKind } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { PageTokens } from "../../kernel/page-token.js";
import type { ListQuery, Page } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import type { FieldName, Resource, ResourceDefinition, ResourceTable } from "./define.js";
import {
  type ListContext,
  type ListEnvelope,
  type ListRequest,
  parseEqualsFilters,
  parseListQuery,
} from "./list-query.js";

export interface ResourceDeps {
  readonly ids: Ids;
  readonly listResources: ListResources;
  /** All kinds, for deletions. */
  readonly definitions: readonly ResourceDefinition[];
}

type Readable<Row> = ResourceKind & { readonly table: (tx: Tx) => ResourceTable<Row> };

/**
 * Reads a row by its uid.
 *
 * @throws ApiError NOT_FOUND; the pipeline masks it for callers who may not know.
 */
export function getRow<Row>(tx: Tx, resource: Readable<Row>, uid: string): Promise<Row> {
  return getResource(tx, resource, uid, (row) => row);
}

/**
 * Builds the response of a Get: the row as `toProto` converts it.
 *
 * @throws ApiError NOT_FOUND as {@link getRow}.
 */
export async function getResource<Row, Message>(
  tx: Tx,
  resource: Readable<Row>,
  uid: string,
  toProto: (row: Row) => Message,
): Promise<Message> {
  const row = await resource.table(tx).find(uid);
  if (row === undefined) throw notFound(resource, uid);
  return toProto(row);
}

/** Creates the function that reads a row by its uid as `toProto` converts it; undefined where there is none. */
export function findsResource<Row, Message, Call extends { readonly tx: Tx }>(
  resource: Pick<Readable<Row>, "table">,
  toProto: (row: Row, call: Call) => Message,
): (uid: string, call: Call) => Promise<Message | undefined> {
  return async (uid, call) => {
    const row = await resource.table(call.tx).find(uid);
    return row === undefined ? undefined : toProto(row, call);
  };
}

/** The parts of a call that a list is read with. */
export interface ListCall {
  readonly tx: Tx;
  readonly startMs: number;
  readonly method: DescMethod;
  visibleGroups(uidp?: UIDPFilter, named?: string): Promise<readonly string[]>;
}

/** Where one list differs from those of other kinds. */
export interface ListOptions<Row> extends Partial<Pick<ListContext, "method" | "visible">> {
  /** In place of the filters that the definition declares. */
  readonly equals?: ListContext["equals"] | undefined;
  /** A uid that a filter of the kind's own names: pending bindings at it count. */
  readonly named?: string;
  /** Reads the page in place of the table of the kind. */
  readonly readPage?: (query: ListQuery) => Promise<Page<Row>>;
}

/**
 * Builds the response of a List: the page that the request asks for, each row as `toProto` converts it.
 *
 * @throws ApiError INVALID_ARGUMENT as {@link parseListQuery}.
 */
export type ListResources = <D extends DescMessage, M extends FieldName<D>, Row, Message>(
  call: ListCall,
  resource: Resource<D, M, Row>,
  request: ListRequest & { readonly uidp?: UIDPFilter | undefined },
  toProto: (row: Row) => Message,
  options?: ListOptions<Row>,
) => Promise<ListEnvelope & { readonly resources: Message[] }>;

/** Creates {@link ListResources} over the page tokens of the installation. */
export function createListResources(tokens: PageTokens<Tx>): ListResources {
  return async (call, resource, request, toProto, options = {}) => {
    const { tx, startMs } = call;
    const equals = options.equals ?? parseEqualsFilters(resource, request);
    const visible = options.visible ?? (await call.visibleGroups(request.uidp, options.named));
    const list = await parseListQuery(resource, request, {
      tx,
      method: options.method ?? call.method.name,
      tokens,
      nowMs: startMs,
      visible,
      ...(resource.builtIn && { also: resource.builtIn }),
      ...(equals && { equals }),
    });
    const page = await (options.readPage?.(list.query) ?? resource.table(tx).list(list.query));
    const resources = [];
    for (const row of page.rows) resources.push(toProto(row));
    return { resources, ...list.envelope(page) };
  };
}
