// The calls of the good client, each checked: a response that is not the one that
// was requested is a failure.
import { Agent, request } from "node:http";
import { openGrpc } from "./grpc.js";
import type { Issuers } from "./issuers.js";
import type { GoodWorld } from "./world.js";

/** One call of each kind; rejects with the reason when it is not answered as it should be. */
export interface Caller {
  get(): Promise<void>;
  list(): Promise<void>;
  create(): Promise<void>;
  delete(): Promise<void>;
  grpc(): Promise<void>;
  exchange(): Promise<void>;
  close(): void;
}

const GROUPS = "/iam/v2beta1/groups";
const GET_GROUP = "/chainguard.platform.iam.v2beta1.GroupsService/GetGroup";
/** Workloads that come again and again. */
const KNOWN = 20;
/** Every so many exchanges a workload comes whose issuer the service has not met, while there are any. */
const NEW_EVERY = 5;
/** Sockets that are idle for longer are given up before the service does it, in milliseconds. */
const IDLE_MS = 8_000;

/** Creates a caller. @param timeoutMs how long a response may take */
export function callerOf(world: GoodWorld, issuers: Issuers, timeoutMs: number): Caller {
  const { url, address, token, group, workloads } = world;
  const { port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: 100, timeout: IDLE_MS });
  const created: string[] = [];
  const grpc = openGrpc(url, address);
  let count = 0;
  let exchanges = 0;
  let met = KNOWN;

  function http(method: string, path: string, bearer: string, body?: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const req = request({
        agent,
        host: "127.0.0.1",
        port,
        localAddress: address,
        method,
        path,
        headers: {
          authorization: `Bearer ${bearer}`,
          ...(body !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
        },
      });
      const timer = setTimeout(() => req.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
      req.on("error", (error: NodeJS.ErrnoException) => reject(error.code ? new Error(error.code) : error));
      req.on("close", () => {
        clearTimeout(timer);
        reject(new Error("closed before the answer was whole"));
      });
      req.on("response", (res) => {
        let text = "";
        res.setEncoding("utf8");
        res.on("data", (chunk) => (text += chunk));
        res.on("end", () => {
          if (res.statusCode === 200) resolve(text);
          else reject(new Error(`HTTP ${res.statusCode} ${messageIn(text)}`));
        });
      });
      req.end(body);
    });
  }

  return {
    async get() {
      const response = JSON.parse(await http("GET", `${GROUPS}/${group}`, token)) as { uid?: string };
      if (response.uid !== group) throw new Error("another group was answered");
    },
    async list() {
      const path = `${GROUPS}?uidp.descendants_of=${group}&page_size=10`;
      const response = JSON.parse(await http("GET", path, token)) as { items?: unknown; groups?: unknown };
      if (!Array.isArray(response.groups ?? response.items)) throw new Error("no list was answered");
    },
    async create() {
      const body = JSON.stringify({ name: `group ${++count}`, description: "x".repeat(200) });
      const response = JSON.parse(await http("POST", `${GROUPS}/${group}`, token, body)) as { uid?: string };
      if (!response.uid?.startsWith(`${group}/`)) throw new Error("no group was answered");
      created.push(response.uid);
    },
    async delete() {
      const uid = created.shift();
      // The first comes before there is anything to delete.
      if (uid !== undefined) await http("DELETE", `${GROUPS}/${uid}`, token);
      else await this.get();
    },
    async grpc() {
      const uid = Buffer.from(group);
      const { status, messages } = await grpc.call({
        path: GET_GROUP,
        token,
        message: Buffer.concat([Buffer.from([0x0a, uid.length]), uid]),
        timeoutMs,
      });
      if (status !== "0") throw new Error(`grpc-status ${status}`);
      if (!messages[0]?.includes(uid)) throw new Error("another group was answered");
    },
    async exchange() {
      const n = exchanges++;
      const isNew = n % NEW_EVERY === 0 && met < workloads.length;
      const { identity, issuer } = workloads[isNew ? met++ : n % KNOWN] ?? { identity: "", issuer: "" };
      const bearer = issuers.token(new URL(issuer).pathname, url);
      const query = `aud=${encodeURIComponent(url)}&identity=${encodeURIComponent(identity)}`;
      const response = JSON.parse(await http("POST", `/sts/exchange?${query}`, bearer)) as { token?: string };
      if (!response.token?.startsWith("eyJ")) throw new Error("no token was answered");
    },
    close() {
      agent.destroy();
      grpc.close();
    },
  };
}

function messageIn(text: string): string {
  try {
    return String((JSON.parse(text) as { message?: unknown }).message).slice(0, 120);
  } catch {
    return text.slice(0, 120);
  }
}
