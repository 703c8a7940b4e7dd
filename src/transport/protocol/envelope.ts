// The envelopes of messages in gRPC, gRPC-Web and streams of Connect: a flag, a length, and the message, which may be compressed (gRPC over
// HTTP/2, "Length-Prefixed-Message").
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import {
  type ApiError,
  callerGone,
  invalidRequest,
  protocolError,
  resourceExhausted,
  unimplemented,
} from "../../kernel/errors.js";
import { collectBody } from "../http/body-collector.js";
import { readBase64 } from "../http/body-reader.js";
import { HttpError } from "../http/http-message.js";
import { inflate, tooLarge } from "../http/inflate.js";
import type { Charge } from "../http/limits/byte-budget.js";
import type { Pieces } from "../http/list-pieces.js";
import type { Request } from "../http/request.js";

/** The flag of a compressed message. */
export const COMPRESSED_FLAG = 1;

/** Short messages are joined to one chunk, in bytes. */
const JOINED_BYTES = 64 * 1024;

/** Reads how long the envelope is that begins with these bytes; undefined while its prefix is incomplete. */
export function readEnvelopeLength(arrived: Buffer): number | undefined {
  return arrived.length < PREFIX_BYTES ? undefined : PREFIX_BYTES + arrived.readUInt32BE(1);
}

/** The message of a unary request as it was sent. */
export interface SentMessage {
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
}

/** The rules of the envelope of a unary request. */
export interface EnvelopeRules {
  /** The largest message as it is sent. */
  readonly maxBytes: number;
  /** Whether the request says that its message may be compressed. */
  readonly isEncoded: boolean;
}

/** Checks the envelope of a unary request, of which the first bytes have arrived; undefined while nothing is wrong. */
export function findEnvelopeFault(arrived: Buffer, rules: EnvelopeRules): ApiError | undefined {
  if (arrived.length < PREFIX_BYTES) return undefined;
  const fault = findPrefixFault(arrived, rules);
  if (fault !== undefined) return fault;
  return arrived.length > PREFIX_BYTES + arrived.readUInt32BE(1) ? notOne() : undefined;
}

function findPrefixFault(arrived: Buffer, { maxBytes, isEncoded }: EnvelopeRules): ApiError | undefined {
  const flag = arrived[0];
  const length = arrived.readUInt32BE(1);
  if (flag !== 0 && flag !== COMPRESSED_FLAG) return invalidRequest("a message has an unknown flag");
  if (flag === COMPRESSED_FLAG && !isEncoded)
    return protocolError("a message is marked as compressed, but the request names no encoding");
  return length > maxBytes ? resourceExhausted(`message: ${length} bytes are more than ${maxBytes}`) : undefined;
}

/**
 * Opens the envelope of a unary request.
 *
 * @throws ApiError as {@link findEnvelopeFault} finds it; UNIMPLEMENTED for no message, INVALID_ARGUMENT for a part of one
 */
export function openEnvelope(body: Buffer, rules: EnvelopeRules): SentMessage {
  if (body.length === 0) throw notOne();
  const fault = findEnvelopeFault(body, rules);
  if (fault !== undefined) throw fault;
  if (body.length < PREFIX_BYTES || body.length < PREFIX_BYTES + body.readUInt32BE(1)) throw incomplete();
  return { bytes: body.subarray(PREFIX_BYTES), isCompressed: body[0] === COMPRESSED_FLAG };
}

function incomplete(): ApiError {
  return invalidRequest("the message is incomplete");
}

/** UNIMPLEMENTED: a call that sends no stream must have one message (gRPC, status codes). */
export function notOne(): ApiError {
  return unimplemented("message: this method takes exactly one");
}

/**
 * Reads the only message of a request, which is in an envelope and may be compressed. One that breaks the rules is rejected
 * when its prefix has arrived.
 *
 * @param isText whether the body is base64 (gRPC-Web)
 * @throws HttpError 413; ApiError as {@link openEnvelope} does, RESOURCE_EXHAUSTED; the error of {@link callerGone}
 */
export async function readEnvelope(request: Request, rules: EnvelopeRules, isText: boolean): Promise<Uint8Array> {
  const { maxBytes } = rules;
  const most = PREFIX_BYTES + maxBytes;
  let body: Buffer = NOTHING;
  if (request.mayHaveBody) {
    if (isText) {
      const { buffer, byteOffset, byteLength } = await readBase64(request, most, tooLarge("message", maxBytes));
      body = Buffer.from(buffer, byteOffset, byteLength);
    } else {
      body = await collectEnvelope(request, most, rules);
    }
  }
  request.record.bytesIn ??= body.length;
  const { bytes, isCompressed } = openEnvelope(body, rules);
  return isCompressed ? inflateMessage(request, bytes, maxBytes) : bytes;
}

function collectEnvelope(request: Request, maxBytes: number, rules: EnvelopeRules): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    collectBody(request, {
      maxBytes,
      readAnnouncedLength: readEnvelopeLength,
      check: (arrived) => findEnvelopeFault(arrived, rules),
      onBody: resolve,
      // The prefix was checked, so more bytes arrived than it announced.
      onTooLarge: () => reject(notOne()),
      onFault: reject,
      onGone: () => reject(callerGone()),
    });
  });
}

/** Decompresses the message of a request, and charges it. @throws as {@link inflate} does */
export function inflateMessage(request: Request, bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  return inflate("message", "gzip", bytes, maxBytes, (most) => request.chargeBody(most));
}

/** Node's error codes for a connection that closed within a body. */
const CUT_OFF: ReadonlySet<unknown> = new Set(["ERR_STREAM_PREMATURE_CLOSE", "ECONNRESET"]);

/**
 * Reads the messages of a stream of requests, of which one is held at a time.
 *
 * @throws as {@link readEnvelope} does; an aborted stream must not look complete
 */
export async function* readEnvelopes(request: Request, rules: EnvelopeRules): AsyncGenerator<Uint8Array> {
  const body = new RejectableBody(request);
  body.charge(PREFIX_BYTES + rules.maxBytes);
  request.askForBody();
  const splitter = new EnvelopeSplitter(rules);
  try {
    for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read()) {
      splitter.add(chunk);
      for (let sent = splitter.take(); sent !== undefined; sent = splitter.take()) {
        yield sent.isCompressed ? await inflate("message", "gzip", sent.bytes, rules.maxBytes, free) : sent.bytes;
      }
    }
  } finally {
    // Otherwise the rest of the body could not be dropped.
    body.stop();
  }
  if (splitter.isWithin) throw incomplete();
}

/** A body that is a stream of messages, and may be rejected while it is read: to make room, or for its pieces. */
class RejectableBody {
  readonly #request: Request;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #charge: Charge;
  #fault: ApiError | undefined;
  // Not Promise.race, which would keep something of every chunk until the body ends.
  #interrupt: ((fault: ApiError) => void) | undefined;

  constructor(request: Request) {
    this.#request = request;
    this.#chunks = request.body.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]();
    this.#charge = request.openBody((fault) => this.#reject(fault), true);
  }

  #reject(fault: ApiError): void {
    this.#fault = fault;
    this.#interrupt?.(fault);
  }

  /** @throws ApiError why it is rejected, RESOURCE_EXHAUSTED when there is no room for these bytes */
  charge(bytes: number): void {
    if (this.#fault !== undefined) throw this.#fault;
    this.#request.chargeBody(bytes);
  }

  /**
   * Reads the next chunk; undefined at the end.
   *
   * @throws ApiError why it is rejected; the error of {@link callerGone}: an aborted stream must not look complete
   */
  async read(): Promise<Buffer | undefined> {
    const chunk = await this.#readOrReject();
    if (chunk !== undefined) this.#charge.noteProgress(chunk.length);
    else if (!this.#request.isBodyWhole) throw callerGone();
    return chunk;
  }

  /** Reads no more. */
  stop(): void {
    // Where a chunk is awaited, it ends after that one.
    this.#chunks.return?.().catch(() => {});
  }

  #readOrReject(): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#fault !== undefined) {
        reject(this.#fault);
        return;
      }
      this.#interrupt = reject;
      this.#chunks.next().then(
        // The fault of a body that has ended comes soon.
        ({ done, value }) =>
          done && this.#request.isBodyRejected && !this.#request.isGone ? undefined : resolve(done ? undefined : value),
        (error) => reject(CUT_OFF.has((error as { readonly code?: unknown }).code) ? callerGone() : error),
      );
    });
  }
}

// The largest message of a stream was charged at its begin.
const free = () => {};

/** Splits a stream into the messages of its envelopes. */
class EnvelopeSplitter {
  readonly #rules: EnvelopeRules;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(rules: EnvelopeRules) {
    this.#rules = rules;
  }

  /** Whether a part of an envelope has arrived. */
  get isWithin(): boolean {
    return this.#bytes > 0;
  }

  add(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Takes the next message; undefined while it is incomplete. @throws ApiError as {@link findEnvelopeFault} finds it */
  take(): SentMessage | undefined {
    if (this.#bytes < PREFIX_BYTES) return undefined;
    if ((this.#pieces[0]?.length ?? 0) < PREFIX_BYTES) this.#join();
    const [first = NOTHING] = this.#pieces;
    const fault = findPrefixFault(first, this.#rules);
    if (fault !== undefined) throw fault;
    const end = PREFIX_BYTES + first.readUInt32BE(1);
    if (this.#bytes < end) return undefined;
    const all = this.#join();
    const rest = all.subarray(end);
    this.#pieces.length = 0;
    this.#bytes = 0;
    if (rest.length > 0) this.add(rest);
    return { bytes: all.subarray(PREFIX_BYTES, end), isCompressed: all[0] === COMPRESSED_FLAG };
  }

  #join(): Buffer {
    const [first = NOTHING, ...others] = this.#pieces;
    if (others.length === 0) return first;
    const all = Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces.length = 0;
    this.#pieces.push(all);
    return all;
  }
}

const NOTHING = Buffer.alloc(0);

/** Puts a message into an envelope. */
export function sealEnvelope(flag: number, { pieces, bytes }: Pieces): Buffer[] {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes, 1);
  const all = [prefix, ...pieces];
  return bytes <= JOINED_BYTES ? [Buffer.concat(all)] : all;
}

/** Puts a message into an envelope of one piece. */
export function sealWhole(flag: number, message: Buffer): Buffer {
  return Buffer.concat(sealEnvelope(flag, { pieces: [message], bytes: message.length }));
}

/**
 * Whether the messages of a request are compressed, by the header that says so.
 *
 * @throws HttpError UNIMPLEMENTED with the encodings that are known, for any other than gzip
 */
export function isGzip(header: keyof typeof ACCEPTED, encoding: string | undefined): boolean {
  if (encoding === undefined || encoding === "" || encoding === "identity") return false;
  if (encoding === "gzip") return true;
  throw new HttpError(501, unimplemented(`${header}: must be gzip`), { [ACCEPTED[header]]: "gzip" });
}

/** The fields that name the compression of requests, and those of responses that say which are accepted. */
const ACCEPTED = {
  "grpc-encoding": "grpc-accept-encoding",
  "content-encoding": "accept-encoding",
  "connect-content-encoding": "connect-accept-encoding",
} as const;
