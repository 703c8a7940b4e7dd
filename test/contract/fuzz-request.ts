// Random requests, made of the document of the service: each begins as one that
// should be accepted, and some are then spoilt.
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import type { AnyObject, PlacedOperation } from "../support/openapi/document.js";
import { atRef } from "../support/openapi/document.js";
import type { Random } from "../support/openapi/random.js";
import {
  collectionOf,
  type Fill,
  type PlainRequest,
  queryPart,
  requestOf,
  withQuery,
} from "../support/openapi/request.js";
import { parentsOf, type Subject, subjectOf } from "../support/openapi/subject.js";
import { valueFor } from "../support/openapi/values.js";
import type { FuzzWorld } from "./fuzz-world.js";
import { imageDigest } from "./registry-things.js";

/** A request as it goes out. */
export interface FuzzRequest {
  method: string;
  /** Path and query. */
  path: string;
  readonly headers: Record<string, string>;
  body: string | Buffer | undefined;
}

const NAME = "abcdefghijklmnopqrstuvwxyz0123456789 ._-";
/** What names of repos and tags allow. */
const PATH_NAME = "abcdefghijklmnopqrstuvwxyz0123456789";
const TEXT = "abc XYZ äß漢字😀'\"\\/<>&%{}[]";
/** The type of a body that holds parameters. */
export const FORM = "application/x-www-form-urlencoded";
// Codes of logins that never were; the first is the point of order one (RFC 7748, section 6.1).
const OTHER_CODES = ["A".repeat(43), "", "__proto__", "\0", "x".repeat(3000)];
const OTHER_CLAIMS = [{ sub: "stranger" }, { aud: "elsewhere" }, { exp: 1 }, { iss: 1 }, { nbf: "x" }, { email: [] }];
const LIST_GROUPS = "chainguard.platform.iam.v2beta1.GroupsService.ListGroups";
const ROLES = ["viewer", "editor", "owner"].map(builtinRoleUid);

/** A request for `operation` that should be accepted, unless chance chose what does not fit. */
export function validRequest(world: FuzzWorld, operation: PlacedOperation, random: Random): FuzzRequest {
  const values = valuesFor(world, operation, random);
  const request = requestOf(operation, values);
  const json = bodyOf(world, operation, request, random);
  // Pages that a response led to are known by the operation.
  const page = random.chance(0.3) ? world.known.pick(operation.operationId, random) : undefined;
  const query = optionalParameters(world, operation, random);
  const isForm = operation.requestBody?.content[FORM] !== undefined && random.chance(0.5);
  const body = isForm ? query.join("&") : json;
  const bearer = bearerFor(world, operation, values, random);
  return {
    method: request.method,
    path: page ?? (isForm ? request.path : withQuery(request.path, query)),
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { "content-type": isForm ? FORM : "application/json" }),
      "x-forwarded-for": `10.0.0.${random.int(250)}`,
    },
    body,
  };
}

// By what the document says that the operation takes.
function bearerFor(world: FuzzWorld, operation: PlacedOperation, values: Fill, random: Random): string | undefined {
  const { known, somebody, people, owner, others } = world;
  const { security = world.document.security } = operation;
  const [scheme] = security.flatMap((one) => Object.keys(one));
  switch (scheme) {
    case undefined:
      return random.chance(0.5) ? owner : undefined;
    case "foreignToken":
      return somebody.oidcToken(random.chance(0.1) ? random.pick(OTHER_CLAIMS) : {});
    case "refreshToken":
      return known.take("refreshTokens", random);
    default: {
      // A caller requests access once only.
      if (operation.path.endsWith(":requestGroupAccess") && random.chance(0.5)) {
        return known.take("asking", random) ?? owner;
      }
      const own = operation.parameters.some(({ name }) => name === "id") ? people.get(String(values("id"))) : undefined;
      return own ?? (random.chance(0.95) ? owner : random.pick(others));
    }
  }
}

// What parameters and properties stand for: what the path names, and the rest by their names.
function valuesFor(world: FuzzWorld, operation: PlacedOperation, random: Random): Fill {
  const { organisation, repo, known, somebody } = world;
  const collection = collectionOf(operation);
  const role = random.pick(ROLES);
  const isWorkload = random.chance(0.5);
  const code = known.pick("inviteCodes", random);
  const [parameter] = operation.parameters.filter((one) => one.in === "path");
  const empty =
    operation.method === "DELETE" && collection === "groups" ? known.take("emptyGroups", random) : undefined;
  const named = empty ?? thingFor(world, subjectOf(operation), random);
  const parent = thingFor(world, parentsOf(collection), random);
  const mapping = thingFor(world, "externalGroupRoleMappings", random);
  const source = random.chance(0.5) ? repo : (known.pick("repos", random) ?? repo);
  // Only version 1 has tags without an image, which alone can be renamed.
  const hasImage = !operation.path.startsWith("/registry/v1/tags/") || random.chance(0.5);
  const inQuery = operation.parameters.filter((one) => one.in === "query" && one.required === true);
  return (name) => {
    if (name === parameter?.name) return named;
    if (inQuery.some((one) => one.name === name)) return parameterValue(world, operation, name, random);
    switch (name) {
      case "parent":
      case "parentId":
        return collection === "externalGroupRoleMappings" ? parentOf(mapping ?? "") : parent;
      case "names":
      case "ids":
        return [mapping];
      case "group":
      case "scope":
        return organisation;
      case "identity":
        if (operation.operationId === "v1_TrustService_CreateIdentity") {
          return { name: random.text(NAME, 12, 1), claimMatch: { issuer: "https://issuer.example", subject: "any" } };
        }
        return known.pick("identities", random) ?? organisation;
      case "identityUid":
        return known.pick("identities", random) ?? organisation;
      case "subscription":
        return known.pick("subscriptions", random) ?? organisation;
      case "overlay":
        return known.pick("overlays", random) ?? organisation;
      // Without it the person is let in.
      case "identityId":
        return isWorkload ? somebody.identity : "";
      case "code":
        return code;
      case "role":
      case "roleUid":
      case "roleUidp":
        return role;
      case "name":
        return random.text(/^(repos|tags)$/.test(collection) ? PATH_NAME : NAME, 12, 1);
      case "source":
        return operation.path.endsWith("/deployment") ? undefined : source;
      case "digest":
        return hasImage ? imageDigest : "";
      case "description":
        return random.text(TEXT, 40);
      default:
        return undefined;
    }
  };
}

// One that there is, if any.
function thingFor({ organisation, repo, known }: FuzzWorld, subject: Subject | undefined, random: Random) {
  switch (subject) {
    case undefined:
      return undefined;
    case "organisation":
      return organisation;
    case "groups":
      return (random.chance(0.5) ? known.pick("groups", random) : undefined) ?? organisation;
    case "image":
      return random.chance(0.7) ? repo : (known.pick("repos", random) ?? repo);
    case "sessions":
      return "0123456789abcdef0123456789abcdef";
    default:
      return known.pick(subject, random) ?? `${organisation}/0123456789abcdef`;
  }
}

function bodyOf(
  { document }: FuzzWorld,
  operation: PlacedOperation,
  { body }: PlainRequest,
  random: Random,
): string | undefined {
  if (body === undefined) return undefined;
  if (Array.isArray(body)) return JSON.stringify(random.pick([body, body, body, [...body, ...body], []]));
  const { schema } = operation.requestBody?.content["application/json"] ?? {};
  if (random.chance(0.1) && schema !== undefined && typeof body === "object" && body !== null) {
    const more = resolveReference(document, schema);
    const properties = Object.entries((more.properties ?? {}) as Record<string, AnyObject>);
    if (properties.length > 0) {
      const [name, property] = random.pick(properties);
      return JSON.stringify({ ...body, [name]: valueFor(property, document, random) });
    }
  }
  // The ids of events cannot be guessed, so what is sent again is chosen by its time.
  if (operation.operationId.endsWith("_Redeliver")) {
    const { subscription } = body as { subscription?: string };
    return JSON.stringify({ subscription, since: new Date().toISOString() });
  }
  if (random.chance(0.1) && operation.method === "PATCH") return random.pick(["{}", '{"description":""}']);
  return JSON.stringify(body);
}

function resolveReference(document: FuzzWorld["document"], schema: AnyObject): AnyObject {
  return typeof schema.$ref === "string" ? (atRef(document, schema.$ref) as AnyObject) : schema;
}

function optionalParameters(world: FuzzWorld, operation: PlacedOperation, random: Random): string[] {
  return operation.parameters.flatMap(({ name, required, schema }) => {
    if (required === true || !random.chance(0.15)) return [];
    const known = schema.enum === undefined ? parameterValue(world, operation, name, random) : undefined;
    const value = known ?? valueFor(schema, world.document, random);
    return (Array.isArray(value) ? value : [value]).map((one) => queryPart(name, one));
  });
}

function parameterValue(world: FuzzWorld, operation: PlacedOperation, name: string, random: Random): unknown {
  const { url, organisation, known, somebody } = world;
  switch (name) {
    case "uidp.ancestors_of":
    case "uidp.descendants_of":
    case "uidp.ids":
    case "group":
    case "resource":
    case "scope":
    case "scopes":
      // Only organisations have a chain.
      if (/Chain/.test(operation.operationId) && random.chance(0.9)) return organisation;
      return known.pick("groups", random) ?? organisation;
    case "aud":
      return random.chance(0.1) ? [url, `${url}/`] : url;
    case "cap":
      return random.pick([["groups.list", "roles.list"], "groups.list", "no.such"]);
    case "actions":
      return random.pick([["groups.list", "roles.list"], LIST_GROUPS, LIST_GROUPS, "no.such"]);
    case "identity_provider":
      return random.chance(0.5) ? somebody.provider : (known.pick("identityProviders", random) ?? organisation);
    case "code":
      return random.chance(0.2) ? random.pick(OTHER_CODES) : (known.take("headlessCodes", random) ?? "");
    case "id":
      return known.pick(collectionOf(operation), random) ?? organisation;
    case "parent":
    case "registry_id":
      return organisation;
    case "repo_id":
      return known.pick("repos", random) ?? organisation;
    case "uidp.children_of":
      return random.chance(0.2) ? "/" : organisation;
    case "identity":
      return random.chance(0.5) ? somebody.identity : (known.pick("identities", random) ?? organisation);
    case "identity_provider_uid":
    case "identity_provider_uidp":
      return known.pick("identityProviders", random) ?? organisation;
    case "subscription":
      return known.pick("subscriptions", random) ?? organisation;
    case "overlay":
      return known.pick("overlays", random) ?? organisation;
    case "role":
      return random.pick(ROLES);
    case "page_size":
      return random.pick([0, 1, 2, 50, 200, 2000]);
    case "skip":
      return random.pick([0, 1, 5, 100_000]);
    case "page_token":
      return "";
    case "digest":
      return imageDigest;
    case "arch":
    case "architecture":
      return random.pick(["amd64", "arm64", ""]);
    case "order_by":
      return random.pick(["created_at", "created_at desc", "created_at asc", "createTime"]);
    case "updateMask":
      return random.pick(["*", "description", "updateTime", "create_time"]);
    default:
      return undefined;
  }
}
