// One request, whatever its protocol and version of HTTP: what came, whose it is, the bytes that are held for it, its
// response, and its end. It is passed along; nothing looks it up.
//
//   waiting ──> begun ──> head written ──> closed
//      │          └──────────────────────────^  the peer has gone
//      └──> refused, or gone before its turn
//
// `Http1Request` and `Http2Request` say how it is read and written.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { type ApiError, callerGone, invalidRequest, resourceExhausted } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import type { CallProtocol, Inbound } from "../../pipeline/call.js";
import type { FieldSpelling } from "../../pipeline/field-names.js";
import type { HttpVersion, RequestRecord } from "../../telemetry/request-record.js";
import { createDeferral } from "./deferral.js";
import { joinField, pathOf, toWebHeaders } from "./http-message.js";
import type { LateReason, RefusalReason, WaitingRequest } from "./limits/admission.js";
import type { Budgets } from "./limits/budgets.js";
import { type Charge, noRoom, type Owner } from "./limits/byte-budget.js";
import type { Connection } from "./limits/connection.js";
import type { Limits } from "./limits/limits.js";
import { DROPPED_PIECE_US, PIECE_US } from "./limits/read-throttle.js";

/** A larger piece costs no more than its bytes. */
const SMALL_PIECE_BYTES = 1_024;
/** What a piece takes besides its bytes: the objects that hold it. */
const PIECE_BYTES = 512;
/** The size of one write, in bytes. */
export const CHUNK_BYTES = 64 * 1024;

/** What the connections of a server give to its requests. */
export interface RequestHost {
  readonly budgets: Budgets;
  /** How long a request may wait, in milliseconds. */
  readonly maxWaitMs: number;
  readonly limits: Pick<Limits, "bodyPieces" | "bytesPerPiece" | "bytesPerMessage" | "requestMs">;
  /** Whether the method under a path takes a stream of messages, each of which may be a piece. */
  takesStream(path: string): boolean;
  /** Charges a connection for what was read of it, in microseconds, and says whether that is refused. */
  chargeRead(connection: Connection, costUs: number, isRefused?: boolean): void;
  /** Runs a function when it is the turn of a request again. */
  waitAgain(request: Request, run: () => void): void;
  /** Called when a request has ended. */
  onClose(request: Request): void;
}

/** What a server does with its requests. */
export interface RequestHandlers {
  /** Answers a request. */
  handle(request: Request): void;
  /** Answers that the service has no time for a request. */
  refuse(request: Request, reason: RefusalReason): void;
  /** Called with an error that the handling of a request did not catch. Only that request ends. */
  onError(error: unknown, requestId?: string): void;
}

/** Where the body of a request is read from. */
export type BodySource = IncomingMessage | ServerHttp2Stream;

/** What follows the head of a response: all of its body, pieces of it, pieces and then trailers, or nothing. */
export type AfterHead = "whole" | "pieces" | "trailers" | "nothing";

/** What a call says of the protocol that it came by. */
export interface CallForm {
  readonly name: CallProtocol;
  /** The names that errors have for the fields of the request: those that its format has. */
  readonly fieldSpelling: FieldSpelling;
  /** The header fields of a request as handlers see them. */
  metadataOf(fields: IncomingHttpHeaders): Headers;
}

// A request that is no call, such as one for a page.
const NO_CALL: CallForm = { name: "rest", fieldSpelling: "json", metadataOf: toWebHeaders };

/** A request whose response has not ended. */
export abstract class Request implements Inbound, Owner, WaitingRequest {
  /** The address it came from, in whose queue it waits. */
  readonly key: string;
  /** When its headers arrived, by `performance.now()`. */
  readonly arrivedMs = performance.now();
  /** The uid of its caller, once that one has proven who it is. */
  callerUid: string | undefined;
  /** Called before the body is read, if the peer waits for 100 Continue (RFC 9110, section 10.1.1). */
  onContinueExpected: (() => void) | undefined;
  readonly connection: Connection;
  /** How long its caller waits, in milliseconds; Infinity when it did not say. */
  readonly callerWaitsMs: number;
  /** When it is refused if it has not begun, by `performance.now()`, and why. */
  readonly startByMs: number;
  readonly lateReason: LateReason;
  /** How long its units of work may wait for the database, in milliseconds: what it waits until it begins counts. */
  maxWaitMs: number;
  /** What logs and metrics say of it; undefined until its turn has come, or it is refused. */
  record!: RequestRecord;
  /** How much of the caller's timeout is left when its call begins, in milliseconds; undefined when it names none. */
  timeoutMs: number | undefined;
  /** Fields that every response to it has, such as those for scripts of other origins. */
  responseFields: OutgoingHttpHeaders | undefined;
  protected readonly host: RequestHost & RequestHandlers;
  #form: CallForm = NO_CALL;
  #body: Charge | undefined;
  #response: Charge | undefined;
  #isOver = false;
  /** The pieces of its body that have arrived, and their bytes. */
  #pieces = 0;
  #pieceBytes = 0;
  /** Why no more of its body is read. */
  #bodyFault: ApiError | undefined;
  #disconnected: AbortController | undefined;

  constructor(key: string, callerWaitsMs: number, connection: Connection, host: RequestHost & RequestHandlers) {
    this.key = key;
    this.connection = connection;
    this.maxWaitMs = host.maxWaitMs;
    this.callerWaitsMs = callerWaitsMs;
    // A timeout of 0 is rejected when the request is handled.
    const isCallers = callerWaitsMs > 0 && callerWaitsMs < host.maxWaitMs;
    this.startByMs = this.arrivedMs + (isCallers ? callerWaitsMs : host.maxWaitMs);
    this.lateReason = isCallers ? "timeout" : "max_wait";
    this.callerUid = undefined;
    this.onContinueExpected = undefined;
    this.timeoutMs = undefined;
    this.responseFields = undefined;
    this.host = host;
  }

  // What came.

  /** The HTTP method as it was sent. */
  abstract readonly method: string;

  /** Path and query. */
  abstract readonly url: string;

  /** Its header fields, by lower-case name. */
  abstract readonly fields: IncomingHttpHeaders;

  /** Name, value, name, value, …, as received. */
  abstract readonly rawFields: readonly string[];

  abstract readonly httpVersion: HttpVersion;

  /** The address at the other end of the connection. */
  abstract readonly socketAddress: string | undefined;

  /** Where its body is read from. */
  abstract readonly body: BodySource;

  /** Whether its headers announce a body, which may be empty. */
  abstract readonly mayHaveBody: boolean;

  /** Whether its body, which has ended, is all that the peer sends. */
  protected abstract readonly isBodyComplete: boolean;

  /**
   * Discards the rest of a body that the response does not need, if there is any. On HTTP/1.1 it is read and dropped up to
   * a limit, so that the connection can serve the next request. On HTTP/2 the stream is closed without an error after the
   * response (RFC 9113, section 8.1).
   */
  abstract discardBody(): void;

  // What it is.

  /** Its record, if it has one already. */
  findRecord(): RequestRecord | undefined {
    return this.record;
  }

  /** Notes who has proven to send it: its line in the log and its bytes are theirs. */
  noteCaller(caller: Principal | undefined): void {
    if (caller === undefined) return;
    this.record.setCaller(caller.identityUid);
    this.callerUid = caller.identityUid;
    this.connection.isProven = true;
  }

  /**
   * Notes the protocol of its call and the timeout that it names, in milliseconds, of which what it has waited for its turn
   * is over.
   */
  beginCall(form: CallForm, timeoutMs: number | undefined): void {
    this.#form = form;
    this.timeoutMs =
      timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - (performance.now() - this.arrivedMs));
  }

  get protocol(): CallProtocol {
    return this.#form.name;
  }

  get fieldSpelling(): FieldSpelling {
    return this.#form.fieldSpelling;
  }

  get requestId(): string {
    return this.record.requestId;
  }

  get remoteAddress(): string | undefined {
    return this.record.remoteAddress;
  }

  get turn(): this {
    return this;
  }

  header(name: string): string | undefined {
    return joinField(this.fields[name]);
  }

  headers(): Headers {
    return this.#form.metadataOf(this.fields);
  }

  // Its turn.

  // One whose peer has disconnected meanwhile is not handled.
  run(): void {
    if (this.isGone) {
      this.discardBody();
      return;
    }
    this.maxWaitMs -= performance.now() - this.arrivedMs;
    this.host.handle(this);
  }

  refuse(reason: RefusalReason): void {
    if (this.isGone) this.discardBody();
    else this.host.refuse(this, reason);
  }

  onError(error: unknown): void {
    this.host.onError(error, this.findRecord()?.requestId);
    this.abort();
  }

  countUnread(): number {
    return Math.max(this.body.readableLength, this.#pieces * PIECE_BYTES);
  }

  /** Waits for another turn, because its body is complete only now. */
  waitAgain(run: () => void): void {
    this.host.waitAgain(this, run);
  }

  // Its body.

  /** Whether its body is rejected, which whoever reads it is told soon. */
  get isBodyRejected(): boolean {
    return this.#bodyFault !== undefined;
  }

  /** Whether its body, which has ended, is whole: an incomplete request must never run. */
  get isBodyWhole(): boolean {
    return this.#bodyFault === undefined && this.isBodyComplete;
  }

  /**
   * Counts a piece of the body as the parser found it. Returns whether it is to be kept: a body in too many pieces is rejected,
   * and the rest of it is dropped.
   */
  takePiece({ length: bytes }: Buffer): boolean {
    this.#pieceBytes += bytes;
    // Most bodies are one piece.
    if (++this.#pieces === 1) return true;
    const { limits } = this.host;
    if (this.#bodyFault !== undefined) {
      this.host.chargeRead(this.connection, DROPPED_PIECE_US, true);
      return false;
    }
    if (bytes < SMALL_PIECE_BYTES) this.host.chargeRead(this.connection, PIECE_US);
    if (this.#pieces <= limits.bodyPieces + this.#pieceBytes / limits.bytesPerPiece) return true;
    const isStream = this.host.takesStream(pathOf(this.url));
    if (isStream && this.#pieces <= limits.bodyPieces + this.#pieceBytes / limits.bytesPerMessage) return true;
    const least = isStream ? limits.bytesPerMessage : limits.bytesPerPiece;
    this.#bodyFault = invalidRequest(`body: must arrive in pieces of ${least} bytes or more`, "pieces");
    this.connection.onBodyRefused?.();
    // Not within this event of the connection, whose request may now be answered.
    setImmediate(() => this.#rejectBody());
    return false;
  }

  #rejectBody(): void {
    if (this.#bodyFault !== undefined) this.#body?.reject(this.#bodyFault);
  }

  /** How long its body may take from when it is read, in milliseconds. */
  get bodyMs(): number {
    return this.host.limits.requestMs;
  }

  /** Sends 100 Continue, if the peer waits for it. */
  askForBody(): void {
    this.onContinueExpected?.();
    this.onContinueExpected = undefined;
  }

  /**
   * Opens the charge of the request's body. There is one at a time.
   *
   * @param onRejected ends the body, if it is rejected
   * @param mayPause whether it is a stream of messages
   */
  openBody(onRejected: (error: ApiError) => void, mayPause = false): Charge {
    this.#body?.release();
    this.#body = this.host.budgets.requests.open(this, { onRejected, mayPause });
    this.#rejectBody();
    return this.#body;
  }

  /**
   * Charges more bytes of the request, such as those of its decompressed body.
   *
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeBody(bytes: number): void {
    if (!this.#isOver && this.#body?.grow(bytes) === false) throw noRoom();
  }

  // Its response.

  /** What the response is written to. */
  protected abstract readonly sink: ServerResponse | ServerHttp2Stream;

  /** Writes the head of the response; after "nothing" the response has ended. */
  protected abstract sendHead(status: number, fields: OutgoingHttpHeaders, after: AfterHead): void;

  /** Sends the whole response, whose bytes were charged. */
  abstract sendWhole(
    status: number,
    fields: OutgoingHttpHeaders,
    body: string | Uint8Array,
    trailers: OutgoingHttpHeaders | undefined,
  ): void;

  /** Ends a response after whose head "trailers" were announced. */
  abstract endWithTrailers(trailers: OutgoingHttpHeaders): void;

  /** Aborts an incomplete response, so that it does not look complete. */
  abstract abort(): void;

  /** Cuts off a peer that does not read its response. */
  abstract cutOff(): void;

  /** Whether the peer has disconnected, so that a response cannot be read. */
  get isGone(): boolean {
    const { sink } = this;
    return sink.destroyed || sink.closed;
  }

  get headersSent(): boolean {
    return this.sink.headersSent;
  }

  get isHead(): boolean {
    return this.method === "HEAD";
  }

  /** Writes status and fields, with those that every response to this request has. */
  writeHead(status: number, fields: OutgoingHttpHeaders, after: AfterHead): void {
    fields["x-request-id"] = this.record.requestId;
    const own = this.responseFields;
    if (own !== undefined) {
      if (own.vary !== undefined && fields.vary !== undefined) fields.vary = `${own.vary}, ${fields.vary}`;
      for (const name in own) fields[name] ??= own[name];
    }
    this.sendHead(status, fields, after);
  }

  /** Counts bytes of the response's body. */
  protected countBytes(bytes: number): void {
    this.record.bytes += bytes;
  }

  /**
   * Charges bytes of the response before they are kept.
   *
   * @param onRejected called when the response is rejected to make room, before it is cut off
   * @param isList whether the response is a list that is sent as one message
   * @throws ApiError RESOURCE_EXHAUSTED when too many bytes are buffered for this caller, or for all
   */
  chargeResponse(bytes: number, onRejected?: () => void, isList = false): void {
    // The request has ended: the response is not sent, and its bytes would never be released.
    if (this.#isOver) return;
    const { responses, listBytes } = this.host.budgets;
    this.#response ??= responses.open(this, {
      onRejected: () => {
        onRejected?.();
        this.cutOff();
      },
      mostBytes: isList ? listBytes : undefined,
    });
    // A list that is being read makes progress.
    if (isList) this.#response.noteProgress(bytes);
    if (!this.#response.grow(bytes)) throw resourceExhausted("answer: too much is being sent", RETRY_MS, "buffers");
  }

  /** Releases bytes of the response that the peer has taken. */
  releaseResponse(bytes: number): void {
    this.#response?.shrink(bytes);
  }

  /** Releases all bytes of a response that is not sent. */
  dropResponse(): void {
    this.#response?.release();
    this.#response = undefined;
  }

  /**
   * Charges bytes and writes them with backpressure. Resolves when they are written or the peer has disconnected. A peer
   * that stops reading is cut off.
   */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.isGone) return;
    this.chargeResponse(bytes.length);
    await this.writeCharged(bytes);
  }

  /** Writes charged bytes as {@link write} does. */
  async writeCharged(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      if (this.isGone) return;
      const chunk = bytes.subarray(at, at + CHUNK_BYTES);
      this.countBytes(chunk.length);
      if (!this.sink.write(chunk)) await this.#waitForDrain();
      this.releaseResponse(chunk.length);
    }
  }

  /** Writes a body whose bytes were charged, and ends the response. Never rejects. */
  protected async sendLong(body: string | Uint8Array): Promise<void> {
    try {
      await this.writeCharged(typeof body === "string" ? Buffer.from(body) : body);
      this.end();
    } catch (error) {
      this.onError(error);
    }
  }

  /** Writes bytes that need no charge, such as a heartbeat, unless the peer has disconnected. */
  writeNow(text: string): void {
    if (this.isGone) return;
    this.countBytes(text.length);
    this.sink.write(text);
  }

  /** Ends the response, unless the peer has disconnected. */
  end(): void {
    if (!this.isGone) this.sink.end();
  }

  /** Writes the last bytes, and then aborts the response, because it is incomplete. */
  breakOff(last: string): void {
    this.countBytes(Buffer.byteLength(last));
    this.sink.write(last, () => this.abort());
  }

  // Resolves when more may be written, or when the peer has disconnected.
  #waitForDrain(): Promise<void> {
    if (this.isGone) return Promise.resolve();
    const { sink } = this;
    return new Promise((resolve) => {
      const go = () => {
        sink.off("drain", go);
        sink.off("close", go);
        resolve();
      };
      sink.on("drain", go);
      sink.on("close", go);
    });
  }

  /** Aborts with {@link callerGone} soon after the caller disconnected before it had its response. */
  signal(): AbortSignal {
    if (this.#disconnected === undefined) {
      this.#disconnected = new AbortController();
      if (this.isGone) this.#disconnected.abort(callerGone());
    }
    return this.#disconnected.signal;
  }

  // Its end.

  /**
   * Ends the request when its response has closed: records it and releases what it holds. Nothing else does.
   *
   * @param status the HTTP status; undefined when no response was begun
   * @param isComplete whether the peer has the whole response, as far as this side can know; otherwise what still works for
   * the caller learns that it has gone
   */
  protected close(status: number | undefined, isComplete: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.findRecord()?.end(status, isComplete);
    if (!isComplete && this.#disconnected !== undefined) giveUp(this.#disconnected);
    this.#body?.release();
    this.#response?.release();
    this.host.onClose(this);
  }
}

const RETRY_MS = 1_000;

/**
 * A connection that closes ends hundreds of calls in one event. To abort one takes a tenth of a millisecond, for which
 * other callers wait.
 */
const CALLS_PER_TURN = 16;

const giveUp = createDeferral<AbortController>((call) => call.abort(callerGone()), rethrow, CALLS_PER_TURN);

function rethrow(error: unknown): void {
  throw error;
}
