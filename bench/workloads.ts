// The kinds of calls whose processor time is compared. Reads are sent by h2load for a time. Writes and exchanges are sent by
// connections of our own, since each differs from the one before, and so many a slice, so that all servers store as many rows.
import type { LocalIssuer } from "../test/support/local-issuer.js";
import { createWorkflow } from "./ci-claims.js";
import { type LoadResult, loadGrpc, loadHttp1, loadRpc, type Shape } from "./h2load.js";
import { buildRequest, sendAll } from "./http1.js";
import type { Side } from "./side.js";

/** Makes calls of one kind; resolves with their number, and rejects when a response is not 2xx. */
export type Calls = () => Promise<number>;

/** What is measured on servers that are started for it: one kind of call, or several that need each other. */
export interface Workload {
  readonly kinds: readonly string[];
  /** The least number of calls of each kind that a server answers before it is measured. */
  readonly warmCalls: number;
  /** Flags of the service. */
  readonly settings: readonly string[];
  /** How long the service may go on working after its last response, in milliseconds. */
  readonly settleMs: number;
  /** Prepares a slice, which is not measured: the calls of each kind, to be made in this order. */
  prepare(side: Side, seconds: number): Promise<readonly Calls[]>;
}

const EIGHT_BY_EIGHT = { connections: 8, streams: 8 };
const WRITERS = 32;
/** A processor of 2024 serves about as many in a second. */
const WRITES_PER_SECOND = 4_000;
const EXCHANGES_PER_SECOND = 2_000;
/** A part of the price of a write is paid after its response, by the job that seals the audit log every 500 ms. */
const SETTLE_MS = 600;

/** Numbers for the texts of requests: no two are the same. */
const takeNumbers = (
  (next) => (count: number) =>
    Array.from({ length: count }, () => next++)
)(0);

/** The workloads in the order in which they are measured. */
export function listWorkloads(issuer: LocalIssuer): readonly Workload[] {
  const grpc = (shape: Shape) =>
    read(`grpc, ${shape.connections} connections x ${shape.streams} streams`, (side, s) =>
      loadGrpc(side.url, side.token, side.frame, shape, s),
    );
  const rpc = (name: string, type: string, bodyOf: (side: Side) => string) =>
    read(`${name}, 8 connections x 8 streams`, (side, s) =>
      loadRpc(side.url, side.token, type, bodyOf(side), EIGHT_BY_EIGHT, s),
    );
  return [
    read("rest, 32 connections", (side, s) => loadHttp1(side.addresses, side.token, 32, s)),
    grpc(EIGHT_BY_EIGHT),
    update,
    createAndDelete,
    exchange(issuer),
    // V8 optimizes code of lists for 10 to 15 s, and its compiler's time counts.
    read("list, 8 connections", (side, s) => loadHttp1(side.list, side.token, 8, s), 20_000),
    grpc({ connections: 32, streams: 1 }),
    rpc("connect in JSON", "application/json", (side) => side.json),
    rpc("web: gRPC-Web", "application/grpc-web+proto", (side) => side.frame),
  ];
}

function read(name: string, load: (side: Side, seconds: number) => Promise<LoadResult>, warmCalls = 40_000): Workload {
  const prepare = async (side: Side, seconds: number) => [async () => (await load(side, seconds)).requests];
  return { kinds: [name], warmCalls, settings: [], settleMs: 0, prepare };
}

const writes = { warmCalls: 8_000, settings: [], settleMs: SETTLE_MS };

const update: Workload = {
  ...writes,
  kinds: [nameWrites("update")],
  async prepare(side, seconds) {
    const requests = takeNumbers(countWrites(seconds)).map((n) =>
      buildGroupRequest(side, "PATCH", groupOf(side, n), { description: `changed ${n}` }),
    );
    return [() => send(side, requests)];
  },
};

// Each slice deletes what it has created, so the number of groups stays as it is.
const createAndDelete: Workload = {
  ...writes,
  kinds: [nameWrites("create"), nameWrites("delete")],
  settings: ["--quotas", "groups=10000000"],
  async prepare(side, seconds) {
    const creations = takeNumbers(countWrites(seconds)).map((n) => {
      const group = { name: `created ${n}`, description: "A group that is created and deleted." };
      return buildGroupRequest(side, "POST", groupOf(side, n), group);
    });
    const deletions: Buffer[] = [];
    const create = async () => {
      const bodies = await sendAll(portOf(side), creations, WRITERS);
      const uids = bodies.map((body) => (JSON.parse(body) as { uid: string }).uid);
      deletions.push(...uids.map((uid) => buildGroupRequest(side, "DELETE", uid)));
      return bodies.length;
    };
    return [create, () => send(side, deletions)];
  },
};

function exchange(issuer: LocalIssuer): Workload {
  return {
    ...writes,
    kinds: [nameWrites("exchange")],
    settings: ["--trusted-issuers", issuer.issuer],
    async prepare(side, seconds) {
      const [app = 0] = takeNumbers(1);
      const workflow = await createWorkflow(side, issuer, app);
      const requests = takeNumbers(Math.ceil(EXCHANGES_PER_SECOND * seconds)).map((run) =>
        buildRequest(side.url, workflow.token(run), "GET", workflow.exchange),
      );
      return [() => send(side, requests)];
    },
  };
}

function nameWrites(kind: string): string {
  return `${kind}, ${WRITERS} connections`;
}

function countWrites(seconds: number): number {
  return Math.ceil(WRITES_PER_SECOND * seconds);
}

function buildGroupRequest({ url, token }: Side, method: string, uid: string, group?: object): Buffer {
  return buildRequest(url, token, method, `/iam/v2beta1/groups/${uid}`, group && JSON.stringify(group));
}

// The groups in turn.
function groupOf({ uids, group }: Side, n: number): string {
  return uids[n % uids.length] ?? group;
}

async function send(side: Side, requests: readonly Buffer[]): Promise<number> {
  return (await sendAll(portOf(side), requests, WRITERS)).length;
}

function portOf({ url }: Side): number {
  return Number(new URL(url).port);
}
