// The cost of the gateway alone: match, decode and encode of one group, with plain
// objects as requests and responses and a pipeline that answers from memory. The
// peer is a complete request to node:http that answers with the same bytes from
// memory. Both in processor time; the plain objects count as cost of the gateway.
//
//   node --import tsx bench/gateway.ts [--rounds 5] [--seconds 2]
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  type CreateGroupRequest,
  type GetGroupRequest,
  GroupsService,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { groupToProto } from "../src/iam/groups/group.js";
import type { Handlers } from "../src/pipeline/handlers.js";
import { createMethodTable, serve } from "../src/pipeline/method-table.js";
import { createBudgets } from "../src/transport/http/limits/budgets.js";
import { Connection } from "../src/transport/http/limits/connection.js";
import { defaultLimits } from "../src/transport/http/limits/limits.js";
import { createRecords } from "../src/transport/http/records.js";
import { type BodySource, Request, type RequestHandlers, type RequestHost } from "../src/transport/http/request.js";
import { Gateway } from "../src/transport/rest/gateway.js";
import { createServe } from "../src/transport/serve.js";
import { childUid, groupRow, rootUid } from "../test/support/rows.js";
import { judge, median } from "./figures.js";
import { freePort, pinSelf, type Running, requireTools, runLoad, startServer } from "./processes.js";

const GROUPS = 10_000;
/** Requests in flight, as many as the peer's connections. */
const CONCURRENT = 32;
const GOAL = 1.0;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "2" } },
});
requireTools("wrk", "taskset");

/** One request with varying contents, and the expected response of each. */
interface Workload {
  readonly name: string;
  readonly requests: readonly Prepared[];
}

interface Prepared {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer | undefined;
  readonly answer: string;
}

const root = rootUid(1);
const views = new Map(
  Array.from({ length: GROUPS }, (_, i) => {
    const uid = childUid(root, i);
    const timeMs = Date.UTC(2026, 0, 1) + i * 1_001;
    const description = `Group number ${i} of the benchmark, described in a sentence`;
    const row = groupRow(uid, { name: `team-${i}`, description, createTimeMs: timeMs, updateTimeMs: timeMs + i });
    return [uid, groupToProto(row)];
  }),
);
const byName = new Map([...views.values()].map((view) => [view.name, view]));

const reads: Workload = { name: "GET", requests: [...views.keys()].map((uid) => prepareRequest("GET", uid, uid)) };
const writes: Workload = { name: "POST", requests: [...views.keys()].map((uid) => prepareRequest("POST", root, uid)) };
const serving = createServe({
  // Through a promise, as the pipeline is.
  authenticateCaller: () => undefined,
  invoke: async (method, call, _principal, given) =>
    method.handler(typeof given === "function" ? given() : given, call),
  async *invokeStream() {},
  ...{ clock: Date.now, errorDomain: "iam.test", limits: defaultLimits, onInternalError() {} },
});
const gateway = new Gateway({
  methods: createMethodTable([serve(GroupsService, handlers())]).values(),
  serve: serving,
});
const records = createRecords({ proxies: undefined, observers: [], identify() {} });
const connection = new Connection(new Socket(), { key: "a", address: "a", isProxy: false, rejection: undefined });
const host: RequestHost & RequestHandlers = {
  ...{ budgets: createBudgets(defaultLimits), maxWaitMs: 5_000, limits: defaultLimits, takesStream: () => false },
  waitAgain: (_request, run) => run(),
  ...{ chargeRead() {}, onClose() {}, handle() {}, refuse() {}, onError() {} },
};

pinSelf();
const scratch = mkdtempSync(join(tmpdir(), "arbor-gateway-"));
let peer: Running | undefined;
try {
  const body = join(scratch, "body.json");
  const sample = reads.requests.at(-1)?.answer ?? "";
  writeFileSync(body, sample);
  const port = await freePort();
  const fixed = fileURLToPath(new URL("./peers/node-http.mjs", import.meta.url));
  peer = await startServer([fixed, String(port), body]);
  console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0]?.model.trim()}`);
  console.log(`${GROUPS} different requests, bodies of about ${sample.length} bytes, ${CONCURRENT} at once\n`);
  const url = `http://127.0.0.1:${port}/`;
  for (const workload of [reads, writes]) await gatewayUs(workload, 1);
  await peerUs(peer, url, 2);

  const rounds: { get: number; post: number; whole: number }[] = [];
  for (let i = 0; i < Number(values.rounds); i++) {
    const seconds = Number(values.seconds);
    const get = await gatewayUs(reads, seconds);
    const post = await gatewayUs(writes, seconds);
    rounds.push({ get, post, whole: await peerUs(peer, url, seconds) });
  }
  const gets = rounds.map(({ get }) => get);
  const posts = rounds.map(({ post }) => post);
  const wholes = rounds.map(({ whole }) => whole);
  console.log(`${"us of CPU".padEnd(34)}${["min", "median", "max"].map((head) => head.padStart(10)).join("")}`);
  row("gateway alone, GET of a group", gets);
  row("gateway alone, POST of a group", posts);
  row("node:http, a whole request", wholes);
  const ratio = (part: readonly number[]) => median(wholes.map((whole, i) => (part[i] ?? Number.NaN) / whole));
  judge("GET: cost of the gateway to that of node:http", ratio(gets), { atMost: GOAL });
  judge("POST: cost of the gateway to that of node:http", ratio(posts), { atMost: GOAL });
} finally {
  await peer?.stop();
  rmSync(scratch, { recursive: true });
}

function row(name: string, figures: readonly number[]): void {
  const columns = [Math.min(...figures), median(figures), Math.max(...figures)];
  console.log(name.padEnd(34) + columns.map((figure) => figure.toFixed(2).padStart(10)).join(""));
}

function prepareRequest(method: string, path: string, uid: string): Prepared {
  const { name = "", description = "", createTime, updateTime } = views.get(uid) ?? {};
  const time = (at = createTime) => new Date(Number(at?.seconds) * 1000 + Number(at?.nanos) / 1e6).toISOString();
  return {
    method,
    url: `/iam/v2beta1/groups/${path}`,
    body: method === "GET" ? undefined : Buffer.from(JSON.stringify({ name, description })),
    answer:
      `{"uid":"${uid}","name":"${name}","description":"${description}","resourceLimits":{},"verified":false,` +
      `"createTime":"${time()}","updateTime":"${time(updateTime)}"}`,
  };
}

// The response depends on the decoded request, so a wrong decoder gives a wrong response.
function handlers(): Handlers<typeof GroupsService> {
  const none = () => ({});
  return {
    getGroup: ({ uid }: GetGroupRequest) => views.get(uid) ?? {},
    createGroup: ({ group }: CreateGroupRequest) => byName.get(group?.name ?? "") ?? {},
    listGroups: none,
    updateGroup: none,
    deleteGroup: none,
    lookupGroup: none,
    requestGroupAccess: none,
    checkEligibility: none,
  };
}

/** Processor time of one request in the gateway, in microseconds, measured for some seconds. */
async function gatewayUs({ name, requests }: Workload, seconds: number): Promise<number> {
  const endMs = performance.now() + seconds * 1000;
  const before = process.cpuUsage();
  let done = 0;
  while (performance.now() < endMs) {
    for (let batch = 0; batch < 10; batch++) {
      await answerBatch(requests, done);
      done += CONCURRENT;
    }
  }
  const { user, system } = process.cpuUsage(before);
  if (done < GROUPS) throw new Error(`${name}: only ${done} requests in ${seconds} s`);
  return (user + system) / done;
}

function answerBatch(requests: readonly Prepared[], from: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let open = CONCURRENT;
    for (let i = from; i < from + CONCURRENT; i++) {
      const request = requests[i % requests.length];
      if (request === undefined) throw new Error("there is nothing to ask");
      const asked = new MemoryRequest(request, (status, text) => {
        if (status !== 200 || text !== request.answer) reject(new Error(`${request.url}: ${status} ${text}`));
        if (--open === 0) resolve();
      });
      records.begin(asked);
      gateway.handle(asked);
      if (request.body === undefined) continue;
      asked.body.emit("data", request.body);
      asked.body.emit("end");
    }
  });
}

// A request that came by no connection.
class MemoryRequest extends Request {
  readonly method: string;
  readonly url: string;
  readonly fields: Record<string, string>;
  readonly rawFields = [];
  readonly httpVersion = "1.1";
  readonly socketAddress = "a";
  protected readonly isBodyComplete = true;
  readonly mayHaveBody: boolean;
  readonly body = new EventEmitter() as BodySource;
  readonly #onEnd: (status: number, text: string) => void;

  constructor({ method, url, body }: Prepared, onEnd: (status: number, text: string) => void) {
    super("a", Number.POSITIVE_INFINITY, connection, host);
    this.method = method;
    this.url = url;
    this.mayHaveBody = body !== undefined;
    this.fields = {
      host: "127.0.0.1",
      accept: "application/json",
      ...(body && { "content-type": "application/json", "content-length": String(body.length) }),
    };
    this.#onEnd = onEnd;
  }

  protected get sink(): never {
    throw new TypeError("there is no response");
  }

  override get isGone(): boolean {
    return false;
  }

  override get headersSent(): boolean {
    return false;
  }

  sendWhole(status: number, _fields: object, body: string | Uint8Array): void {
    this.#onEnd(status, String(body));
    this.close(status, true);
  }

  discardBody(): void {}
  protected sendHead(): void {}
  endWithTrailers(): void {}
  abort(): void {}
  cutOff(): void {}
}
/** Processor time of one request to node:http, in microseconds, under load for some seconds. */
async function peerUs(server: Running, url: string, seconds: number): Promise<number> {
  const before = server.cpuUs();
  const output = await runLoad("wrk", ["-t1", `-c${CONCURRENT}`, `-d${seconds}s`, url]);
  const requests = Number(/(\d+) requests in/.exec(output)?.[1]);
  if (/Non-2xx|Socket errors/.test(output) || !(requests > 0)) throw new Error(`wrk: not all is well\n${output}`);
  return (server.cpuUs() - before) / requests;
}
