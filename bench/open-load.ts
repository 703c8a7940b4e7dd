// An open-loop load generator of HTTP/1.1. Requests are sent at random times that are fixed beforehand (a Poisson process),
// whether or not earlier ones are answered, and their latency counts from the time at which they were due. So a server that
// falls behind gets no relief, and time that a request waits for a free connection is not left out.
import { connect, type Socket } from "node:net";

/** What a phase of load got. Latencies are in milliseconds, sorted. */
export interface LoadReport {
  readonly seconds: number;
  readonly sent: number;
  /** Responses with 2xx within the deadline. */
  readonly good: number;
  readonly goodLatencies: Float64Array;
  /** Responses with 503. */
  readonly rejected: number;
  readonly rejectedLatencies: Float64Array;
  /** Answers after the deadline, and requests given up by it. */
  readonly late: number;
  /** Other responses, by status. */
  readonly other: ReadonlyMap<number, number>;
  readonly connectionErrors: number;
  /** The longest time from sending a request to its response with 2xx, in milliseconds. */
  readonly longestMs: number;
  /** How late the generator itself was at most, in milliseconds. */
  readonly lagMs: number;
  readonly connections: number;
}

/** What to send. */
export interface LoadOptions {
  readonly port: number;
  /** Whole requests, sent in their order again and again. */
  readonly requests: readonly Buffer[];
  readonly perSecond: number;
  readonly seconds: number;
  /** A response after this time is of no use to its caller, in milliseconds. */
  readonly deadlineMs: number;
}

/** Connections come from so many addresses, which the server treats as so many callers. */
const ADDRESSES = 8;
const MAX_CONNECTIONS = 1_600;

interface Pending {
  readonly dueMs: number;
  readonly request: Buffer;
}

class Samples {
  #values = new Float64Array(1024);
  count = 0;

  add(value: number): void {
    if (this.count === this.#values.length) {
      const larger = new Float64Array(this.count * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.count++] = value;
  }

  toSorted(): Float64Array {
    return this.#values.slice(0, this.count).sort();
  }
}

/** A value of sorted ones, such as 0.99 for the 99th percentile; NaN when there are none. */
export function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Sends requests by schedule and resolves when all are answered or their deadline is over. */
export async function runOpenLoad(options: LoadOptions): Promise<LoadReport> {
  const { port, requests, perSecond, seconds, deadlineMs } = options;
  const good = new Samples();
  const rejected = new Samples();
  const other = new Map<number, number>();
  const free: Connection[] = [];
  const all = new Set<Connection>();
  // A queue with a moving head: `shift` of a long array copies it.
  const waiting: Pending[] = [];
  let head = 0;
  let sent = 0;
  let late = 0;
  let connectionErrors = 0;
  let lagMs = 0;
  let longestMs = 0;
  const sentMs = new WeakMap<Connection, number>();

  function send(connection: Connection, pending: Pending): void {
    sentMs.set(connection, performance.now());
    connection.send(pending);
  }

  function onAnswer(connection: Connection, status: number, dueMs: number): void {
    const nowMs = performance.now();
    const ms = nowMs - dueMs;
    if (status >= 200 && status < 300) longestMs = Math.max(longestMs, nowMs - (sentMs.get(connection) ?? nowMs));
    if (status === 503) rejected.add(ms);
    else if (status < 200 || status > 299) other.set(status, (other.get(status) ?? 0) + 1);
    else if (ms > deadlineMs) late++;
    else good.add(ms);
    sendNext(connection);
  }

  function sendNext(connection: Connection): void {
    const nowMs = performance.now();
    for (let next = waiting[head]; next !== undefined; next = waiting[head]) {
      head++;
      if (nowMs - next.dueMs > deadlineMs) late++;
      else {
        send(connection, next);
        break;
      }
    }
    if (!connection.isBusy) free.push(connection);
    if (head > 10_000) {
      waiting.splice(0, head);
      head = 0;
    }
  }

  function open(): void {
    const connection = new Connection(port, `127.0.0.${1 + (all.size % ADDRESSES)}`, onAnswer, (isLost) => {
      all.delete(connection);
      const at = free.indexOf(connection);
      if (at >= 0) free.splice(at, 1);
      if (isLost) connectionErrors++;
    });
    all.add(connection);
    sendNext(connection);
  }

  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  let dueMs = startMs;
  let index = 0;
  await new Promise<void>((resolve) => {
    const tick = () => {
      const nowMs = performance.now();
      for (; dueMs <= nowMs && dueMs < endMs; dueMs += (-Math.log(1 - Math.random()) * 1000) / perSecond) {
        lagMs = Math.max(lagMs, nowMs - dueMs);
        const request = requests[index++ % requests.length] as Buffer;
        sent++;
        const connection = head === waiting.length ? free.pop() : undefined;
        if (connection !== undefined) send(connection, { dueMs, request });
        else {
          waiting.push({ dueMs, request });
          if (all.size < MAX_CONNECTIONS) open();
        }
      }
      const isOver = nowMs >= endMs;
      const isIdle = head === waiting.length && free.length === all.size;
      if (isOver && (isIdle || nowMs > endMs + deadlineMs)) resolve();
      else setTimeout(tick, 0);
    };
    tick();
  });
  for (const connection of all) if (connection.isBusy) late++;
  late += waiting.length - head;
  const connections = all.size;
  for (const connection of all) connection.close();
  return {
    ...{ seconds, sent, late, other, connectionErrors, lagMs, longestMs, connections },
    good: good.count,
    goodLatencies: good.toSorted(),
    rejected: rejected.count,
    rejectedLatencies: rejected.toSorted(),
  };
}

/** Adds up the reports of several phases. */
export function mergeReports(reports: readonly LoadReport[]): LoadReport {
  const sum = (of: (report: LoadReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const most = (of: (report: LoadReport) => number) => Math.max(...reports.map(of));
  const sortAll = (of: (report: LoadReport) => Float64Array) =>
    Float64Array.from(reports.flatMap((report) => [...of(report)])).sort();
  const other = new Map<number, number>();
  for (const [status, count] of reports.flatMap((report) => [...report.other])) {
    other.set(status, (other.get(status) ?? 0) + count);
  }
  return {
    seconds: sum(({ seconds }) => seconds),
    sent: sum(({ sent }) => sent),
    good: sum(({ good }) => good),
    goodLatencies: sortAll(({ goodLatencies }) => goodLatencies),
    rejected: sum(({ rejected }) => rejected),
    rejectedLatencies: sortAll(({ rejectedLatencies }) => rejectedLatencies),
    late: sum(({ late }) => late),
    other,
    connectionErrors: sum(({ connectionErrors }) => connectionErrors),
    lagMs: most(({ lagMs }) => lagMs),
    longestMs: most(({ longestMs }) => longestMs),
    connections: most(({ connections }) => connections),
  };
}

/** Keeps so many connections busy for some seconds; resolves with the responses of 2xx a second. */
export async function measureRate(
  port: number,
  requests: readonly Buffer[],
  connections: number,
  seconds: number,
): Promise<number> {
  let good = 0;
  let index = 0;
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const one = (n: number) =>
    new Promise<void>((resolve, reject) => {
      const send = () => connection.send({ dueMs: 0, request: requests[index++ % requests.length] as Buffer });
      const connection = new Connection(
        port,
        `127.0.0.${1 + (n % ADDRESSES)}`,
        (_connection, status) => {
          if (status === 200) good++;
          if (performance.now() < endMs) return send();
          connection.close();
          resolve();
        },
        (isLost) => isLost && reject(new Error("a connection was lost")),
      );
      send();
    });
  await Promise.all(Array.from({ length: connections }, (_, n) => one(n)));
  return good / ((performance.now() - startMs) / 1000);
}

const HEAD_END = Buffer.from("\r\n\r\n");

// A connection with one request at a time. Of a response it reads the status and the length alone.
class Connection {
  readonly #socket: Socket;
  #pending: Pending | undefined;
  #received: Buffer | undefined;
  #missing = 0;
  #status = 0;
  #isClosed = false;

  constructor(
    port: number,
    localAddress: string,
    onAnswer: (connection: Connection, status: number, dueMs: number) => void,
    onClose: (isLost: boolean) => void,
  ) {
    this.#socket = connect({ port, host: "127.0.0.1", localAddress, noDelay: true });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      // The server may close a connection that has been idle for long.
      onClose(!this.#isClosed && this.isBusy);
      this.#isClosed = true;
    });
    this.#socket.on("data", (chunk) => {
      if (!this.#read(chunk)) return;
      const dueMs = this.#pending?.dueMs ?? 0;
      this.#pending = undefined;
      onAnswer(this, this.#status, dueMs);
    });
  }

  get isBusy(): boolean {
    return this.#pending !== undefined;
  }

  send(pending: Pending): void {
    this.#pending = pending;
    this.#socket.write(pending.request);
  }

  close(): void {
    this.#isClosed = true;
    this.#socket.destroy();
  }

  // Whether the response is complete.
  #read(chunk: Buffer): boolean {
    if (this.#missing > 0) {
      this.#missing -= chunk.length;
      return this.#missing <= 0;
    }
    const bytes = this.#received === undefined ? chunk : Buffer.concat([this.#received, chunk]);
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) {
      this.#received = bytes;
      return false;
    }
    this.#received = undefined;
    const head = bytes.toString("latin1", 0, end);
    this.#status = Number(head.slice(9, 12));
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    this.#missing = end + HEAD_END.length + length - bytes.length;
    return this.#missing <= 0;
  }
}
