// An open request: whose it is, when it must begin, and the bytes that are held for it.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import { type ApiError, invalidRequest, resourceExhausted } from "../../kernel/errors.js";
import type { Turn } from "../../kernel/fair-queue.js";
import type { LateReason } from "./admission.js";
import { ByteBudget, type Charge, noRoom, type Owner } from "./byte-budget.js";
import type { Connection } from "./connection.js";
import type { Limits } from "./limits.js";
import { DROPPED_PIECE_US, PIECE_US } from "./read-throttle.js";

/** The budgets of requests and of responses: responses that nobody reads must not stop bodies. */
export interface Budgets {
  readonly requests: ByteBudget;
  readonly responses: ByteBudget;
  /** The most bytes that an account may hold with a list that is sent as one message. */
  readonly listBytes: number;
}

/** A larger piece costs no more than its bytes. */
const SMALL_PIECE_BYTES = 1_024;
/** What a piece takes besides its bytes: the objects that hold it. */
const PIECE_BYTES = 512;
/** The largest error without a message, in bytes. */
const STATUS_BYTES = 8 * 1024;

/** Creates the budgets of a server. */
export function createBudgets(limits: Limits): Budgets {
  const { unknownBytes } = limits;
  return {
    requests: new ByteBudget({
      ...{ totalBytes: limits.requestBufferBytes, unknownBytes },
      ...{ leastRate: limits.leastBodyRate, graceMs: limits.slowBodyMs },
    }),
    responses: new ByteBudget({
      ...{ totalBytes: limits.responseBufferBytes, unknownBytes },
      ...{ tinyBytes: STATUS_BYTES, stallMs: limits.responseStallMs },
    }),
    listBytes: limits.responseBytes,
  };
}

/** What open requests share. */
export interface RequestHost {
  readonly budgets: Budgets;
  /** How long a request may wait, in milliseconds. */
  readonly maxWaitMs: number;
  readonly limits: Pick<Limits, "bodyPieces" | "bytesPerPiece" | "bytesPerMessage">;
  /** Whether the method under a path takes a stream of messages, each of which may be a piece. */
  takesStream(path: string): boolean;
  /** Charges a connection for what was read of it, in microseconds, and says whether that is refused. */
  chargeRead(connection: Connection, costUs: number, isRefused?: boolean): void;
  /** Runs a function when it is the turn of a request again. */
  waitAgain(request: OpenRequest, run: () => void): void;
  /** Called when a request has ended. */
  onClose(request: OpenRequest): void;
}

/** A request whose response has not ended. */
export class OpenRequest implements Turn, Owner {
  /** The address it came from, in whose queue it waits. */
  readonly key: string;
  /** When its headers arrived, by `performance.now()`. */
  readonly arrivedMs = performance.now();
  /** The uid of its caller, once that one has proven who it is. */
  callerUid: string | undefined;
  /** Called before the body is read, if the peer waits for 100 Continue (RFC 9110, section 10.1.1). */
  onContinueExpected: (() => void) | undefined;
  readonly connection: Connection;
  /** Its target as received. */
  readonly target: string;
  /** How long its caller waits, in milliseconds; Infinity when it did not say. */
  readonly callerWaitsMs: number;
  /** When it is refused if it has not begun, by `performance.now()`, and why. */
  readonly startByMs: number;
  readonly lateReason: LateReason;
  /** How long its units of work may wait for the database, in milliseconds: what it waits until it begins counts. */
  maxWaitMs: number;
  readonly #host: RequestHost;
  #request: Charge | undefined;
  #response: Charge | undefined;
  #isOver = false;
  /** The pieces of its body that have arrived, and their bytes. */
  #pieces = 0;
  #pieceBytes = 0;
  /** Why no more of its body is read. */
  #bodyFault: ApiError | undefined;

  constructor(key: string, target: string, callerWaitsMs: number, connection: Connection, host: RequestHost) {
    this.key = key;
    this.target = target;
    this.connection = connection;
    this.maxWaitMs = host.maxWaitMs;
    this.callerWaitsMs = callerWaitsMs;
    // A timeout of 0 is rejected when the request is handled.
    const isCallers = callerWaitsMs > 0 && callerWaitsMs < host.maxWaitMs;
    this.startByMs = this.arrivedMs + (isCallers ? callerWaitsMs : host.maxWaitMs);
    this.lateReason = isCallers ? "timeout" : "max_wait";
    this.callerUid = undefined;
    this.onContinueExpected = undefined;
    this.#host = host;
  }

  /** Notes who has proven to send it. */
  noteCaller(uid: string): void {
    this.callerUid = uid;
    this.connection.isProven = true;
  }

  /**
   * Counts a piece of the body as the parser found it; null is its end. Returns whether it is to be kept: a body in too many
   * pieces is rejected, and the rest of it is dropped, its end too: what was kept must not pass for the whole.
   */
  takePiece(piece: Buffer | null): boolean {
    if (piece === null) return this.#bodyFault === undefined;
    const { length: bytes } = piece;
    this.#pieceBytes += bytes;
    // Most bodies are one piece.
    if (++this.#pieces === 1) return true;
    const { limits } = this.#host;
    if (this.#bodyFault !== undefined) {
      this.#host.chargeRead(this.connection, DROPPED_PIECE_US, true);
      return false;
    }
    if (bytes < SMALL_PIECE_BYTES) this.#host.chargeRead(this.connection, PIECE_US);
    if (this.#pieces <= limits.bodyPieces + this.#pieceBytes / limits.bytesPerPiece) return true;
    const isStream = this.#host.takesStream(this.target);
    if (isStream && this.#pieces <= limits.bodyPieces + this.#pieceBytes / limits.bytesPerMessage) return true;
    const least = isStream ? limits.bytesPerMessage : limits.bytesPerPiece;
    this.#bodyFault = invalidRequest(`body: must arrive in pieces of ${least} bytes or more`, "pieces");
    this.connection.onBodyRefused?.();
    // Not within this event of the connection, whose request may now be answered.
    setImmediate(() => this.#rejectBody());
    return false;
  }

  /** Counts what Node holds of a body that is not read yet, in bytes. @param bytes those of its pieces */
  countUnread(bytes: number): number {
    return Math.max(bytes, this.#pieces * PIECE_BYTES);
  }

  #rejectBody(): void {
    if (this.#bodyFault !== undefined) this.#request?.reject(this.#bodyFault);
  }

  /** Notes that it begins. */
  begin(): void {
    this.maxWaitMs -= performance.now() - this.arrivedMs;
  }

  /** Sends 100 Continue, if the peer waits for it. */
  askForBody(): void {
    this.onContinueExpected?.();
    this.onContinueExpected = undefined;
  }

  /** Waits for another turn, because the body of the request is complete only now. */
  waitAgain(run: () => void): void {
    this.#host.waitAgain(this, run);
  }

  /**
   * Opens the charge of the request's body. There is one at a time.
   *
   * @param onRejected ends the body, if it is rejected
   * @param mayPause whether it is a stream of messages
   */
  openBody(onRejected: (error: ApiError) => void, mayPause = false): Charge {
    this.#request?.release();
    this.#request = this.#host.budgets.requests.open(this, { onRejected, mayPause });
    this.#rejectBody();
    return this.#request;
  }

  /**
   * Charges more bytes of the request, such as those of its decompressed body.
   *
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeBody(bytes: number): void {
    if (!this.#isOver && this.#request?.grow(bytes) === false) throw noRoom();
  }

  /**
   * Charges bytes of the response before they are kept.
   *
   * @param onRejected cuts this response off, if it is rejected
   * @param isList whether the response is a list that is sent as one message
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeResponse(bytes: number, onRejected: () => void, isList = false): void {
    // The request has ended: the response is not sent, and its bytes would never be released.
    if (this.#isOver) return;
    const { responses, listBytes } = this.#host.budgets;
    this.#response ??= responses.open(this, { onRejected, mostBytes: isList ? listBytes : undefined });
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

  /** Releases all bytes when the response has ended; nothing is charged any more. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request?.release();
    this.#response?.release();
    this.#host.onClose(this);
  }
}

const RETRY_MS = 1_000;

const key = Symbol("open request");
type Carrier = ServerHttp2Stream | IncomingMessage | ServerResponse;
type Owned = Carrier & { [key]?: OpenRequest };

/** Attaches an open request to its stream, or to its request and response. */
export function attachOpenRequest(open: OpenRequest, ...carriers: Carrier[]): void {
  for (const carrier of carriers) (carrier as Owned)[key] = open;
}

/** Finds the open request of a stream, a request or a response. */
export function openRequestOf(of: Carrier | Http2ServerRequest | Http2ServerResponse): OpenRequest | undefined {
  const carrier = "stream" in of ? (of.stream as ServerHttp2Stream | undefined) : of;
  return (carrier as Owned | undefined)?.[key];
}
