// What a caller waits for and what a machine gives, in one table: REST, gRPC and the token exchange, with one worker, with
// two, and on PostgreSQL with one node and with two, beside servers of Node that answer the same from memory.
//
//   npm run bench -- table [--only get,list,grpc8,grpc32,exchange,create] [--slices 12] [--seconds 0.5] [--no-postgres]
//
// Servers, database and load generator share all processors of the machine, as without a benchmark. The machine becomes faster
// and slower within a second, so each column gets a short slice in turn, again and again: a ratio is the median of those
// of the slices of one turn.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { startLocalIssuer } from "../test/support/local-issuer.js";
import { createWorkflow } from "./ci-claims.js";
import { judge, median } from "./figures.js";
import { getGroup } from "./grpc-client.js";
import { type LoadResult, loadGrpc, loadHttp1, NoResponses, type Shape } from "./h2load.js";
import { createDatabase, findServerPid } from "./pg-database.js";
import {
  busyUs,
  cpuUsOfTree,
  freePort,
  type Running,
  requireTools,
  startServer,
  usedByGeneratorUs,
} from "./processes.js";
import { type Side, startSide } from "./side.js";

/** Calls before those that count, while V8 compiles, but no more than some slices of a second. */
const WARM_CALLS = 20_000;
const MAX_WARM_SLICES = 8;
/** How far the mean length of responses may differ from that of the first column: slices begin and end in the middle. */
const SAME_LENGTH = 0.03;
const CONNECTIONS = 32;
const ALL_CPUS = `0-${cpus().length - 1}`;
const ROOT = fileURLToPath(new URL("..", import.meta.url));

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "get,list,grpc8,grpc32,exchange,create" },
    slices: { type: "string", default: "12" },
    seconds: { type: "string", default: "0.5" },
    "no-postgres": { type: "boolean", default: false },
  },
});
const [slices, seconds] = [Number(values.slices), Number(values.seconds)];
if (!(slices >= 1 && seconds > 0)) {
  console.error("usage: npm run bench -- table [--only ROWS] [--slices N] [--seconds S] [--no-postgres]");
  process.exit(2);
}
requireTools("h2load", "taskset");

/** A column: a server and where it listens. */
interface Contender {
  readonly name: string;
  readonly urls: readonly string[];
  readonly server: Pick<Running, "cpuUs">;
  /** How many processes serve. */
  readonly processes: number;
  /** The process of its database server. */
  readonly databasePid?: number | undefined;
  /** The side whose requests it gets: another one for the servers that answer from memory. */
  readonly side: Side;
}

/** A row: a kind of call. */
interface Row {
  readonly key: string;
  readonly name: string;
  /** How many calls are in flight. */
  readonly inFlight: number;
  readonly peers: readonly (keyof typeof peers)[];
  load(to: Contender, url: string, share: number, seconds: number): Promise<LoadResult>;
}

/** One slice of a column. */
interface Slice {
  /** Microseconds of processor time for a call: of the service, and of its database server. */
  readonly us: number;
  readonly databaseUs: number;
  readonly perSecond: number;
  readonly bytes: number;
  readonly count: number;
  /** The share of the machine that other programs used meanwhile. */
  readonly foreign: number;
}

/** Servers that answer the same as Arbor from memory, each by its script and what it gets. */
const peers = {
  "node:http": { args: ["bench/peers/node-http.mjs"], answer: readRest },
  "grpc-js": { args: ["bench/peers/grpc-js.mjs"], answer: readGrpc },
  "connect-node": { args: ["bench/peers/connect-node.mjs"], answer: readJson },
} as const;

const rest = (key: string, name: string, body?: string): Row => ({
  key,
  name: `${name}, ${CONNECTIONS} connections`,
  inFlight: CONNECTIONS,
  peers: ["node:http"],
  load: ({ side }, base, share, forSeconds) => {
    const { addresses, token } = requestsOf(side, key);
    return loadHttp1(addresses, token, CONNECTIONS * share, forSeconds, { base, body, cpus: ALL_CPUS });
  },
});
const grpc = (key: string, shape: Shape): Row => ({
  key,
  name: `gRPC GetGroup, ${shape.connections} connections of ${shape.streams}`,
  inFlight: shape.connections * shape.streams,
  peers: ["grpc-js", "connect-node"],
  load: ({ side }, url, share, forSeconds) => {
    const part = { ...shape, connections: shape.connections * share };
    return loadGrpc(url, side.token, side.frame, part, forSeconds, ALL_CPUS);
  },
});

const scratch = mkdtempSync(join(tmpdir(), "arbor-bench-table-"));
const newGroup = join(scratch, "new-group.json");
writeFileSync(newGroup, JSON.stringify({ name: "created", description: "A group that is created again and again." }));
const rows: readonly Row[] = [
  rest("get", "REST GET of a group"),
  rest("list", "REST page of 50 groups"),
  grpc("grpc8", { connections: 8, streams: 8 }),
  grpc("grpc32", { connections: 32, streams: 1 }),
  rest("exchange", "Token exchange, REST"),
  // The last one: it makes lists longer.
  rest("create", "REST creation of a group", newGroup),
].filter(({ key }) => values.only.split(",").includes(key));

const issuer = await startLocalIssuer();
const running: { stop(): Promise<void> }[] = [];
const requests = new Map<Side, Map<string, { readonly addresses: string; readonly token: string }>>();
try {
  const contenders = await startAll();
  printConditions();
  const table: { readonly row: Row; readonly columns: Map<string, readonly Slice[]> }[] = [];
  for (const row of rows) table.push({ row, columns: await measureRow(row, contenders) });
  printTable(table, [...contenders.map(({ name }) => name), ...Object.keys(peers)]);
  for (const { row, columns } of table) judgeRow(row, columns);
} finally {
  await Promise.all(running.map((each) => each.stop()));
  await issuer.stop();
  rmSync(scratch, { recursive: true, force: true });
}

async function startAll(): Promise<Contender[]> {
  const variants = [
    { name: "one worker" },
    { name: "two workers", settings: ["--workers", "2"], processes: 2 },
    ...(values["no-postgres"] || process.env.TEST_ARBOR_DATABASE_URL === undefined
      ? []
      : [
          { name: "PostgreSQL", databaseUrl: await createDatabase() },
          { name: "PostgreSQL, two nodes", databaseUrl: await createDatabase(), nodes: 2, processes: 2 },
        ]),
  ];
  const contenders: Contender[] = [];
  for (const { name, settings = [], processes = 1, ...options } of variants) {
    const flags = [
      "--metrics-listen",
      "off",
      "--trusted-issuers",
      issuer.issuer,
      "--quotas",
      "groups=10000000",
      "--log-level",
      "warn",
    ];
    const side = await startSide("table", ROOT, scratch, {
      ...options,
      settings: [...flags, ...settings],
      cpus: ALL_CPUS,
    });
    running.push(side);
    requests.set(side, await writeRequests(side));
    const { databaseUrl } = options as { databaseUrl?: string };
    const databasePid = databaseUrl === undefined ? undefined : await findServerPid(databaseUrl);
    contenders.push({ name, urls: side.urls, server: side.server, processes, databasePid, side });
  }
  return contenders;
}

async function writeRequests(side: Side) {
  const { url, token, group } = side;
  const workflow = await createWorkflow(side, issuer, 1);
  const exchange = join(scratch, `exchange-${group}.txt`);
  writeFileSync(exchange, url + workflow.exchange);
  return new Map([
    ["get", { addresses: side.addresses, token }],
    ["list", { addresses: side.list, token }],
    // A group is created in the one that its address names.
    ["create", { addresses: side.addresses, token }],
    ["exchange", { addresses: exchange, token: workflow.token(1) }],
  ]);
}

function requestsOf(side: Side, key: string) {
  const found = requests.get(side)?.get(key);
  if (found === undefined) throw new Error(`no requests for ${key}`);
  return found;
}

/** All slices of a row by column. */
async function measureRow(row: Row, contenders: readonly Contender[]): Promise<Map<string, readonly Slice[]>> {
  const [first] = contenders;
  if (first === undefined) throw new Error("there is nothing to measure");
  const references: (Contender & { stop(): Promise<void> })[] = [];
  try {
    for (const name of row.peers) references.push(await startPeer(name, row, first.side));
    const all = [...contenders, ...references];
    const columns = new Map(all.map(({ name }): [string, Slice[]] => [name, []]));
    const groupsBefore = await countGroups(contenders);
    const calls = new Map<string, number>();
    const run = async (contender: Contender, forSeconds: number) => {
      const slice = await measure(row, contender, forSeconds);
      calls.set(contender.name, (calls.get(contender.name) ?? 0) + slice.count);
      return slice;
    };
    for (let n = 0; n < MAX_WARM_SLICES; n++) {
      for (const contender of all) {
        const wanted = WARM_CALLS * contender.processes;
        if ((calls.get(contender.name) ?? 0) < wanted) await run(contender, 1);
      }
    }
    for (let n = 0; n < slices; n++) {
      // Each is first in its turn, since what one has left to do, such as a checkpoint, costs the next one.
      for (let k = 0; k < all.length; k++) {
        const contender = all[(k + n) % all.length] as Contender;
        columns.get(contender.name)?.push(await run(contender, seconds));
      }
    }
    await checkResponses(row, all, columns);
    if (row.key === "create") await checkCreated(contenders, groupsBefore, calls);
    return columns;
  } finally {
    for (const each of references) await each.stop();
  }
}

async function startPeer(name: keyof typeof peers, row: Row, side: Side) {
  const { args, answer } = peers[name];
  const port = await freePort();
  const file = join(scratch, `${row.key}-${name.replace(":", "-")}.json`);
  writeFileSync(file, await answer(side, row));
  const script = [...args.map((path) => join(ROOT, path)), String(port), file];
  const server = await startServer(script, ROOT, {}, ALL_CPUS);
  return { name, urls: [`http://127.0.0.1:${port}`], server, processes: 1, side, stop: () => server.stop() };
}

async function readRest(side: Side, { key }: Row): Promise<string> {
  const { addresses, token } = requestsOf(side, key);
  const [address = ""] = readFileSync(addresses, "utf8").split("\n");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const options = key === "create" ? { method: "POST", body: readFileSync(newGroup) } : {};
  const response = await fetch(address, { headers, ...options });
  if (!response.ok) throw new Error(`${address}: ${response.status}: ${await response.text()}`);
  return response.text();
}

async function readGrpc(side: Side): Promise<string> {
  return JSON.stringify(await getGroup(side.url, side.token, side.uid));
}

async function readJson(side: Side): Promise<string> {
  const headers = { authorization: `Bearer ${side.token}` };
  const response = await fetch(`${side.url}/iam/v2beta1/groups/${side.uid}`, { headers });
  return response.text();
}

// On a busy machine a short slice may end before the first response.
async function measure(row: Row, to: Contender, forSeconds: number, tries = 3): Promise<Slice> {
  const [startMs, usedBefore, allBefore] = [performance.now(), usedByGeneratorUs(), busyUs()];
  const readDatabase = () => (to.databasePid === undefined ? 0 : cpuUsOfTree(to.databasePid));
  const [before, databaseBefore] = [to.server.cpuUs(), readDatabase()];
  const share = 1 / to.urls.length;
  const results = await Promise.all(to.urls.map((url) => row.load(to, url, share, forSeconds))).catch(
    (error: unknown) => {
      if (error instanceof NoResponses && tries > 1) return undefined;
      throw new Error(`${row.name}, ${to.name}: ${error instanceof Error ? error.message : error}`);
    },
  );
  if (results === undefined) return measure(row, to, forSeconds, tries - 1);
  const sum = (pick: (result: LoadResult) => number) => results.reduce((all, each) => all + pick(each), 0);
  const count = sum((result) => result.requests);
  const [serverUs, databaseUs] = [to.server.cpuUs() - before, readDatabase() - databaseBefore];
  const foreignUs = busyUs() - allBefore - serverUs - databaseUs - (usedByGeneratorUs() - usedBefore);
  return {
    us: serverUs / count,
    databaseUs: databaseUs / count,
    foreign: Math.max(0, foreignUs) / ((performance.now() - startMs) * 1_000 * cpus().length),
    perSecond: sum((result) => result.requestsPerSecond),
    bytes: sum((result) => result.bytes * result.requests) / count,
    count,
  };
}

// All columns answer the same: as many bytes, and over gRPC the same group for a client that reads it.
async function checkResponses(row: Row, all: readonly Contender[], columns: Map<string, readonly Slice[]>) {
  const found = (name: string) => columns.get(name) ?? [];
  const expected = median(found(all[0]?.name ?? "").map(({ bytes }) => bytes));
  for (const { name, urls, side } of all) {
    const length = median(found(name).map(({ bytes }) => bytes));
    // A slice cuts off one response for each call in flight, of which h2load counts the bytes and not the call.
    const cut = Math.max(...[...found(name), ...found(all[0]?.name ?? "")].map(({ count }) => row.inFlight / count));
    if (!(Math.abs(length / expected - 1) <= SAME_LENGTH + cut)) {
      throw new Error(
        `${row.name}, ${name}: responses of ${length.toFixed(0)} bytes instead of ${expected.toFixed(0)}`,
      );
    }
    if (!row.key.startsWith("grpc")) continue;
    for (const url of urls) {
      const [found, stored] = [
        await getGroup(url, side.token, side.uid),
        await getGroup(side.url, side.token, side.uid),
      ];
      if (!isDeepStrictEqual(found, stored)) throw new Error(`${name}: not the same group: ${JSON.stringify(found)}`);
    }
  }
}

async function countGroups(contenders: readonly Contender[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { name, side } of contenders) {
    const headers = { authorization: `Bearer ${side.token}` };
    const response = await fetch(`${side.url}/iam/v2beta1/groups?page_size=1`, { headers });
    counts.set(name, Number(((await response.json()) as { totalCount: number | string }).totalCount));
  }
  return counts;
}

// What was acknowledged is there. What was cut off at the end of a slice may be there too.
async function checkCreated(
  contenders: readonly Contender[],
  before: Map<string, number>,
  calls: Map<string, number>,
): Promise<void> {
  const after = await countGroups(contenders);
  for (const { name } of contenders) {
    const created = (after.get(name) ?? Number.NaN) - (before.get(name) ?? Number.NaN);
    const acknowledged = calls.get(name) ?? Number.NaN;
    const most = acknowledged + (slices + MAX_WARM_SLICES) * CONNECTIONS + 1;
    if (!(created >= acknowledged && created <= most)) {
      throw new Error(`${name}: ${created} groups were created, and ${acknowledged} acknowledged`);
    }
  }
}

function printConditions(): void {
  const model = cpus()[0]?.model.trim();
  const hasPostgres = process.env.TEST_ARBOR_DATABASE_URL !== undefined && !values["no-postgres"];
  console.log(
    `node ${process.version}, ${availableParallelism()} x ${model}, load ${loadavg()[0]?.toFixed(2)} at the start`,
  );
  console.log(
    `servers, ${hasPostgres ? "PostgreSQL, " : ""}and one thread of h2load share all processors; cleartext on loopback, ` +
      "access log and metrics off, 400 groups; SQLite with synchronous = FULL" +
      (hasPostgres ? ", PostgreSQL with fsync on if it was started with --durable" : ""),
  );
  console.log(
    `${slices} slices of ${seconds} s for each figure, after ${WARM_CALLS} calls to warm up each process, the columns in turn; medians. ` +
      `Every response is 2xx, and as long as those of one worker to ${SAME_LENGTH * 100} %`,
  );
  console.log(
    "in a cell: processor time of the service per call (+ that of PostgreSQL), calls per second, and both in multiples of one worker\n",
  );
}

function printTable(
  table: readonly { readonly row: Row; readonly columns: Map<string, readonly Slice[]> }[],
  names: readonly string[],
): void {
  const print = (cells: readonly string[]) => console.log(`| ${cells.join(" | ")} |`);
  print(["", ...names]);
  print(["---", ...names.map(() => "---")]);
  for (const { row, columns } of table) {
    print([row.name, ...names.map((name) => describe(columns.get(name), columns.get("one worker"), name))]);
  }
  const spreads = table.flatMap(({ columns }) =>
    [...columns.values()].flatMap((found) => {
      const one = columns.get("one worker") ?? [];
      return found === one ? [] : [spread(ratiosOf(found, one, (slice) => slice.us))];
    }),
  );
  const foreign = table.flatMap(({ columns }) => [...columns.values()].flat().map((slice) => slice.foreign));
  console.log(
    `\nhalf of the ratios by processor time are within ${(median(spreads) * 100).toFixed(0)} % of their median ` +
      `(at most ${(Math.max(...spreads) * 100).toFixed(0)} %); other programs used ${(median(foreign) * 100).toFixed(0)} % ` +
      "of the machine",
  );
}

function describe(found: readonly Slice[] | undefined, one: readonly Slice[] | undefined, name: string): string {
  if (found === undefined || one === undefined) return "";
  const database = median(found.map(({ databaseUs }) => databaseUs));
  const perCall = `${median(found.map(({ us }) => us)).toFixed(0)}${database > 0 ? ` + ${database.toFixed(0)}` : ""} µs`;
  const rate = `${Math.round(median(found.map(({ perSecond }) => perSecond))).toLocaleString("en")}/s`;
  if (name === "one worker") return `${perCall}, ${rate}`;
  const [byCpu, byRate] = [ratio(found, one, (slice) => slice.us), ratio(found, one, (slice) => slice.perSecond)];
  return `${perCall}, ${rate} (${byCpu.toFixed(2)}, ${byRate.toFixed(2)})`;
}

function ratiosOf(found: readonly Slice[], one: readonly Slice[], pick: (slice: Slice) => number): number[] {
  return found.map((slice, n) => pick(slice) / pick(one[n] as Slice));
}

function ratio(found: readonly Slice[], one: readonly Slice[], pick: (slice: Slice) => number): number {
  return median(ratiosOf(found, one, pick));
}

/** How far half of the values are from their median at most, as a share of it. */
function spread(of: readonly number[]): number {
  const middle = median(of);
  return median(of.map((each) => Math.abs(each / middle - 1)));
}

function judgeRow({ key, name }: Row, columns: Map<string, readonly Slice[]>): void {
  const one = columns.get("one worker") ?? [];
  const [two, http, grpcJs] = ["two workers", "node:http", "grpc-js"].map((each) => columns.get(each));
  const us = (slice: Slice) => slice.us;
  const perSecond = (slice: Slice) => slice.perSecond;
  if (key === "get" && http) judge(`${name}: node:http / arbor by CPU`, ratio(http, one, us), { atLeast: 0.38 });
  if (grpcJs) judge(`${name}: grpc-js / arbor by CPU`, ratio(grpcJs, one, us), { atLeast: 0.9 });
  if (!two || availableParallelism() < 2) return;
  judge(`${name}: CPU per call, two workers / one`, ratio(two, one, us), { atMost: 1.15 });
  const isWrite = key === "create";
  judge(`${name}: rate, two workers / one`, ratio(two, one, perSecond), { atLeast: isWrite ? 0.95 : 1.2 });
}
