// What the endpoint needs of each type of resource. The endpoint speaks HTTP and knows no type; a collection stores one.
import type { Tx } from "../store/transaction.js";
import type { Actor } from "./changes.js";
import { ScimError } from "./protocol/error.js";
import type { ListParameters } from "./protocol/list.js";
import type { PatchOperation } from "./protocol/patch.js";
import type { Resource } from "./protocol/resource.js";
import type { ResourceType } from "./protocol/schemas.js";

/** The columns that all resources have. */
export interface StoredResource {
  readonly uid: string;
  readonly providerUid: string;
  readonly revision: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** What a unit of work that changes something needs to know of its request. */
export interface ChangeContext {
  readonly providerUid: string;
  readonly actor: Actor;
  readonly nowMs: number;
}

/** Runs a unit of work of a request. Each proves the credential again. */
export type Write = <T>(unit: (tx: Tx, context: ChangeContext) => Promise<T>) => Promise<T>;

/** Which resource a request changes. */
export interface Target {
  readonly id: string;
  /** The value of the header field; undefined where there is none. */
  readonly ifMatch: string | undefined;
}

/** What a request changes a resource to. */
export type Change =
  | { readonly by: "replacement"; readonly resource: Resource }
  | { readonly by: "operations"; readonly operations: readonly PatchOperation[] };

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** How many match, on all pages. */
  readonly total: number;
}

/** The resources of one type. */
export interface Collection<Row extends StoredResource> {
  readonly type: ResourceType;
  list(tx: Tx, providerUid: string, parameters: ListParameters): Promise<Page<Row>>;
  find(tx: Tx, providerUid: string, id: string): Promise<Row | undefined>;
  create(write: Write, resource: Resource): Promise<Row>;
  /** @throws ScimError 404, 412 */
  change(write: Write, target: Target, change: Change): Promise<Row>;
  /** @throws ScimError 404, 412 */
  delete(write: Write, target: Target): Promise<void>;
  /** The attributes of a resource without `schemas`, `id` and `meta`. */
  show(tx: Tx, row: Row, view: View): Promise<Resource>;
}

/** What a response shows. */
export interface View {
  /** Whether it has the attribute: one that takes long to read is left out otherwise. */
  readonly isWanted: (attribute: string) => boolean;
  /** The URL of the endpoint, by which resources refer to others. */
  readonly endpointUrl: string;
}

/**
 * Reads the resource that a request changes, in the version that it names.
 *
 * @throws ScimError 404, 412
 */
export async function requireTarget<Row extends StoredResource>(
  { find, type }: Pick<Collection<Row>, "find" | "type">,
  tx: Tx,
  providerUid: string,
  { id, ifMatch }: Target,
): Promise<Row> {
  const row = await find(tx, providerUid, id);
  if (row === undefined) throw notFound(type, id);
  if (ifMatch === undefined || matchesVersion(row, ifMatch)) return row;
  throw new ScimError(412, `the resource has changed: its version is ${versionOf(row)}`);
}

/** 404: there is no resource with an id. */
export function notFound({ name }: ResourceType, id: string): ScimError {
  return new ScimError(404, `there is no ${name} with the id ${id}`);
}

/** The id of a resource: the last segment of its uid. */
export function idOf({ uid }: Pick<StoredResource, "uid">): string {
  return uid.slice(uid.lastIndexOf("/") + 1);
}

/** The uid of the resource with an id; undefined for what cannot be one. */
export function uidOf(providerUid: string, id: string): string | undefined {
  return /^[0-9a-f]{16}$/.test(id) ? `${providerUid}/${id}` : undefined;
}

/** The version of a resource (RFC 7644, section 3.14). */
export function versionOf({ revision }: Pick<StoredResource, "revision">): string {
  return `W/"${revision}"`;
}

/** Whether a header field with versions names that of a resource. They are weak, and compared as such (RFC 9110, section 8.8.3.2). */
export function matchesVersion(row: Pick<StoredResource, "revision">, field: string): boolean {
  const own = versionOf(row).slice(2);
  return field.split(",").some((one) => ["*", own].includes(one.trim().replace(/^W\//, "")));
}

/** The attribute `meta` of a resource. */
export function buildMeta(row: StoredResource, { name, endpoint }: ResourceType, endpointUrl: string): Resource {
  return {
    resourceType: name,
    created: new Date(row.createTimeMs).toISOString(),
    lastModified: new Date(row.updateTimeMs).toISOString(),
    location: `${endpointUrl}${endpoint}/${idOf(row)}`,
    version: versionOf(row),
  };
}
