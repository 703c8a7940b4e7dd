// Sends the inputs of one kind to a process and watches it: it must live, answer, keep its memory
// within bounds and end every connection in time.
import { createRandom, type Random } from "../../support/openapi/random.js";
import type { Target } from "./target.js";

/** What a kind of input gets to know of its surroundings, and where it reports. */
export interface Peer {
  readonly target: Target;
  /** The number of the batch, which appears in request ids. */
  readonly batch: number;
  /** Whether this connection is left as it is after its inputs, for the service to end. */
  readonly hold: boolean;
  /** Reports a response that must not be. */
  fault(text: string): void;
  /** Counts what came back, by some label such as a status. */
  count(label: string): void;
}

/** Inputs of one kind. */
export interface Kind {
  /**
   * Sends one connection's worth of inputs, and resolves when the connection is closed or, if it is to
   * be held, once all is sent and `closed` will tell.
   */
  send(random: Random, peer: Peer): Promise<Sent>;
}

/** What became of a batch. */
export interface Sent {
  /** How many inputs the service has read; what was sent after it ended the connection does not count. */
  readonly inputs: number;
  /** Resolves when the service has ended a connection that is held. */
  readonly closed?: Promise<unknown>;
  /** Cuts a connection that is held. */
  readonly destroy?: () => void;
}

/** What to do. */
export interface CampaignOptions {
  readonly inputs: number;
  /** What chance begins with. */
  readonly seed: number;
  /** The first batch; later ones than 0 repeat a part of a campaign. */
  readonly from?: number;
  /** How many batches are under way at a time; 24 unless given. */
  readonly lanes?: number;
  /** How much the memory may grow beyond what the process had, in bytes; 512 MiB unless given. */
  readonly memoryBytes?: number;
  /** How many connections are left for the service to end; 40 unless given. */
  readonly openConnections?: number;
  /** Told of the number of inputs sent, now and then. */
  readonly onProgress?: (inputs: number) => void;
}

/** What came of it. */
export interface CampaignReport {
  readonly seed: number;
  readonly inputs: number;
  readonly batches: number;
  readonly seconds: number;
  /** How often each label was counted. */
  readonly counts: Readonly<Record<string, number>>;
  /** What is wrong; at most {@link MAX_FAULTS}. */
  readonly faults: readonly string[];
  /** Resident memory in bytes: before, and at most. */
  readonly memory: { readonly before: number; readonly peak: number };
  /** Resolves, with what is wrong, when the service has ended the connections that were left to it. */
  faultsAfterwards(): Promise<readonly string[]>;
}

/** After this many faults there is no point in going on. */
export const MAX_FAULTS = 10;

/** The memory that hostile input may cost, beyond that of the idle process, in bytes. */
export const MEMORY_BYTES = 512 * 1024 * 1024;

/**
 * The longest that the service lets a silent connection live, in milliseconds. An HTTP/2 session gets 30 s for the
 * rest of a request, 60 s of idleness after that, and 5 s to close; Node 20 grants the idle time twice to a session
 * that ended by an error with a response still to be written. The rest is for a busy machine.
 */
export const CONNECTION_MS = 170_000;

/** How long a batch may take, whose connection is ended by FIN at the latest. */
const BATCH_MS = 60_000;
const WATCH_MS = 250;
/**
 * How long `/healthz` may take beside the inputs, in milliseconds: of the processor time that the process gets,
 * since the machine may have other things to do, and in all.
 */
const RESPONSE_CPU_MS = 8_000;
const RESPONSE_MS = 60_000;

/** Runs a campaign. */
export async function runCampaign(kind: Kind, target: Target, options: CampaignOptions): Promise<CampaignReport> {
  const {
    inputs: maxInputs,
    seed,
    from = 0,
    lanes = 24,
    memoryBytes = MEMORY_BYTES,
    openConnections: maxOpen = 40,
  } = options;
  const counts: Record<string, number> = {};
  const faults: string[] = [];
  const open: { readonly batch: number; readonly closed: Promise<boolean> }[] = [];
  const before = target.memory().now;
  const startMs = performance.now();
  const known = target.complaints.length;
  let peak = before;
  let next = from;
  let inputs = 0;
  let stopped = false;

  const fail = (text: string) => {
    if (faults.length < MAX_FAULTS) faults.push(text);
    if (faults.length === MAX_FAULTS) stopped = true;
  };

  async function batch(number: number): Promise<void> {
    // One in eight of the first connections is held, so that they grow old while others are served.
    const hold = number % 8 === 7 && open.length < maxOpen;
    const peer: Peer = {
      target,
      batch: number,
      hold,
      fault: (text) => fail(`batch ${number}: ${text}`),
      count(label) {
        counts[label] = (counts[label] ?? 0) + 1;
      },
    };
    const sending = kind.send(createRandom(seed + Math.imul(number, 0x9e3779b9)), peer);
    const sent = await within(sending, BATCH_MS);
    if (sent === undefined) {
      if (!stopped) fail(`batch ${number}: its connection hangs: nothing for ${BATCH_MS} ms`);
      return;
    }
    inputs += sent.inputs;
    if (sent.closed !== undefined) open.push({ batch: number, closed: closesInTime(sent) });
  }

  async function lane(): Promise<void> {
    while (!stopped && inputs < maxInputs) {
      const number = next++;
      try {
        await batch(number);
      } catch (error) {
        if (!stopped) fail(`batch ${number}: ${error instanceof Error ? error.stack : error}`);
      }
    }
  }

  async function watch(): Promise<void> {
    for (let rounds = 0; !stopped; rounds++) {
      await new Promise((resolve) => setTimeout(resolve, WATCH_MS));
      const memory = target.memory();
      peak = Math.max(peak, memory.now);
      const ended = target.describeEnd();
      if (ended !== undefined) fail(`the process ${ended}`);
      if (peak > before + memoryBytes) fail(`the memory grew from ${mib(before)} to ${mib(peak)} MiB`);
      if (ended !== undefined || peak > before + memoryBytes) stopped = true;
      if (rounds % 4 === 0 && !stopped && !(await isAnswering(target))) {
        fail(
          target.describeEnd() === undefined
            ? `/healthz has no answer after ${RESPONSE_CPU_MS} ms of processor time`
            : `the process ${target.describeEnd()}`,
        );
        stopped = true;
      }
      if (rounds % 20 === 19) options.onProgress?.(inputs);
    }
  }

  // Lanes may wait for a process that will not answer them any more.
  const watching = watch();
  await Promise.race([Promise.all(Array.from({ length: lanes }, lane)), watching]);
  const seconds = (performance.now() - startMs) / 1000;
  stopped = true;
  await watching;
  const ended = target.describeEnd();
  if (ended !== undefined && !faults.some((fault) => fault.startsWith("the process"))) fail(`the process ${ended}`);
  if (ended === undefined) for (const fault of await goodResponses(target)) fail(fault);
  for (const complaint of target.complaints.slice(known)) fail(`the log says: ${complaint}`);

  return {
    seed,
    inputs,
    batches: next - from,
    seconds,
    counts,
    faults,
    memory: { before, peak: Math.max(peak, target.memory().now) },
    async faultsAfterwards() {
      const late = await Promise.all(open.map(async ({ batch, closed }) => ((await closed) ? undefined : batch)));
      return late.filter((one) => one !== undefined).map((one) => `batch ${one}: open after ${CONNECTION_MS} ms`);
    },
  };
}

/**
 * The address that a batch comes from. Connections are limited by address, and Node 20 keeps those that it ended
 * by an error for a while; elsewhere than on Linux there is only one loopback address.
 */
export function addressOf({ batch }: Pick<Peer, "batch">): string {
  if (process.platform !== "linux") return "127.0.0.1";
  return `127.0.${1 + (Math.floor(batch / 250) % 250)}.${1 + (batch % 250)}`;
}

/** What keeps a process from answering a good request; empty when it answers. */
export async function goodResponses(target: Target): Promise<readonly string[]> {
  const { url, organisation, token } = target;
  const paths = ["/healthz", `/iam/v2beta1/groups/${organisation}`];
  const faults = paths.map(async (path) => {
    try {
      const response = await fetch(url + path, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(RESPONSE_MS),
      });
      return response.status === 200
        ? undefined
        : `${path} answers ${response.status} in the end: ${await response.text()}`;
    } catch (error) {
      return `${path} has no answer in the end: ${error}`;
    }
  });
  return (await Promise.all(faults)).filter((fault) => fault !== undefined);
}

async function isAnswering(target: Target): Promise<boolean> {
  const given = new AbortController();
  const sinceMs = performance.now();
  const sinceCpuMs = target.cpuMs();
  const timer = setInterval(() => {
    const isLate = target.cpuMs() - sinceCpuMs > RESPONSE_CPU_MS || performance.now() - sinceMs > RESPONSE_MS;
    if (isLate || target.describeEnd() !== undefined) given.abort();
  }, WATCH_MS);
  try {
    const response = await fetch(`${target.url}/healthz`, { signal: given.signal });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  } finally {
    clearInterval(timer);
  }
}

// Since a connection that is left alone must not keep the test waiting, it is cut in the end.
async function closesInTime({ closed, destroy }: Sent): Promise<boolean> {
  const isClosed = closed?.then(() => true) ?? Promise.resolve(true);
  const inTime = await within(isClosed, CONNECTION_MS);
  destroy?.();
  return inTime === true;
}

// Undefined when it takes longer.
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}
