// The calls of the writers, over REST and over gRPC.
import * as http from "node:http";
import * as https from "node:https";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { Code, ConnectError, connectTo, errorInfo } from "../../src/client/index.js";

export type Kind = "groups" | "identities";

/** Writes and reads of one node over one protocol. Each resolves to a uid, except reads. */
export interface Api {
  create(kind: Kind, parent: string, name: string): Promise<string>;
  /** Sets the description to 2. */
  update(kind: Kind, uid: string): Promise<string>;
  bind(parent: string, identity: string, role: string): Promise<string>;
  remove(kind: "groups" | "roleBindings", uid: string): Promise<string>;
  /** The description; undefined where it is not found. */
  read(kind: Kind, uid: string): Promise<string | undefined>;
  /** The uid of the child of a group that has this name; undefined where there is none. */
  find(kind: Kind, parent: string, name: string): Promise<string | undefined>;
  close(): void;
}

/** A call that failed, and whether it failed as calls may while the service has no database. */
export class CallError extends Error {
  readonly allowed: boolean;
  readonly isNotFound: boolean;

  constructor(message: string, allowed: boolean, isNotFound = false) {
    super(message);
    this.allowed = allowed;
    this.isNotFound = isNotFound;
  }
}

/** How a client connects, and what it repeats. */
export interface ApiOptions {
  /** The authority of an https URL. */
  readonly ca?: Buffer | undefined;
  /** Whether the client of gRPC repeats writes after UNAVAILABLE, as it does reads. */
  readonly retriesWrites?: boolean;
}

const TIMEOUT_MS = 10_000;
const claimMatch = (name: string) => ({ issuer: "https://issuer.example.com", subject: name });

/** Calls over REST, on connections that are kept. */
export function restApi(url: string, token: string, { ca }: ApiOptions = {}): Api {
  const options = { keepAlive: true, ...(ca !== undefined && { ca }) };
  const agent = url.startsWith("https:") ? new https.Agent(options) : new http.Agent(options);
  async function send(method: string, path: string, body?: object): Promise<Record<string, string>> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const request = { method, headers, agent, body: body && JSON.stringify(body) };
    const { status, text } = await exchange(`${url}/iam/v2beta1/${path}`, request).catch((error) => {
      throw new CallError(`REST ${method}: ${error}`, true);
    });
    if (status === 200) return text === "" ? {} : JSON.parse(text);
    // 502 is from a proxy, and says that it reached no node.
    const allowed = [502, 504].includes(status) || (status === 503 && /google.rpc.RetryInfo|<html/i.test(text));
    throw new CallError(`REST ${method} ${status}: ${text}`, allowed, status === 404);
  }
  const uidOf = ({ uid = "" }: Record<string, string>) => uid;
  return {
    create: async (kind, parent, name) =>
      uidOf(
        await send("POST", `${kind}/${parent}`, {
          name,
          description: "1",
          ...(kind === "identities" && { claimMatch: claimMatch(name) }),
        }),
      ),
    update: async (kind, uid) => uidOf(await send("PATCH", `${kind}/${uid}`, { description: "2" })),
    bind: async (parent, identityUid, roleUid) =>
      uidOf(await send("POST", `roleBindings/${parent}`, { identityUid, roleUid })),
    remove: async (kind, uid) => {
      await send("DELETE", `${kind}/${uid}`);
      return uid;
    },
    read: (kind, uid) =>
      send("GET", `${kind}/${uid}`).then(({ description = "" }) => description, undefinedWhereNotFound),
    async find(kind, parent, name) {
      const query = new URLSearchParams({ name, "uidp.children_of": parent });
      const page = (await send("GET", `${kind}?${query}`)) as unknown as Record<Kind, { uid: string }[] | undefined>;
      return page[kind]?.[0]?.uid;
    },
    close: () => agent.destroy(),
  };
}

function undefinedWhereNotFound(error: unknown): undefined {
  if (error instanceof CallError && error.isNotFound) return undefined;
  throw error;
}

type Exchanged = Pick<http.RequestOptions, "method" | "headers" | "agent"> & { readonly body: string | undefined };

function exchange(url: string, { body, ...options }: Exchanged): Promise<{ status: number; text: string }> {
  const { request } = url.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    const req = request(url, { ...options, signal: AbortSignal.timeout(TIMEOUT_MS) }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (chunk) => (text += chunk));
      res.on("error", reject).on("end", () => resolve({ status: res.statusCode ?? 0, text }));
    });
    req.on("error", reject).end(body);
  });
}

/** Calls over gRPC. */
export function grpcApi(url: string, token: string, { ca, retriesWrites = false }: ApiOptions = {}): Api {
  const writes = [GroupsService, IdentitiesService, RoleBindingsService].flatMap(({ methods }) => methods);
  const connection = connectTo({
    ...{ baseUrl: url, token: { token: async () => token }, timeoutMs: TIMEOUT_MS },
    ...(retriesWrites && { retryWrites: writes }),
    ...(ca !== undefined && { tls: { ca } }),
  });
  const groups = connection.client(GroupsService);
  const identities = connection.client(IdentitiesService);
  const bindings = connection.client(RoleBindingsService);
  async function call<T>(name: string, calling: Promise<T>): Promise<T> {
    try {
      return await calling;
    } catch (error) {
      const { code, message } = ConnectError.from(error);
      // Errors of the client itself have no details: the connection ended.
      const fromServer = errorInfo(error) !== undefined;
      const hasRetry = ConnectError.from(error).findDetails(RetryInfoSchema).length > 0;
      const allowed =
        code === Code.DeadlineExceeded ||
        code === Code.Canceled ||
        (code === Code.Unavailable && (hasRetry || !fromServer));
      throw new CallError(`gRPC ${name} ${Code[code]}: ${message}`, allowed, code === Code.NotFound);
    }
  }
  return {
    create: async (kind, parent, name) => {
      if (kind === "groups") {
        return (await call("CreateGroup", groups.createGroup({ parent, group: { name, description: "1" } }))).uid;
      }
      const relationship = { case: "claimMatch" as const, value: claimMatchMessage(name) };
      const identity = { name, description: "1", relationship };
      return (await call("CreateIdentity", identities.createIdentity({ parent, identity }))).uid;
    },
    update: async (kind, uid) => {
      const changed = { uid, description: "2" };
      return kind === "groups"
        ? (await call("UpdateGroup", groups.updateGroup({ group: changed }))).uid
        : (await call("UpdateIdentity", identities.updateIdentity({ identity: changed }))).uid;
    },
    bind: async (parent, identityUid, roleUid) =>
      (await call("CreateRoleBinding", bindings.createRoleBinding({ parent, roleBinding: { identityUid, roleUid } })))
        .uid,
    remove: async (kind, uid) => {
      await call("Delete", kind === "groups" ? groups.deleteGroup({ uid }) : bindings.deleteRoleBinding({ uid }));
      return uid;
    },
    read: (kind, uid) =>
      call<{ description: string }>(
        "Get",
        kind === "groups" ? groups.getGroup({ uid }) : identities.getIdentity({ uid }),
      ).then(({ description }) => description, undefinedWhereNotFound),
    async find(kind, parent, name) {
      const query = { name, uidp: { childrenOf: parent } };
      const [found] =
        kind === "groups"
          ? (await call("List", groups.listGroups(query))).groups
          : (await call("List", identities.listIdentities(query))).identities;
      return found?.uid;
    },
    close: () => connection.close(),
  };
}

function claimMatchMessage(name: string) {
  const { issuer, subject } = claimMatch(name);
  return { iss: { case: "issuer" as const, value: issuer }, sub: { case: "subject" as const, value: subject } };
}
