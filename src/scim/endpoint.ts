// The endpoint of directories: SCIM 2.0 (RFC 7643, RFC 7644) at `/scim/v2/<uid of the identity provider>`.
//
//   address.ts       says which provider and which resource a request is about.
//   credential.ts    proves the token of the provider, before the body is read and again in the unit of work.
//   protocol/        knows the protocol and nothing of the store: schemas, filters, patches, lists, errors.
//   collection.ts    says what the endpoint needs of each type of resource.
//   users.ts         creates, changes and deletes people; user-row.ts converts them.
//   groups.ts        does the same with groups; member-changes.ts says which members a request changes.
//   list-rows.ts     lists resources of any type.
//   changes.ts       records what was changed in the audit log, from which events are sent.
//
// The requests of one provider run four at a time, and the others wait: a directory that sends all of its people at once must
// not keep others from their turn.
import { Code } from "@connectrpc/connect";
import { buildScimUrl, SCIM_PATH } from "../iam/identity-providers/identity-provider.js";
import { ApiError, isCallerGone, rejectReasonOf } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import { parseStrictJson } from "../kernel/strict-json.js";
import type { Clock } from "../kernel/time.js";
import type { WebMethod, WebRequest, WebResponse, WebRoutes } from "../kernel/web.js";
import { createSlots } from "../outbound/slots.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import { type Address, parseAddress } from "./address.js";
import type { Actor } from "./changes.js";
import {
  buildMeta,
  type Change,
  type Collection,
  idOf,
  matchesVersion,
  notFound,
  type StoredResource,
  versionOf,
  type Write,
} from "./collection.js";
import { formatCredentialId, parseToken, requireProvider, ScimUnauthorized } from "./credential.js";
import { createGroupCollection } from "./groups.js";
import { MEMBERS } from "./member-changes.js";
import {
  buildResourceType,
  buildResourceTypes,
  buildSchema,
  buildSchemas,
  buildServiceProviderConfig,
  findSchema,
} from "./protocol/discovery.js";
import { ScimError, toErrorBody } from "./protocol/error.js";
import { readResource } from "./protocol/input.js";
import {
  buildListResponse,
  type ListParameters,
  MAX_COUNT,
  readListQuery,
  readProjection,
  readSearchRequest,
} from "./protocol/list.js";
import { readPatch } from "./protocol/patch.js";
import { createProjector, type Projection } from "./protocol/project.js";
import { buildSchemasList, type Resource } from "./protocol/resource.js";
import { groupType, type ResourceType, userType } from "./protocol/schemas.js";
import { createUserCollection } from "./users.js";

export interface ScimDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly quotas: Quotas;
  /** The base URL of the service. */
  readonly baseUrl: string;
  /** Called with errors that are no fault of the caller. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MEDIA_TYPE = "application/scim+json";
const METHODS: readonly WebMethod[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** The types of resources that are served. */
const TYPES = [userType, groupType];

/** How many requests of one provider run at a time, and how many wait. */
const SLOTS = {
  running: 64,
  runningPerAccount: 4,
  runningPerTarget: Number.POSITIVE_INFINITY,
  waiting: 5_000,
  waitingPerAccount: 200,
};
/** How long a request waits for its turn, in milliseconds. */
const MAX_WAIT_MS = 10_000;
const RETRY_S = 5;

/** Creates the routes. */
export function scimRoutes(deps: ScimDeps): WebRoutes {
  const endpoint = new ScimEndpoint(deps);
  return METHODS.map((method) => ({
    path: `${SCIM_PATH}/*`,
    method,
    decodesRest: true,
    // The token belongs to the provider in the path, and is proven before the body is read.
    access: "public",
    maxBytes: MAX_BODY_BYTES,
    handle: (request) => endpoint.handle(request),
  }));
}

/** How many members of groups a list shows at most. */
const MAX_MEMBERS = 20_000;

function tooManyMembers(): ScimError {
  const rule = `the groups of the list have more than ${MAX_MEMBERS} members: ask for fewer, or with excludedAttributes=members`;
  return new ScimError(400, rule, "tooMany");
}

// A collection gets the rows that it has returned.
type AnyCollection = Collection<StoredResource>;

/** A search among the resources of one type. */
interface Search {
  readonly collection: AnyCollection;
  readonly parameters: ListParameters;
}

/** A request whose token is valid. */
interface Call {
  readonly request: WebRequest;
  readonly address: Address;
  readonly token: string;
}

class ScimEndpoint {
  readonly #deps: ScimDeps;
  readonly #slots = createSlots(SLOTS);
  readonly #users: AnyCollection;
  readonly #groups: AnyCollection;

  constructor(deps: ScimDeps) {
    this.#deps = deps;
    this.#users = createUserCollection(deps) as AnyCollection;
    this.#groups = createGroupCollection(deps) as AnyCollection;
  }

  /** Answers a request. Every error has the form of RFC 7644, section 3.12. */
  async handle(request: WebRequest): Promise<WebResponse> {
    try {
      const address = parseAddress(request.rest);
      if (address === undefined) throw nowhere();
      const call = { request, address, token: parseToken(request.header("authorization")) };
      await this.#deps.store.read((tx) => requireProvider(tx, address.providerUid, call.token, this.#deps.clock()));
      const [first = "", ...rest] = address.segments;
      return await this.#route(call, first, rest);
    } catch (error) {
      return this.#fail(error, request.requestId);
    }
  }

  #route(call: Call, first: string, rest: readonly string[]): WebResponse | Promise<WebResponse> {
    const { method } = call.request;
    const [id, ...deeper] = rest;
    if (deeper.length > 0) throw nowhere();
    switch (first) {
      case "ServiceProviderConfig":
      case "ResourceTypes":
      case "Schemas":
        requireMethod(method, ["GET"]);
        return this.#discover(call, first, id);
      case "Users":
      case "Groups": {
        const collection = first === "Users" ? this.#users : this.#groups;
        if (id === undefined) return this.#collection(call, method, collection);
        return id === ".search" ? this.#search(call, collection) : this.#resource(call, method, collection, id);
      }
      case ".search":
        if (id !== undefined) throw nowhere();
        return this.#searchAll(call);
      case "Bulk":
      case "Me":
        throw new ScimError(501, `/${first} is not supported`);
      default:
        throw nowhere();
    }
  }

  #discover({ address }: Call, kind: "ServiceProviderConfig" | "ResourceTypes" | "Schemas", id: string | undefined) {
    const url = buildScimUrl(this.#deps.baseUrl, address.providerUid);
    if (kind === "ServiceProviderConfig") {
      if (id !== undefined) throw nowhere();
      const documentationUri = `${this.#deps.baseUrl}/docs/scim`;
      return json(200, buildServiceProviderConfig(url, { documentationUri, maxResults: MAX_COUNT }));
    }
    if (kind === "ResourceTypes") {
      if (id === undefined) return json(200, buildResourceTypes(TYPES, url));
      const type = TYPES.find(({ name }) => name === id);
      if (type === undefined) throw nowhere();
      return json(200, buildResourceType(type, url));
    }
    if (id === undefined) return json(200, buildSchemas(TYPES, url));
    const schema = findSchema(TYPES, id);
    if (schema === undefined) throw nowhere();
    return json(200, buildSchema(schema, url));
  }

  async #collection(call: Call, method: WebMethod, collection: AnyCollection): Promise<WebResponse> {
    requireMethod(method, ["GET", "POST"]);
    const { type } = collection;
    if (method === "GET") return this.#list(call, collection, readListQuery(call.request.query, type));
    const projection = readProjection(call.request.query);
    const resource = readResource(await readBody(call.request), type);
    const row = await this.#inTurn(call, () => collection.create(this.#writeOf(call), resource));
    return this.#show(call, collection, row, projection, 201);
  }

  async #search(call: Call, collection: AnyCollection): Promise<WebResponse> {
    requireMethod(call.request.method, ["POST"]);
    return this.#list(call, collection, readSearchRequest(await readBody(call.request), collection.type));
  }

  // A search of the whole directory: what matches among its people, and then among its groups. A type without an attribute that the
  // request names has no match (RFC 7644, section 3.4.3).
  async #searchAll(call: Call): Promise<WebResponse> {
    requireMethod(call.request.method, ["POST"]);
    const body = await readBody(call.request);
    const searches = this.#readSearches(body);
    const [{ parameters: first }] = searches;
    const shown: Resource[] = [];
    let total = 0;
    for (const { collection, parameters } of searches) {
      // The places of the response that earlier types have left.
      const startIndex = Math.max(1, first.startIndex - total);
      const count = Math.max(0, first.count - shown.length);
      const found = await this.#read(call, collection, { ...parameters, startIndex, count });
      shown.push(...found.resources);
      total += found.total;
    }
    return json(200, buildListResponse(shown, total, first.startIndex));
  }

  #readSearches(body: unknown): readonly [Search, ...Search[]] {
    const errors: unknown[] = [];
    const searches = [this.#users, this.#groups].flatMap((collection) => {
      try {
        return [{ collection, parameters: readSearchRequest(body, collection.type) }];
      } catch (error) {
        errors.push(error);
        return [];
      }
    });
    const [first, ...others] = searches;
    if (first === undefined) throw errors[0];
    return [first, ...others];
  }

  async #list(call: Call, collection: AnyCollection, parameters: ListParameters): Promise<WebResponse> {
    const { resources, total } = await this.#read(call, collection, parameters);
    return json(200, buildListResponse(resources, total, parameters.startIndex));
  }

  #read(call: Call, collection: AnyCollection, parameters: ListParameters) {
    return this.#inTurn(call, () =>
      this.#readProven(call, async (tx) => {
        const { rows, total } = await collection.list(tx, call.address.providerUid, parameters);
        const view = this.#createView(call, collection, parameters);
        const resources: Resource[] = [];
        let members = 0;
        for (const row of rows) {
          const resource = await view(tx, row);
          resources.push(resource);
          members += Array.isArray(resource[MEMBERS]) ? resource[MEMBERS].length : 0;
          if (members > MAX_MEMBERS) throw tooManyMembers();
        }
        return { resources, total };
      }),
    );
  }

  async #resource(call: Call, method: WebMethod, collection: AnyCollection, id: string): Promise<WebResponse> {
    requireMethod(method, ["GET", "PUT", "PATCH", "DELETE"]);
    const { request } = call;
    const projection = readProjection(request.query);
    if (method === "GET") return this.#get(call, collection, id, projection);
    const target = { id, ifMatch: request.header("if-match") };
    const write = this.#writeOf(call);
    if (method === "DELETE") {
      await this.#inTurn(call, () => collection.delete(write, target));
      return { status: 204 };
    }
    const change = readChange(method, await readBody(request), collection.type);
    const row = await this.#inTurn(call, () => collection.change(write, target, change));
    return this.#show(call, collection, row, projection, 200);
  }

  async #get(call: Call, collection: AnyCollection, id: string, projection: Projection): Promise<WebResponse> {
    const row = await this.#inTurn(call, () =>
      this.#readProven(call, (tx) => collection.find(tx, call.address.providerUid, id)),
    );
    if (row === undefined) throw notFound(collection.type, id);
    const ifNoneMatch = call.request.header("if-none-match");
    if (ifNoneMatch !== undefined && matchesVersion(row, ifNoneMatch)) {
      return { status: 304, headers: { etag: versionOf(row) } };
    }
    return this.#show(call, collection, row, projection, 200);
  }

  #readProven<T>({ address, token }: Call, unit: (tx: Tx) => Promise<T>): Promise<T> {
    const { store, clock } = this.#deps;
    return store.read(async (tx) => {
      await requireProvider(tx, address.providerUid, token, clock());
      return unit(tx);
    });
  }

  #writeOf(call: Call): Write {
    const { store, clock } = this.#deps;
    const { address, token } = call;
    const { providerUid } = address;
    return (unit) =>
      store.write(
        async (tx) => {
          const nowMs = clock();
          const provider = await requireProvider(tx, providerUid, token, nowMs);
          return unit(tx, { providerUid, actor: describeActor(call, provider.name), nowMs });
        },
        { key: providerUid },
      );
  }

  async #inTurn<T>({ address }: Call, work: () => Promise<T>): Promise<T> {
    const { providerUid } = address;
    let release: () => void;
    try {
      release = await this.#slots.acquire(providerUid, providerUid, AbortSignal.timeout(MAX_WAIT_MS));
    } catch {
      throw new ScimError(429, "too many requests of this directory are waiting");
    }
    try {
      return await work();
    } finally {
      release();
    }
  }

  async #show(
    call: Call,
    collection: AnyCollection,
    row: StoredResource,
    projection: Projection,
    status: 200 | 201,
  ): Promise<WebResponse> {
    const view = this.#createView(call, collection, projection);
    const shown = await this.#deps.store.read((tx) => view(tx, row));
    const { location } = buildMeta(row, collection.type, this.#endpointUrlOf(call));
    return json(status, shown, { location: String(location), etag: versionOf(row) });
  }

  #createView(call: Call, collection: AnyCollection, projection: Projection) {
    const { type } = collection;
    const project = createProjector(type, projection);
    const endpointUrl = this.#endpointUrlOf(call);
    const isWanted = (name: string) => project({ [name]: true })[name] !== undefined;
    return async (tx: Tx, row: StoredResource): Promise<Resource> => {
      const resource = await collection.show(tx, row, { isWanted, endpointUrl });
      const schemas = buildSchemasList(resource, type);
      return project({ schemas, id: idOf(row), ...resource, meta: buildMeta(row, type, endpointUrl) });
    };
  }

  #endpointUrlOf({ address }: Call): string {
    return buildScimUrl(this.#deps.baseUrl, address.providerUid);
  }

  #fail(error: unknown, requestId: string): WebResponse {
    if (isCallerGone(error)) throw error;
    const failure = toScimError(error);
    if (failure === undefined) {
      this.#deps.onInternalError(error, requestId);
      return respondWith(new ScimError(500, "the request failed; the log of the service has the reason"));
    }
    const rejection = error instanceof ScimUnauthorized ? error.rejection : rejectReasonOf(error);
    return { ...respondWith(failure), ...(rejection && { rejection }) };
  }
}

function readChange(method: WebMethod, body: unknown, type: ResourceType): Change {
  return method === "PUT"
    ? { by: "replacement", resource: readResource(body, type) }
    : { by: "operations", operations: readPatch(body, type) };
}

function describeActor({ request, address, token }: Call, providerName: string): Actor {
  return {
    providerUid: address.providerUid,
    providerName,
    credentialId: formatCredentialId(token),
    method: request.path,
    requestId: request.requestId,
    traceId: request.traceId,
    remoteAddress: request.remoteAddress ?? "",
  };
}

function requireMethod(method: WebMethod, allowed: readonly WebMethod[]): void {
  if (allowed.includes(method)) return;
  throw new ScimError(405, `the method must be one of ${allowed.join(", ")}`);
}

function nowhere(): ScimError {
  return new ScimError(404, "there is no such resource");
}

// RFC 7644, section 3.1, has a type of its own, and many directories send the general one.
async function readBody(request: WebRequest): Promise<unknown> {
  const [type = ""] = (request.header("content-type") ?? "").split(";");
  if (![MEDIA_TYPE, "application/json"].includes(type.trim().toLowerCase())) {
    throw new ScimError(415, `the type of the body must be ${MEDIA_TYPE} or application/json`);
  }
  return parseStrictJson(Buffer.from(await request.bytes()).toString(), "body");
}

function json(status: number, body: object, headers: Readonly<Record<string, string>> = {}): WebResponse {
  return {
    status,
    headers: { "content-type": MEDIA_TYPE, "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}

function respondWith(error: ScimError): WebResponse {
  const { status } = error;
  return json(status, toErrorBody(error), {
    ...(status === 401 && { "www-authenticate": "Bearer" }),
    ...((status === 429 || status === 503) && { "retry-after": String(RETRY_S) }),
  });
}

const STATUSES: Partial<Record<Code, number>> = {
  [Code.InvalidArgument]: 400,
  [Code.FailedPrecondition]: 409,
  [Code.ResourceExhausted]: 403,
  [Code.Aborted]: 503,
  [Code.Unavailable]: 503,
  [Code.DeadlineExceeded]: 503,
};

// Undefined for an error that is no fault of the caller.
function toScimError(error: unknown): ScimError | undefined {
  if (error instanceof ScimError) return error;
  if (error instanceof ApiError) {
    const status = STATUSES[error.code];
    const scimType = error.code === Code.InvalidArgument ? "invalidSyntax" : undefined;
    return status === undefined ? undefined : new ScimError(status, error.message, scimType);
  }
  // A body that is too large, or that did not arrive.
  const { status, message } = error as { status?: unknown; message?: unknown };
  return typeof status === "number" && status < 500 ? new ScimError(status, String(message)) : undefined;
}
