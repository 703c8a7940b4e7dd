// Sends random requests to a real service and judges every response. What a seed
// chose depends on the number of the request alone, but for the things that the
// service has made by then.
import type { PlacedOperation } from "../support/openapi/document.js";
import { createRandom, type Random } from "../support/openapi/random.js";
import { collectionOf, queryPart, withQuery } from "../support/openapi/request.js";
import { subjectCreatedBy } from "../support/openapi/subject.js";
import { chooseScale } from "../support/scale.js";
import { FORM, type FuzzRequest, validRequest } from "./fuzz-request.js";
import { createJudge, type FuzzResponse, type Judge } from "./fuzz-response.js";
import { createSender } from "./fuzz-send.js";
import { spoil } from "./fuzz-spoil.js";
import { startFuzzWorld } from "./fuzz-world.js";
import { findUnservedStatus } from "./served.js";

/** What to do. */
export interface FuzzOptions {
  readonly requests: number;
  /** What chance begins with. */
  readonly seed: number;
  /** How many requests are under way at a time; 16 unless given. */
  readonly concurrency?: number;
  /** The part of the requests that is spoilt; 0.3 unless given. */
  readonly spoilt?: number;
  /** How long a response may take, in milliseconds; 2,000 unless given. */
  readonly timeoutMs?: number;
  /** How many more requests an operation is given that none of them had success with; none unless given. */
  readonly tries?: number;
  /** Told how many requests are done, now and then. */
  readonly onProgress?: (done: number) => void;
}

/** What came of it. */
export interface FuzzReport {
  readonly requests: number;
  readonly seed: number;
  readonly seconds: number;
  /** How many responses of each HTTP status there were. */
  readonly statuses: Readonly<Record<string, number>>;
  /** The part of the requests that a handler answered. */
  readonly share: number;
  /** How many requests were answered in time only when they were sent again: the machine was busy. */
  readonly slow: number;
  /** How many requests of each operation a handler answered. */
  readonly operations: Readonly<Record<string, number>>;
  /** How many requests of each operation succeeded as they were meant to, those with a form on their own. */
  readonly successes: Readonly<Record<string, number>>;
  /** Operations that can have no success here. */
  readonly unserved: readonly string[];
  /** What went wrong, with the requests that show it; at most {@link MAX_FAULTS}. */
  readonly faults: readonly string[];
}

/** After this many faults there is no point in going on. */
export const MAX_FAULTS = 20;

/** How often each operation that makes things comes first of all, and after those every one. */
const FIRST_OF_EACH = 8;
const THEN_OF_EACH = chooseScale(3, 1);

/** Starts a service, fuzzes it, and makes sure that it still answers. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { requests, seed, concurrency = 16, spoilt = 0.3, timeoutMs = 2_000, tries = 0, onProgress } = options;
  const world = await startFuzzWorld();
  const judge = createJudge(world);
  const sender = createSender(world.url, concurrency, timeoutMs);
  const statuses: Record<string, number> = {};
  const operations: Record<string, number> = Object.fromEntries(world.operations.map((one) => [one.operationId, 0]));
  const withForm = world.operations.filter(({ requestBody }) => requestBody?.content[FORM] !== undefined);
  const forms = Object.fromEntries(withForm.map(({ operationId }) => [`${operationId} by a form`, 0]));
  const successes: Record<string, number> = { ...operations, ...forms };
  const faults: string[] = [];
  // The first requests make things for all others to speak of.
  const creates = world.operations.filter((one) => subjectCreatedBy(one) !== undefined);
  const times = (count: number, all: readonly PlacedOperation[]) => Array.from({ length: count }, () => all).flat();
  const first = [...times(FIRST_OF_EACH, creates), ...times(THEN_OF_EACH, world.operations)];
  const startMs = performance.now();
  let next = 0;
  let reached = 0;

  async function one(number: number, given = first[number]): Promise<void> {
    const random = createRandom(seed + Math.imul(number, 0x9e3779b9));
    const operation = given ?? chooseOperation(world.operations, random);
    const request = validRequest(world, operation, random);
    const isSpoilt = given === undefined && random.chance(spoilt);
    if (isSpoilt) spoil(request, world, random);
    let response: FuzzResponse;
    try {
      response = await sender.send(request);
    } catch (error) {
      faults.push(`#${number}: ${error instanceof Error ? error.message : error}: ${formatCurl(request)}`);
      return;
    }
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    const verdict = judgeResponse(judge, request, response);
    if (verdict.fault !== undefined) {
      const came = `${response.status} ${response.bytes.toString("latin1").slice(0, 500)}`;
      faults.push(`#${number}: ${verdict.fault}: ${formatCurl(request)} -> ${came}`);
    }
    if (!verdict.reached) return;
    reached++;
    operations[operation.operationId] = (operations[operation.operationId] ?? 0) + 1;
    if (isSpoilt || response.status !== 200) return;
    const done = `${operation.operationId}${request.headers["content-type"] === FORM ? " by a form" : ""}`;
    successes[done] = (successes[done] ?? 0) + 1;
    const collection = collectionOf(operation);
    if (operation.method === "DELETE")
      world.known.remove(collection, decodeURIComponent(request.path.split("/").slice(4).join("/")));
    const { uid, id = uid, nextPageToken, refreshToken } = (verdict.answer ?? {}) as Learnt;
    const made = subjectCreatedBy(operation);
    // Some groups stay empty, as only those can be deleted.
    const kept = made === "groups" && random.chance(0.3) ? "emptyGroups" : made;
    if (kept !== undefined && id !== undefined) world.known.add(kept, id, random);
    if (nextPageToken !== undefined)
      world.known.add(operation.operationId, nextPage(request.path, nextPageToken), random);
    // The one just used is good for nothing any more.
    if (typeof refreshToken === "object") world.known.add("refreshTokens", refreshToken.token, random);
  }

  async function worker(): Promise<void> {
    while (next < requests && faults.length < MAX_FAULTS) {
      const number = next++;
      await one(number);
      if (number % 1_000 === 999) onProgress?.(number + 1);
    }
  }

  // What is good for success only now and then may need more requests than there were.
  async function tryAgain(): Promise<void> {
    for (const operation of world.operations.filter((one) => findUnservedStatus(one) === undefined)) {
      const keys = [operation.operationId, `${operation.operationId} by a form`];
      const isMissing = () => keys.some((key) => successes[key] === 0);
      for (let i = 0; i < tries && isMissing() && faults.length < MAX_FAULTS; i++) await one(next++, operation);
    }
  }

  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
    await tryAgain();
    const alive = await fetch(`${world.url}/healthz`);
    if (alive.status !== 200) faults.push(`/healthz answers ${alive.status} in the end`);
  } finally {
    sender.close();
    await world.stop();
  }
  const seconds = (performance.now() - startMs) / 1000;
  const share = reached / next;
  const unserved = world.operations
    .filter((one) => findUnservedStatus(one) !== undefined)
    .map(({ operationId }) => operationId);
  const counts = { statuses, share, slow: sender.slow(), operations, successes };
  return { requests: next, seed, seconds, ...counts, unserved, faults };
}

/** What later requests may speak of. */
interface Learnt {
  readonly uid?: string;
  readonly id?: string;
  readonly nextPageToken?: string;
  readonly refreshToken?: { readonly token: string } | string;
}

// If each operation came equally often, nothing would live long enough to be spoken of.
function chooseOperation(operations: readonly PlacedOperation[], random: Random): PlacedOperation {
  const operation = random.pick(operations);
  return operation.method === "DELETE" && random.chance(0.7) ? chooseOperation(operations, random) : operation;
}

function judgeResponse(judge: Judge, request: FuzzRequest, response: FuzzResponse): ReturnType<Judge> {
  try {
    return judge(request, response);
  } catch (error) {
    return { fault: `cannot be judged: ${error}`, reached: false, answer: undefined };
  }
}

// The same query again, for the page after.
function nextPage(path: string, token: string): string {
  const parts = (path.split("?")[1] ?? "").split("&").filter((part) => part !== "" && !part.startsWith("page_token="));
  return withQuery(path.split("?")[0] ?? "", [...parts, queryPart("page_token", token)]);
}

// As a command that sends it again.
function formatCurl({ method, path, headers, body }: FuzzRequest): string {
  const headerArguments = Object.entries(headers).map(
    ([name, value]) => `-H '${name}: ${name === "authorization" ? shorten(value) : value}'`,
  );
  const data =
    body === undefined
      ? ""
      : ` --data-binary ${JSON.stringify(typeof body === "string" ? body : body.toString("latin1")).slice(0, 600)}`;
  return `curl -X ${method} ${headerArguments.join(" ").slice(0, 600)} '${path.slice(0, 600)}'${data}`;
}

function shorten(token: string): string {
  return token.length > 40 ? `${token.slice(0, 20)}...${token.slice(-12)}` : token;
}
