// What a list is asked for, by the query of a GET or the body of a POST to `.search` (RFC 7644, sections 3.4.2 and 3.4.3).
import { isJsonObject } from "../../kernel/strict-json.js";
import { badRequest, quote } from "./error.js";
import { parseFilter } from "./filter.js";
import type { Filter } from "./filter-tree.js";
import type { Projection } from "./project.js";
import type { Resource } from "./resource.js";
import type { AttributeChain, ResourceType } from "./schemas.js";
import { parseSortBy, type SortOrder } from "./sort.js";

const LIST_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
const DEFAULT_COUNT = 100;
/** The most resources of a response. */
export const MAX_COUNT = 200;
const MAX_INDEX = 2 ** 31 - 1;
const MAX_NAMES = 100;

export interface ListParameters extends Projection {
  readonly filter: Filter | undefined;
  /** The place of the first resource of the response; the first of all is 1. */
  readonly startIndex: number;
  readonly count: number;
  readonly sortBy: AttributeChain | undefined;
  readonly sortOrder: SortOrder;
}

/**
 * Reads the parameters of a query.
 *
 * @throws ScimError 400
 */
export function readListQuery(query: URLSearchParams, type: ResourceType): ListParameters {
  return readParameters([...query], type);
}

/**
 * Reads the body of a POST to `.search`.
 *
 * @throws ScimError 400
 */
export function readSearchRequest(body: unknown, type: ResourceType): ListParameters {
  if (!isJsonObject(body)) throw badRequest("invalidSyntax", "the body must be a JSON object");
  return readParameters(
    Object.entries(body).filter(([, value]) => value !== null),
    type,
  );
}

/** Reads `attributes` and `excludedAttributes` of a query for one resource. */
export function readProjection(query: URLSearchParams): Projection {
  const given = collect([...query]);
  return {
    attributes: readNames(given, "attributes"),
    excludedAttributes: readNames(given, "excludedattributes"),
  };
}

// Names of parameters may be in any case of their letters. Unknown ones are ignored.
function readParameters(entries: readonly (readonly [string, unknown])[], type: ResourceType): ListParameters {
  const given = collect(entries);
  const filter = readText(given, "filter");
  const sortBy = readText(given, "sortby");
  const sortOrder = readText(given, "sortorder")?.toLowerCase() ?? "ascending";
  if (sortOrder !== "ascending" && sortOrder !== "descending") {
    throw badRequest("invalidValue", `sortOrder must be ascending or descending, not ${quote(sortOrder)}`);
  }
  return {
    filter: filter === undefined ? undefined : parseFilter(filter, type),
    startIndex: Math.min(Math.max(readInteger(given, "startindex") ?? 1, 1), MAX_INDEX),
    count: Math.min(Math.max(readInteger(given, "count") ?? DEFAULT_COUNT, 0), MAX_COUNT),
    sortBy: sortBy === undefined ? undefined : parseSortBy(sortBy, type),
    sortOrder,
    attributes: readNames(given, "attributes"),
    excludedAttributes: readNames(given, "excludedattributes"),
  };
}

function collect(entries: readonly (readonly [string, unknown])[]): ReadonlyMap<string, unknown> {
  const given = new Map<string, unknown>();
  for (const [name, value] of entries) {
    const key = name.toLowerCase();
    if (given.has(key)) throw badRequest("invalidValue", `${quote(name)} is given twice`);
    given.set(key, value);
  }
  return given;
}

// An empty parameter is none, as that of a form that is not filled in.
function readText(given: ReadonlyMap<string, unknown>, name: string): string | undefined {
  const value = given.get(name);
  if (value === undefined || value === "") return undefined;
  if (typeof value !== "string") throw badRequest("invalidValue", `${name} must be a string`);
  return value;
}

function readInteger(given: ReadonlyMap<string, unknown>, name: string): number | undefined {
  const value = given.get(name);
  if (value === undefined || value === "") return undefined;
  const number = typeof value === "string" && /^[+-]?\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) {
    throw badRequest("invalidValue", `${name} must be a whole number`);
  }
  return number;
}

function readNames(given: ReadonlyMap<string, unknown>, name: string): string[] {
  const value = given.get(name) ?? [];
  const names: unknown[] = typeof value === "string" ? value.split(",") : Array.isArray(value) ? value : [undefined];
  if (names.length > MAX_NAMES || !names.every((one) => typeof one === "string")) {
    throw badRequest("invalidValue", `${name} must be at most ${MAX_NAMES} names of attributes`);
  }
  return names.map((one) => one.trim()).filter((one) => one !== "");
}

/**
 * The body of the response to a list.
 *
 * @param startIndex the place of the first of `resources` among all
 */
export function buildListResponse(
  resources: readonly Resource[],
  totalResults: number,
  startIndex: number,
): Record<string, unknown> {
  return { schemas: [LIST_SCHEMA], totalResults, startIndex, itemsPerPage: resources.length, Resources: resources };
}
