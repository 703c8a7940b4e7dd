// A TCP connection to another server, below TLS and HTTP. All bytes of the server are counted here, whatever they are:
// handshakes and tickets of TLS, interim responses, header fields, framing, bodies and trailers. They are handed on in
// slices, when it is the turn of the organisation.
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { OutboundError } from "./outbound-error.js";
import { ReadTurns, type SliceReader } from "./read-turns.js";

/** How much is parsed at once, in bytes: some hundred of the smallest pieces. */
const SLICE_BYTES = 4096;
/** How much may wait for its turn before the server is slowed down, in bytes. */
const MAX_PENDING_BYTES = 64 * 1024;
/** What a response may have besides its body, in bytes: handshake, interim responses, header fields, framing. */
const OVERHEAD_BYTES = 16 * 1024;
/** How many pieces a response may have, and one more for as many bytes. */
const FREE_PIECES = 256;
const BYTES_PER_PIECE = 64;

const turns = new ReadTurns();

/** Who pays for what a server sends, and how much it may send. */
export interface Allowance {
  /** Whose turns reading takes. */
  readonly account: string;
  /** The longest accepted body, in bytes. */
  readonly maxBytes: number;
}

/** Bytes of a server, counted and in slices; what is written is passed on as it is. */
export class MeteredSocket extends Duplex implements SliceReader {
  readonly #raw: Socket;
  #allowance: Allowance;
  /** Of the current request. */
  #bytes = 0;
  #pieces = 0;
  /** What has arrived and is not handed on. */
  #pending: Buffer | undefined;
  #isWanted = false;
  /** How the connection ended; null without an error. */
  #end: Error | null | undefined;

  constructor(raw: Socket, allowance: Allowance) {
    super({ allowHalfOpen: false });
    this.#raw = raw;
    this.#allowance = allowance;
    // What has arrived before the connection ends may be the response, so it is handed on first.
    raw.on("data", (chunk: Buffer) => {
      this.#pending = this.#pending === undefined ? chunk : Buffer.concat([this.#pending, chunk]);
      if (this.#pending.length >= MAX_PENDING_BYTES) raw.pause();
      this.#waitForTurn();
    });
    raw.on("end", () => this.#finish(null));
    raw.on("error", (error) => this.#finish(error));
    raw.on("close", () => this.#finish(null));
  }

  get account(): string {
    return this.#allowance.account;
  }

  /** The bytes that the server has sent since the current request began. */
  get receivedBytes(): number {
    return this.#bytes;
  }

  /** Counts for another request from now on. */
  begin(allowance: Allowance): void {
    this.#allowance = allowance;
    this.#bytes = 0;
    this.#pieces = 0;
  }

  /** Counts a piece that was parsed, such as a chunk of a body. Ends a connection whose pieces are too small. */
  countPiece(): void {
    this.#pieces++;
    if (this.#pieces <= FREE_PIECES + this.#bytes / BYTES_PER_PIECE) return;
    this.destroy(new OutboundError("the response comes in too many pieces"));
  }

  /** Lets the process end while the connection waits for a request, or not. */
  setIdle(isIdle: boolean): void {
    if (isIdle) this.#raw.unref();
    else this.#raw.ref();
  }

  readSlice(): void {
    const pending = this.#pending;
    if (this.destroyed || pending === undefined || !this.#isWanted) return;
    const slice = pending.subarray(0, SLICE_BYTES);
    this.#pending = slice.length < pending.length ? pending.subarray(slice.length) : undefined;
    this.#bytes += slice.length;
    const { maxBytes } = this.#allowance;
    if (this.#bytes > maxBytes + OVERHEAD_BYTES) {
      this.destroy(
        new OutboundError(`the response is longer than ${maxBytes} bytes and ${OVERHEAD_BYTES} of overhead`),
      );
      return;
    }
    this.#isWanted = false;
    // Whoever reads parses it before this returns, and then asks for more.
    if (this.push(slice)) this.#isWanted = true;
    if (this.#pending !== undefined) this.#waitForTurn();
    else if (this.#end !== undefined) this.#finish(this.#end);
    else this.#raw.resume();
  }

  override _read(): void {
    this.#isWanted = true;
    this.#waitForTurn();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // An error of the connection is reported once, after what has arrived.
    this.#raw.write(chunk, () => done());
  }

  override _final(done: () => void): void {
    this.#raw.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#pending = undefined;
    this.#raw.destroy();
    done(error);
  }

  #waitForTurn(): void {
    if (this.#isWanted && this.#pending !== undefined) turns.add(this);
  }

  #finish(error: Error | null): void {
    this.#end ??= error;
    if (this.#pending !== undefined) return;
    if (this.#end !== null) this.destroy(this.#end);
    else this.push(null);
  }
}
