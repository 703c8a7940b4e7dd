// Random requests, made of the document of the service: each begins as one that
// should be accepted, and some are then spoilt.
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import type { AnyObject, PlacedOperation } from "../support/openapi/document.js";
import { atRef } from "../support/openapi/document.js";
import type { Random } from "../support/openapi/random.js";
import {
  collectionOf,
  isCreate,
  type PlainRequest,
  queryPart,
  requestOf,
  withQuery,
} from "../support/openapi/request.js";
import { valueFor } from "../support/openapi/values.js";
import type { FuzzWorld } from "./fuzz-world.js";

/** A request as it goes out. */
export interface FuzzRequest {
  method: string;
  /** Path and query. */
  path: string;
  readonly headers: Record<string, string>;
  body: string | Buffer | undefined;
}

const NAME = "abcdefghijklmnopqrstuvwxyz0123456789 ._-";
const TEXT = "abc XYZ äß漢字😀'\"\\/<>&%{}[]";
const ROLES = ["viewer", "editor", "owner"].map(builtinRoleUid);

/** A request for `operation` that should be accepted, unless chance chose what does not fit. */
export function validRequest(world: FuzzWorld, operation: PlacedOperation, random: Random): FuzzRequest {
  const values = valuesFor(world, operation, random);
  const request = requestOf(operation, values);
  const body = bodyOf(world, operation, request, random);
  // Pages that an answer led to are known by the operation.
  const page = random.chance(0.3) ? world.known.pick(operation.operationId, random) : undefined;
  return {
    method: request.method,
    path: page ?? withQuery(request.path, optionalParameters(world, operation, random)),
    headers: {
      authorization: `Bearer ${random.chance(0.95) ? world.owner : random.pick(world.others)}`,
      ...(body !== undefined && { "content-type": "application/json" }),
    },
    body,
  };
}

// What parameters and properties stand for, by their names.
function valuesFor(world: FuzzWorld, operation: PlacedOperation, random: Random): (name: string) => unknown {
  const { organisation, known } = world;
  const collection = collectionOf(operation);
  const role = random.pick(ROLES);
  const place = isCreate(operation) ? operation.parameters[0]?.name : undefined;
  const parent = parentFor(world, collection, random);
  const names = known.pick(collection, random) ?? `${organisation}/0123456789abcdef`;
  return (name) => {
    if (name === place) return parent;
    switch (name) {
      case "uid":
        return names;
      case "parent":
        return collection === "externalGroupRoleMappings" ? parentOf(names) : parent;
      case "names":
        return [names];
      case "group":
      case "group_uid":
      case "scope":
        return organisation;
      case "identity_provider_uid":
        return known.pick("identityProviders", random) ?? organisation;
      case "identityUid":
        return known.pick("identities", random) ?? organisation;
      case "roleUid":
        return role;
      case "name":
        return random.text(NAME, 12, 1);
      case "description":
        return random.text(TEXT, 40);
      default:
        return undefined;
    }
  };
}

// Identities lie in the organisation itself, so that they can be bound everywhere.
function parentFor({ organisation, known }: FuzzWorld, collection: string, random: Random): string {
  if (collection === "identityProviders" || collection === "identities") return organisation;
  if (collection === "externalGroupRoleMappings") return known.pick("identityProviders", random) ?? organisation;
  return (random.chance(0.7) ? known.pick("groups", random) : undefined) ?? organisation;
}

function bodyOf(
  { document }: FuzzWorld,
  operation: PlacedOperation,
  { body }: PlainRequest,
  random: Random,
): string | undefined {
  if (body === undefined) return undefined;
  const { schema } = operation.requestBody?.content["application/json"] ?? {};
  if (random.chance(0.1) && schema !== undefined && typeof body === "object" && body !== null) {
    const more = resolved(document, schema);
    const properties = Object.entries((more.properties ?? {}) as Record<string, AnyObject>);
    if (properties.length > 0) {
      const [name, property] = random.pick(properties);
      return JSON.stringify({ ...body, [name]: valueFor(property, document, random) });
    }
  }
  if (random.chance(0.1) && operation.method === "PATCH") return random.pick(["{}", '{"description":""}']);
  return JSON.stringify(body);
}

function resolved(document: FuzzWorld["document"], schema: AnyObject): AnyObject {
  return typeof schema.$ref === "string" ? (atRef(document, schema.$ref) as AnyObject) : schema;
}

function optionalParameters(world: FuzzWorld, { parameters }: PlacedOperation, random: Random): string[] {
  return parameters.flatMap(({ name, required, schema }) => {
    if (required === true || !random.chance(0.15)) return [];
    const value = parameterValue(world, name, random) ?? valueFor(schema, world.document, random);
    return (Array.isArray(value) ? value : [value]).map((one) => queryPart(name, one));
  });
}

function parameterValue({ organisation, known }: FuzzWorld, name: string, random: Random): unknown {
  switch (name) {
    case "uidp.ancestors_of":
    case "uidp.descendants_of":
    case "uidp.ids":
    case "group":
      return known.pick("groups", random) ?? organisation;
    case "uidp.children_of":
      return random.chance(0.2) ? "/" : organisation;
    case "identity":
      return known.pick("identities", random) ?? organisation;
    case "identity_provider_uid":
      return known.pick("identityProviders", random) ?? organisation;
    case "role":
      return random.pick(ROLES);
    case "page_size":
      return random.pick([0, 1, 2, 50, 200, 2000]);
    case "skip":
      return random.pick([0, 1, 5, 100_000]);
    case "page_token":
      return "";
    case "order_by":
      return random.pick(["created_at", "created_at desc", "created_at asc", "createTime"]);
    case "updateMask":
      return random.pick(["*", "description", "updateTime", "create_time"]);
    default:
      return undefined;
  }
}
