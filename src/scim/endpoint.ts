// The endpoint of directories: SCIM 2.0 (RFC 7643, RFC 7644) at `/scim/v2/<uid of the identity provider>`.
//
//   address.ts       says which provider and which resource a request is about.
//   credential.ts    proves the token of the provider, before the body is read and again in the unit of work.
//   protocol/        knows the protocol and nothing of the store: schemas, filters, patches, lists, errors.
//   users.ts         creates, changes and deletes people; user-list.ts lists them; user-row.ts converts them.
//   changes.ts       records what was changed in the audit log, from which events are sent.
//
// The requests of one provider run four at a time, and the others wait: a directory that sends all of its people at once must
// not keep others from their turn.
import { Code } from "@connectrpc/connect";
import { ApiError, isCallerGone, rejectReasonOf } from "../kernel/errors.js";
import type { Ids } from "../kernel/ids.js";
import { parseStrictJson } from "../kernel/strict-json.js";
import type { Clock } from "../kernel/time.js";
import type { WebMethod, WebRequest, WebResponse, WebRoutes } from "../kernel/web.js";
import { createSlots } from "../outbound/slots.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import type { ScimUserRow } from "../store/iam/scim-users.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import { type Address, formatEndpointUrl, parseAddress, SCIM_PATH } from "./address.js";
import type { Actor } from "./changes.js";
import { formatCredentialId, parseToken, requireProvider, ScimUnauthorized } from "./credential.js";
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
import { applyPatch, readPatch } from "./protocol/patch.js";
import { createProjector, type Projection } from "./protocol/project.js";
import { buildSchemasList, type Resource } from "./protocol/resource.js";
import { userType } from "./protocol/schemas.js";
import { listUsers } from "./user-list.js";
import { locationOf, toResource, toWhole, versionOf } from "./user-row.js";
import {
  changeUser,
  createUser,
  deleteUser,
  findUser,
  LastOwnerError,
  matchesVersion,
  noteRejection,
  replaceUser,
  requireVersion,
  type UserContext,
} from "./users.js";

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
const TYPES = [userType];

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

/** A request whose token is valid. */
interface Call {
  readonly request: WebRequest;
  readonly address: Address;
  readonly token: string;
}

class ScimEndpoint {
  readonly #deps: ScimDeps;
  readonly #slots = createSlots(SLOTS);

  constructor(deps: ScimDeps) {
    this.#deps = deps;
  }

  /** Answers a request. Every error has the form of RFC 7644, section 3.12. */
  async handle(request: WebRequest): Promise<WebResponse> {
    try {
      const address = parseAddress(request.rest);
      if (address === undefined) throw notFound();
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
    if (deeper.length > 0) throw notFound();
    switch (first) {
      case "ServiceProviderConfig":
      case "ResourceTypes":
      case "Schemas":
        requireMethod(method, ["GET"]);
        return this.#discover(call, first, id);
      case "Users":
        if (id === undefined) return this.#users(call, method);
        return id === ".search" ? this.#search(call) : this.#user(call, method, id);
      // No groups yet: a directory that asks finds none.
      case "Groups":
        if (id === undefined && method === "GET") return json(200, buildListResponse([], 0, 1));
        if (id === ".search" && method === "POST") return json(200, buildListResponse([], 0, 1));
        if (method === "GET") throw notFound();
        throw new ScimError(501, "groups are not supported yet");
      case ".search":
        if (id !== undefined) throw notFound();
        return this.#search(call);
      case "Bulk":
      case "Me":
        throw new ScimError(501, `/${first} is not supported`);
      default:
        throw notFound();
    }
  }

  #discover({ address }: Call, kind: "ServiceProviderConfig" | "ResourceTypes" | "Schemas", id: string | undefined) {
    const url = formatEndpointUrl(this.#deps.baseUrl, address.providerUid);
    if (kind === "ServiceProviderConfig") {
      if (id !== undefined) throw notFound();
      const documentationUri = `${this.#deps.baseUrl}/docs/scim`;
      return json(200, buildServiceProviderConfig(url, { documentationUri, maxResults: MAX_COUNT }));
    }
    if (kind === "ResourceTypes") {
      if (id === undefined) return json(200, buildResourceTypes(TYPES, url));
      const type = TYPES.find(({ name }) => name === id);
      if (type === undefined) throw notFound();
      return json(200, buildResourceType(type, url));
    }
    if (id === undefined) return json(200, buildSchemas(TYPES, url));
    const schema = findSchema(TYPES, id);
    if (schema === undefined) throw notFound();
    return json(200, buildSchema(schema, url));
  }

  async #users(call: Call, method: WebMethod): Promise<WebResponse> {
    requireMethod(method, ["GET", "POST"]);
    if (method === "GET") return this.#list(call, readListQuery(call.request.query, userType));
    const resource = readResource(await readBody(call.request), userType);
    const { ids, quotas } = this.#deps;
    const row = await this.#write(call, (tx, context) => createUser(tx, resource, context, { ids, quotas }));
    return this.#show(call, row, 201);
  }

  async #search(call: Call): Promise<WebResponse> {
    requireMethod(call.request.method, ["POST"]);
    return this.#list(call, readSearchRequest(await readBody(call.request), userType));
  }

  async #list({ address, token }: Call, parameters: ListParameters): Promise<WebResponse> {
    const { store, clock, baseUrl } = this.#deps;
    const { rows, total } = await this.#inTurn(address, () =>
      store.read(async (tx) => {
        await requireProvider(tx, address.providerUid, token, clock());
        return listUsers(tx, address.providerUid, parameters, baseUrl);
      }),
    );
    const show = this.#createView(parameters);
    const resources = rows.map(show);
    return json(200, buildListResponse(resources, total, parameters.startIndex));
  }

  async #user(call: Call, method: WebMethod, id: string): Promise<WebResponse> {
    requireMethod(method, ["GET", "PUT", "PATCH", "DELETE"]);
    const { request, address } = call;
    const { providerUid } = address;
    if (method === "GET") return this.#get(call, id);
    const ifMatch = request.header("if-match");
    if (method === "DELETE") {
      await this.#write(call, async (tx, context) => {
        const row = await findUser(tx, providerUid, id);
        requireVersion(row, ifMatch);
        await deleteUser(tx, row, context);
      });
      return { status: 204 };
    }
    const body = await readBody(request);
    const change = method === "PUT" ? replaceWith(readResource(body, userType)) : patchWith(readPatch(body, userType));
    const row = await this.#write(call, async (tx, context) => {
      const before = await findUser(tx, providerUid, id);
      requireVersion(before, ifMatch);
      return change(tx, before, context);
    });
    return this.#show(call, row, 200);
  }

  async #get(call: Call, id: string): Promise<WebResponse> {
    const { request, address, token } = call;
    const { store, clock } = this.#deps;
    const row = await this.#inTurn(address, () =>
      store.read(async (tx) => {
        await requireProvider(tx, address.providerUid, token, clock());
        return findUser(tx, address.providerUid, id);
      }),
    );
    const ifNoneMatch = request.header("if-none-match");
    if (ifNoneMatch !== undefined && matchesVersion(row, ifNoneMatch)) {
      return { status: 304, headers: { etag: versionOf(row) } };
    }
    return this.#show(call, row, 200);
  }

  // Runs a unit of work that changes people. Where it would leave an organisation without an owner, that is noted.
  async #write<T>(call: Call, unit: (tx: Tx, context: UserContext) => Promise<T>): Promise<T> {
    const { store, clock } = this.#deps;
    const { address, token } = call;
    const { providerUid } = address;
    const begin = async (tx: Tx): Promise<UserContext> => {
      const nowMs = clock();
      const provider = await requireProvider(tx, providerUid, token, nowMs);
      return { providerUid, actor: describeActor(call, provider.name), nowMs };
    };
    return this.#inTurn(address, async () => {
      try {
        return await store.write(async (tx) => unit(tx, await begin(tx)), { key: providerUid });
      } catch (error) {
        if (error instanceof LastOwnerError) {
          const { row } = error;
          await store.write(async (tx) => noteRejection(tx, row, await begin(tx)), { key: providerUid });
        }
        throw error;
      }
    });
  }

  async #inTurn<T>({ providerUid }: Address, work: () => Promise<T>): Promise<T> {
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

  #show({ request }: Call, row: ScimUserRow, status: 200 | 201): WebResponse {
    const show = this.#createView(readProjection(request.query));
    return json(status, show(row), { location: locationOf(row, this.#deps.baseUrl), etag: versionOf(row) });
  }

  #createView(projection: Projection): (row: ScimUserRow) => Resource {
    const view = createProjector(userType, projection);
    return (row) => {
      const resource = toWhole(row, this.#deps.baseUrl);
      return view({ schemas: buildSchemasList(resource, userType), ...resource });
    };
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

type Change = (tx: Tx, before: ScimUserRow, context: UserContext) => Promise<ScimUserRow>;

function replaceWith(resource: ReturnType<typeof readResource>): Change {
  return (tx, before, context) => replaceUser(tx, before, resource, context);
}

function patchWith(patch: ReturnType<typeof readPatch>): Change {
  return (tx, before, context) => changeUser(tx, before, applyPatch(toResource(before), patch, userType), context);
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

function notFound(): ScimError {
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
