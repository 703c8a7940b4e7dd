// Sends the same requests to two services, one after another, and collects how their responses differ.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { createRandom } from "../../support/openapi/random.js";
import { readDocument } from "../../support/openapi/request.js";
import { createReader, type WireResponse } from "../../support/read-response.js";
import type { Field } from "../wire/hpack.js";
import { type Compare, createCompare, type Difference } from "./differences.js";
import type { WireClient, WireRequest } from "./exchange.js";
import { createHttp1Client } from "./http1-client.js";
import { createHttp2Client, WINDOW_BYTES } from "./http2-client.js";
import { createPlanner, learn } from "./requests.js";
import { type Filled, type Pair, scenarios } from "./scenarios.js";
import { services } from "./services.js";
import { type Side, startSide } from "./side.js";
import { createIssuers, fillSide, type Issuers, ORIGIN } from "./world.js";

/** What to do. */
export interface CompareOptions {
  /** Two built checkouts. */
  readonly checkouts: readonly [string, string];
  readonly requests: number;
  readonly seed: number;
  readonly onProgress?: (text: string) => void;
}

/** Responses that differ in the same way. */
export interface Row {
  readonly label: string;
  readonly difference: Difference;
  count: number;
  readonly example: Example;
}

/** A request whose responses differ. */
export interface Example {
  /** The number of the request, or the name of the scenario. */
  readonly where: string;
  readonly request: WireRequest;
  readonly a: JsonObject;
  readonly b: JsonObject;
}

/** What came of it. */
export interface CompareReport {
  readonly requests: number;
  readonly seconds: number;
  readonly rows: readonly Row[];
  /** How many responses there were, by protocol, and by status or code. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Why requests were not sent: they could not be made the same for both. */
  readonly skipped: readonly string[];
  /** What else is wrong, such as a process that ended. */
  readonly faults: readonly string[];
}

/** Of the requests, how many go to services that have a mounted one beside those of the platform. */
const MOUNTED_SHARE = 0.15;
/** How much longer is waited where one of the sides did not respond, or not in time, and how often. */
const PATIENCE = 20;
const MORE_TRIES = 2;
/** Two things made one after another have different times. */
const TICK_MS = 3;

/** Compares two checkouts. */
export async function compareCheckouts(options: CompareOptions): Promise<CompareReport> {
  const { requests, seed, checkouts, onProgress = () => {} } = options;
  const startMs = performance.now();
  const issuers = createIssuers();
  const collected = createCollector();
  const mounted = Math.round(requests * MOUNTED_SHARE);
  for (const mounts of [false, true]) {
    const settings = {
      tokenAlgorithm: "ES256",
      trustedProxies: "127.0.0.0/8",
      corsOrigins: ORIGIN,
      maxWait: "1s",
      ...issuers.settings,
    };
    const kind = mounts ? "with a mounted service" : "stock";
    onProgress(`${kind}: two services are started and filled`);
    const [a, b] = (await Promise.all(
      checkouts.map(async (checkout, i) => {
        const side = await startSide({ name: i === 0 ? "this" : "other", checkout, settings, mounts });
        return { side, contents: await fillSide(side, issuers) };
      }),
    )) as [Filled, Filled];
    const run = { a, b, issuers, seed: seed + (mounts ? 1 : 0), collected, mounts, onProgress, kind };
    try {
      await comparePair(run, mounts ? mounted : requests - mounted);
    } finally {
      await Promise.all([a.side.stop(), b.side.stop()]);
    }
  }
  const seconds = (performance.now() - startMs) / 1000;
  return { requests, seconds, ...collected.report() };
}

interface PairRun {
  readonly a: Filled;
  readonly b: Filled;
  readonly issuers: Issuers;
  readonly seed: number;
  readonly collected: Collector;
  readonly mounts: boolean;
  readonly kind: string;
  readonly onProgress: (text: string) => void;
}

async function comparePair(run: PairRun, requests: number): Promise<void> {
  const { a, b, issuers, seed, collected, mounts, kind, onProgress } = run;
  const read = createReader(services);
  const namesOf = ({ url, port }: Side) => [url, `127.0.0.1:${port}`];
  const compare = createCompare({ a: namesOf(a.side), b: namesOf(b.side) });
  const clients = [createClient(a.side), createClient(b.side)] as const;
  const document = await readDocument(a.side.url);
  const planner = createPlanner({ seed, document, issuers, mounts });

  const sent: SentRequest[] = [];

  function isAlive(): boolean {
    for (const { side } of [a, b]) {
      const end = side.describeEnd();
      if (end !== undefined) collected.fault(`${kind}: the process of ${side.name} ${end}`);
    }
    return a.side.describeEnd() === undefined && b.side.describeEnd() === undefined;
  }

  async function exchange(
    requestA: WireRequest,
    requestB: WireRequest,
    where: string,
    [ofA, ofB]: readonly [WireClient, WireClient] = clients,
  ): Promise<readonly [JsonObject, JsonObject] | undefined> {
    const unequal = findUnequal(compare, requestA, requestB);
    if (unequal !== undefined) {
      collected.skip(`${requestA.label}: ${unequal.path}: ${unequal.a} / ${unequal.b}`);
      return undefined;
    }
    const attempt = async (patience: number) => {
      const [ofThis, ofOther] = await Promise.all([ofA.send(requestA, patience), ofB.send(requestB, patience)]);
      const pair: [JsonObject, JsonObject] = [read(requestA, ofThis), read(requestB, ofOther)];
      const mayBeLate = isUncertain(ofThis) || isUncertain(ofOther) || isTimedOut(pair[0]) !== isTimedOut(pair[1]);
      const bytes: [number, number] = [ofThis.body.length, ofOther.body.length];
      return { pair, differences: compare(...pair), mayBeLate, bytes };
    };
    let { pair, differences, mayBeLate, bytes } = await attempt(1);
    for (let tries = 0; tries < MORE_TRIES && differences.length > 0 && mayBeLate; tries++)
      ({ pair, differences, mayBeLate, bytes } = await attempt(PATIENCE));
    const [readA, readB] = pair;
    collected.count(requestA.label, readA);
    for (const difference of differences)
      collected.add(requestA.label, difference, { where, request: requestA, a: readA, b: readB });
    sent.push({ where, request: requestA, ids: [requestIdOf(readA), requestIdOf(readB)], bytes });
    return pair;
  }

  for (let number = 0; number < requests && isAlive(); number++) {
    const { operation, build } = planner.plan(number);
    const requestA = build(a.contents);
    const requestB = build(b.contents);
    const both = await exchange(requestA, requestB, `${kind}, request ${number}`);
    if (number % 1_000 === 999) onProgress(`${kind}: ${number + 1} requests, ${collected.rows().length} differences`);
    if (both === undefined) continue;
    const results = both.map(resultOf);
    const etag = (both[0].fields as JsonObject | undefined)?.etag;
    for (const [i, { contents }] of [a, b].entries()) {
      const known = both[i]?.fields as JsonObject | undefined;
      if (etag !== undefined && known?.etag !== undefined)
        contents.known.add(`etag of ${requestA.path}`, String(known.etag), createRandom(seed));
      const result = results[i];
      if (operation === undefined || results.includes(undefined) || result === undefined) continue;
      learn(contents.known, operation, i === 0 ? requestA : requestB, result, seed + number);
    }
    if (!results.includes(undefined) && requestA.method !== "GET") await sleepTick();
  }
  for (const { name, run: play } of mounts ? [] : scenarios) {
    if (!isAlive()) break;
    onProgress(`${kind}: ${name}`);
    const pair: Pair = {
      ...{ a, b, issuers },
      async compare(make, apart = false) {
        const own = apart ? ([createClient(a.side), createClient(b.side)] as const) : clients;
        await exchange(make(a), make(b), name, own);
        if (apart) for (const one of own) one.close();
      },
    };
    await play(pair);
  }
  for (const one of clients) one.close();
  await Promise.all([a.side.stop(), b.side.stop()]);
  compareLogs(run, compare, sent);
}

interface SentRequest {
  readonly where: string;
  readonly request: WireRequest;
  /** The ids that both services gave it. */
  readonly ids: readonly [string, string];
  /** How many bytes of each response were received. */
  readonly bytes: readonly [number, number];
}

// What the access logs say of each request, by its id; and the errors, of which there must be as many.
function compareLogs({ a, b, collected, kind }: PairRun, compare: Compare, sent: readonly SentRequest[]): void {
  const [linesA, linesB] = [readLines(a.side), readLines(b.side)];
  for (const { where, request, ids, bytes } of sent) {
    const [lineA, lineB] = [linesA.byId.get(ids[0]), linesB.byId.get(ids[1])];
    // Several requests may have one id, and a request that is rejected before it has one has no line.
    if (lineA?.length !== 1 || lineB?.length !== 1) {
      if (lineA?.length === lineB?.length) continue;
    }
    const [logA, logB] = [describe(lineA?.[0], bytes[0], request), describe(lineB?.[0], bytes[1], request)];
    for (const difference of compare({ log: logA }, { log: logB }))
      collected.add(request.label, difference, { where, request, a: logA, b: logB });
  }
  for (const message of new Set([...linesA.errors.keys(), ...linesB.errors.keys()])) {
    const [countA, countB] = [linesA.errors.get(message) ?? 0, linesB.errors.get(message) ?? 0];
    if (countA !== countB) collected.fault(`${kind}: ${countA} and ${countB} times in the log: ${message}`);
  }
}

// Bytes may differ where something in the background has got further. A response that the client cuts off, or that comes
// before its request is complete, may have sent more, and ended before it was.
function describe(line: JsonObject | undefined, received: number, request: WireRequest): JsonObject {
  if (line === undefined) return {};
  const { bytes, canceled, ...more } = line;
  if (request.endless) return more;
  const isRead = !request.open && (request.body?.length ?? 0) < WINDOW_BYTES;
  return {
    ...more,
    bytes: bytes === received ? "as received" : "others",
    ...(isRead && canceled !== undefined && { canceled }),
  };
}

function readLines(side: Side) {
  const byId = new Map<string, JsonObject[]>();
  const errors = new Map<string, number>();
  for (const { level, time, durationMs, msg, requestId, ...line } of side.readLog()) {
    if (msg === "request") byId.set(String(requestId), [...(byId.get(String(requestId)) ?? []), line]);
    else if (level === "error" || level === "fatal") errors.set(String(msg), (errors.get(String(msg)) ?? 0) + 1);
  }
  return { byId, errors };
}

function requestIdOf({ fields }: JsonObject): string {
  return String((fields as JsonObject)["x-request-id"]);
}

function sleepTick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TICK_MS));
}

function createClient({ port }: Side): WireClient {
  const [http1, http2] = [createHttp1Client(port), createHttp2Client(port)];
  return {
    send: (request, patience) => (request.http === 1 ? http1 : http2).send(request, patience),
    close() {
      http1.close();
      http2.close();
    },
  };
}

// Where nothing came in time, a busy machine may be why.
function isUncertain({ end, connection }: WireResponse): boolean {
  return end === "nothing" || connection === "waits" || end === "went on";
}

function isTimedOut(response: JsonObject): boolean {
  return JSON.stringify(response).includes("Deadline exceeded");
}

// The result of a call that succeeded; undefined for any other response.
function resultOf({ status, body }: JsonObject): JsonValue | undefined {
  if (status !== 200 || typeof body !== "object" || body === null || Array.isArray(body)) return undefined;
  const unwrap = (value: JsonValue | undefined) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && "isCanonical" in value
      ? value.message
      : value;
  if (!("messages" in body)) return unwrap(body);
  const [first] = body.messages as JsonObject[];
  return unwrap(first?.message);
}

// Finds where two requests differ that should be the same, but for what the sides chose themselves.
function findUnequal(compare: Compare, a: WireRequest, b: WireRequest): Difference | undefined {
  // Tokens differ, and are spoilt in the same way.
  const withoutTokens = (fields: readonly Field[]) =>
    fields.filter(([name]) => name !== "authorization").map((field) => [...field]);
  const plain = ({ method, path, fields, block = [], body, raw }: WireRequest): JsonObject => ({
    ...{ method, path, fields: withoutTokens(fields), block: withoutTokens(block) },
    body: body?.toString("latin1") ?? raw?.toString("latin1").replace(/^authorization:.*$/gim, "") ?? "",
  });
  return compare(plain(a), plain(b))[0];
}

type Collector = ReturnType<typeof createCollector>;

function createCollector() {
  const rows = new Map<string, Row>();
  const counts: Record<string, Record<string, number>> = {};
  const faults: string[] = [];
  const skipped: string[] = [];
  return {
    add(label: string, difference: Difference, example: Example): void {
      const key = JSON.stringify([label, difference]);
      const row = rows.get(key) ?? { label, difference, count: 0, example };
      row.count++;
      rows.set(key, row);
    },
    count(label: string, { end, status, grpc }: JsonObject): void {
      const code = (grpc as JsonObject | undefined)?.["grpc-status"];
      const outcome = `${status ?? end}${code === undefined ? "" : ` grpc ${code}`}`;
      const of = counts[label] ?? {};
      counts[label] = of;
      of[outcome] = (of[outcome] ?? 0) + 1;
    },
    skip(reason: string): void {
      skipped.push(reason);
    },
    fault(text: string): void {
      faults.push(text);
    },
    rows: () => [...rows.values()],
    report: () => ({ rows: [...rows.values()].sort((a, b) => b.count - a.count), counts, skipped, faults }),
  };
}
