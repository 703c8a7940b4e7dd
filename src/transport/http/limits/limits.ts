// All limits of the transport. Those of Node, http2 and connect are absent or far too high for one request. Limits of
// resources, such as page sizes, belong to the resources.
import { MAX_CALL_MS } from "../../../pipeline/call.js";
import { MAX_REQUEST_BYTES, PUBLIC_REQUEST_BYTES, REQUEST_BYTES } from "../../../pipeline/method-table.js";

const table = {
  messageBytes: {
    value: MAX_REQUEST_BYTES,
    why: "the largest request that any method or route may allow, decompressed; the same as gRPC's own default",
  },
  requestBytes: { value: REQUEST_BYTES, why: "one request, decompressed, unless its method allows more" },
  publicRequestBytes: {
    value: PUBLIC_REQUEST_BYTES,
    why: "one request of a caller that nobody knows yet, decompressed",
  },
  inflateRatio: { value: 100, why: "how much larger than its compressed form a request may be; text is 5 to 20" },
  responseBytes: { value: 100_000_000, why: "one response message; a guard against runaway answers, not a quota" },
  requestBufferBytes: {
    value: 128 * 1024 * 1024,
    why: "request bytes held at one time; a quarter for one caller",
  },
  responseBufferBytes: {
    value: 256 * 1024 * 1024,
    why: "answers held at one time; a quarter for one caller, or one list without pages",
  },
  compressingBytes: {
    value: 4 * 1024 * 1024,
    why: "gRPC answers compressed at one time, 50 ms of a thread; one alone may be larger, those beyond are sent as they are",
  },
  unknownBytes: {
    value: 16 * 1024 * 1024,
    why: "of each of both, the bytes of callers that nobody knows; half for one address",
  },
  unreadBytes: { value: 64 * 1024 * 1024, why: "bodies of waiting requests, which Node holds before they are read" },
  leastBodyRate: { value: 240, why: "bytes of a request body a second; slower ones hold memory for nothing" },
  slowBodyMs: { value: 5_000, why: "how old a request body must be before leastBodyRate holds" },
  responseStallMs: { value: 60_000, why: "an answer of which the peer takes nothing; as long as HTTP/1.1 lets it" },
  callMs: { value: MAX_CALL_MS, why: "a unary call's deadline, whatever the caller allows; enforced by the pipeline" },

  connections: { value: 15_000, why: "all sockets together, below the usual 20,000 file descriptors" },
  requestsPerAddress: {
    value: 4_000,
    why: "requests without an answer, each of which holds some kilobytes; per connection of a proxy that names nobody",
  },
  connectionsPerAddress: { value: 2_000, why: "one peer cannot use up all sockets; a setting, off behind a proxy" },
  reservedConnections: {
    value: 50,
    why: "of all connections, those that are told that there are too many; further ones are cut",
  },
  reservedConnectionMs: { value: 1_000, why: "how long one of these has to ask and to read its answer" },
  rejectedHandshakes: { value: 10, why: "TLS handshakes a second with these, each of which costs a millisecond" },
  protocolDetectionMs: { value: 5_000, why: "a peer that never says which protocol it speaks, or stalls in TLS" },
  idleSocketMs: { value: 60_000, why: "an HTTP/1.1 peer that neither reads nor writes" },
  drainMs: { value: 30_000, why: "how long a stop waits for calls in flight; a setting" },
  maxWaitMs: { value: 5_000, why: "how long a request may wait until it begins, also to write; a setting" },
  waitingRequests: { value: 10_000, why: "requests that wait at one time; then the newest of the longest queue goes" },
  validatedHosts: { value: 1_000, why: "entries of the cache of Host values found valid" },

  openStreams: {
    value: 10_000,
    why: "calls of methods that stream, such as Health.Watch, which may stay open for ever",
  },
  openStreamsPerConnection: {
    value: 50,
    why: "a balancer watches a few services on each of its connections; not for those of a trusted proxy",
  },
  openStreamsPerAddress: {
    value: 200,
    why: "one peer cannot use up openStreams; by the forwarded address behind trusted proxies, off behind others",
  },

  bodyPieces: {
    value: 256,
    why: "pieces of a request body, besides one for every bytesPerPiece; each costs what a thousand bytes cost",
  },
  bytesPerPiece: { value: 64, why: "the average size of further pieces; clients send some thousand bytes at once" },
  bytesPerMessage: {
    value: 4,
    why: "the same of a stream of messages, each of which has a prefix of 5 bytes",
  },
  pipelinedRequests: {
    value: 100,
    why: "HTTP/1.1: requests of a connection that wait for the response to the first; it is closed after them",
  },
  readTurnUs: {
    value: 2_000,
    why: "what small pieces and pipelined requests of an address may cost in a turn of the event loop before it is not read for a while",
  },
  readPauseFactor: {
    value: 99,
    why: "how much longer than it cost such an address is not read: all of them together have a hundredth of the time",
  },
  maxReadPauseMs: { value: 2_500, why: "the longest of these pauses; half of what a new connection waits" },
  readPauseMs: { value: 100, why: "the pause between two new connections of such an address" },
  readCutUs: {
    value: 16_000,
    why: "HTTP/2, which cannot be paused: what pieces and streams of an address that are refused may cost before its connections without a known caller are cut",
  },
  sessionCutUs: {
    value: 32_000,
    why: "HTTP/2: what small pieces of one session may cost in a turn; twice what its window holds of the smallest messages",
  },

  headerBytes: { value: 16_384, why: "all headers of one request" },
  headersMs: { value: 10_000, why: "HTTP/1.1: from the first byte to the end of the headers (slow headers)" },
  requestMs: { value: 30_000, why: "from the headers to the end of the request body (slow bodies)" },
  keepAliveMs: { value: 75_000, why: "an idle connection; longer than the 60 s of most balancers. A setting" },
  timeoutCheckMs: { value: 1_000, why: "HTTP/1.1: how often headersMs and requestMs are looked at" },

  concurrentStreams: {
    value: 1_000,
    why: "HTTP/2: open streams per session; from Node 22 on, streams given up count until the next tick of the event loop",
  },
  streamsPerSession: {
    value: 1_000_000,
    why: "HTTP/2: then the session is closed gently, which rebalances long links",
  },
  headerPairs: { value: 128, why: "header fields of one request" },
  settingsEntries: { value: 32, why: "HTTP/2: entries of one SETTINGS frame" },
  outstandingPings: { value: 10, why: "HTTP/2: PINGs waiting for their answer" },
  outstandingSettings: { value: 10, why: "HTTP/2: SETTINGS waiting for their answer" },
  sessionMemoryMegabytes: {
    value: 128,
    why: "HTTP/2: queued data of one session: more than its share of responseBufferBytes, beyond which answers are refused",
  },
  invalidFrames: { value: 100, why: "HTTP/2: then the session is cut" },
  rejectedStreams: {
    value: 500,
    why: "HTTP/2: refused above concurrentStreams, then the session is cut; bursts before SETTINGS arrive are honest",
  },
  streamWindowBytes: {
    value: 64 * 1024,
    why: "HTTP/2: flow control per stream, and so what a peer may send before it is read",
  },
  sessionCloseMs: { value: 5_000, why: "HTTP/2: from the gentle close of an idle session to the hard one" },
  streamResets: {
    value: 100,
    why: "HTTP/2: rapid resets of an address within streamResetWindowMs; then each of its sessions is refused in which they are more than half of the streams",
  },
  streamResetWindowMs: { value: 10_000, why: "HTTP/2: the window in which streamResets counts" },
  rapidResetMs: { value: 10, why: "HTTP/2: a reset this soon after its request was never meant to be answered" },
  deadlineLagMs: {
    value: 100,
    why: "HTTP/2: how long a request may have waited, at its caller too, before it was read; a shorter deadline may be over",
  },
  refusedSessionMs: { value: 5_000, why: "HTTP/2: what open streams have left when their session is refused" },
  receivedResets: {
    value: 10_000,
    why: "HTTP/2: the same for resets of any kind before a response, also of expired deadlines; what the library takes at once of a session",
  },
  streamCostMs: {
    value: 0.05,
    why: "HTTP/2: what opening a stream costs its address in the queue, even if it is reset at once",
  },
  sessionPauseMs: {
    value: 1_000,
    why: "HTTP/2: the pause between two new sessions of an address above streamResets or receivedResets; Node reads a packet of theirs for 0.1 s",
  },
  sessionWaitMs: { value: 5_000, why: "HTTP/2: how long such a session waits for its turn before it is cut" },
  refusedSessionBytes: {
    value: 1024 * 1024,
    why: "HTTP/2: what a refused session may still send, for the streams that are open; then it is cut",
  },
} as const;

/** The limits. Each name ends in its unit, except for counts. */
export type Limits = { readonly [Name in keyof typeof table]: number };

/** The limits of a running service. */
export const defaultLimits: Limits = Object.freeze(
  Object.fromEntries(Object.entries(table).map(([name, { value }]) => [name, value])) as Limits,
);

/** One limit as shown to operators. */
export interface LimitLine {
  readonly name: keyof Limits;
  readonly value: number;
  readonly why: string;
}

/** All limits with their reasons, for printing. */
export function describeLimits(limits: Limits = defaultLimits): readonly LimitLine[] {
  return (Object.keys(table) as (keyof Limits)[]).map((name) => ({ name, value: limits[name], why: table[name].why }));
}
