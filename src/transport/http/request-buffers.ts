// Who the bytes of a request and of its answer are held for.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import { type ApiError, resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import { BufferAccount, type Charge, type Holder, newHolder } from "./buffer-account.js";
import { createPeer, isIdlePeer, type Peer } from "./fair-queue.js";
import { isTrustedProxy, peerAddress, type TrustedProxies } from "./http-message.js";
import type { Limits } from "./limits.js";

/** A connection and the address at its other end. */
export interface ConnectionHolders {
  readonly holders: readonly Holder[];
  /** Without a share of their own the requests of a trusted proxy are those of the addresses it names. */
  readonly isProxy: boolean;
  /** Whose requests wait for each other, unless a proxy names another. */
  readonly peer: Peer;
  /** Forgets the connection. */
  close(): void;
}

interface Counted extends Holder {
  readonly peer: Peer;
  connections: number;
}

const RETRY_MS = 1_000;
/** No status without an answer is larger, in bytes. */
const STATUS_BYTES = 8 * 1024;
/** A request that arrives slower than this gives way, in bytes per millisecond. */
const SLOW_REQUEST = 64;
/** An answer that its peer takes slower than this gives way, in bytes per millisecond. */
const SLOW_ANSWER = 16;
/** Holders without a connection or bytes are forgotten when there are so many. */
const SWEEP_AT = 10_000;

/** The two accounts of the process and all who hold bytes in them. */
export class Buffers {
  readonly requests: BufferAccount;
  readonly answers: BufferAccount;
  /** The most bytes that one list which has to be sent in one piece may hold, above any share. */
  readonly maxListBytes: number;
  /** How many requests are not over. */
  openRequests = 0;
  readonly #holders = new Map<string, Counted>();

  constructor(limits: Limits) {
    const { requestBufferBytes, answerBufferBytes, waitingBodies, answerStallMs } = limits;
    this.maxListBytes = Math.max(limits.responseBytes, answerBufferBytes / 4);
    this.requests = new BufferAccount(0, {
      totalBytes: requestBufferBytes,
      smallBytes: limits.publicRequestBytes,
      waiting: waitingBodies,
      slowRate: SLOW_REQUEST,
    });
    this.answers = new BufferAccount(1, {
      totalBytes: answerBufferBytes,
      smallBytes: limits.requestBytes,
      waiting: waitingBodies,
      tinyBytes: STATUS_BYTES,
      stallMs: answerStallMs,
      slowRate: SLOW_ANSWER,
    });
  }

  /** Opens the holders of a connection. */
  connect(address: string | undefined, isProxy: boolean): ConnectionHolders {
    if (isProxy) return { holders: [], isProxy, peer: createPeer(), close() {} };
    const key = addressKey(address);
    const network = this.#holderOf(key);
    network.connections++;
    return {
      holders: [newHolder(), network],
      isProxy,
      peer: network.peer,
      close: () => {
        if (--network.connections === 0 && isIdle(network)) this.#holders.delete(key);
      },
    };
  }

  /** The holder of a caller, or of an address that a proxy names. */
  holder(key: string): Holder & { readonly peer: Peer } {
    return this.#holderOf(key);
  }

  #holderOf(key: string): Counted {
    const known = this.#holders.get(key);
    if (known !== undefined) return known;
    if (this.#holders.size >= SWEEP_AT) {
      for (const [other, holder] of this.#holders) if (isIdle(holder)) this.#holders.delete(other);
    }
    const holder = { ...newHolder(), peer: createPeer(), connections: 0 };
    this.#holders.set(key, holder);
    return holder;
  }
}

function isIdle({ connections, bufferedBytes: [requests, answers], peer }: Counted): boolean {
  return connections === 0 && requests === 0 && answers === 0 && isIdlePeer(peer);
}

/** The bytes held for one request and its answer; released when the request is over. */
export class RequestBuffers {
  /** Whose requests wait for each other. */
  readonly peer: Peer;
  readonly #buffers: Buffers;
  #holders: readonly Holder[];
  #request: Charge | undefined;
  #answer: Charge | undefined;
  #isOver = false;

  /** @param address the address that a trusted proxy names, if one does */
  constructor(buffers: Buffers, connection: ConnectionHolders, address: string | undefined) {
    this.#buffers = buffers;
    const named = address === undefined ? undefined : buffers.holder(addressKey(address));
    this.#holders = connection.isProxy ? (named === undefined ? [] : [named]) : connection.holders;
    this.peer = named?.peer ?? connection.peer;
    this.peer.open++;
    buffers.openRequests++;
  }

  /** Called before the first byte of the body is read, where the peer waits to be asked (RFC 9110, section 10.1.1). */
  onContinueExpected: (() => void) | undefined;

  /** Asks the peer for the body, if it waits for that. */
  askForBody(): void {
    this.onContinueExpected?.();
    this.onContinueExpected = undefined;
  }

  /** From now on bytes are held for this caller as well. */
  holdFor(callerUid: string): void {
    this.#holders = [...this.#holders, this.#buffers.holder(callerUid)];
  }

  /**
   * Opens the charge of the request's body; see {@link BufferAccount.open}. There is one at a time.
   */
  openRequest(onRejected: (error: ApiError) => void): Charge {
    this.#request?.release();
    this.#request = this.#buffers.requests.open(this.#holders, onRejected);
    return this.#request;
  }

  /**
   * Charges more bytes of the request, such as what its body becomes when it is decompressed.
   *
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeRequest(bytes: number): void {
    if (!this.#isOver && this.#request?.growFirst(bytes) === false)
      throw resourceExhausted("body: the service holds as many bytes as it may, try again", RETRY_MS, "buffers");
  }

  /**
   * Charges bytes of the answer before they are kept, even if answers that nobody reads have to be cut off.
   *
   * @param onRejected cuts this answer off, when its turn comes
   * @param isList whether the answer is a list that has to be sent in one piece
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeAnswer(bytes: number, onRejected: () => void, isList = false): void {
    // Nobody gets the answer, and nobody would give its bytes back.
    if (this.#isOver) return;
    const { answers, maxListBytes } = this.#buffers;
    this.#answer ??= answers.open(this.#holders, onRejected, isList ? maxListBytes : undefined);
    // A list moves while it is made.
    if (isList) this.#answer.noteProgress(bytes);
    if (!this.#answer.growFirst(bytes)) throw resourceExhausted("answer: too much is being sent", RETRY_MS, "buffers");
  }

  /** Gives bytes of the answer back, which the peer has taken. */
  releaseAnswer(bytes: number): void {
    this.#answer?.shrink(bytes);
  }

  /** Gives back all bytes of an answer that will not be sent. */
  dropAnswer(): void {
    this.#answer?.release();
    this.#answer = undefined;
  }

  /** Gives back all bytes: the request is over, and nothing is charged for it any more. */
  release(): void {
    if (!this.#isOver) {
      this.peer.open--;
      this.#buffers.openRequests--;
    }
    this.#isOver = true;
    this.#request?.release();
    this.#answer?.release();
  }
}

const key = Symbol("buffers");
type Carrier = ServerHttp2Stream | IncomingMessage | ServerResponse;
type Owned = Carrier & { [key]?: RequestBuffers };

/** Ties the buffers of a request to what it is read from and answered on. */
export function attachBuffers(buffers: RequestBuffers, ...carriers: Carrier[]): void {
  for (const carrier of carriers) (carrier as Owned)[key] = buffers;
}

/** The buffers of a request, by its stream, its request or its response. */
export function buffersOf(of: Carrier | Http2ServerRequest | Http2ServerResponse): RequestBuffers | undefined {
  const carrier = "stream" in of ? (of.stream as ServerHttp2Stream | undefined) : of;
  return (carrier as Owned | undefined)?.[key];
}

/** Keeps the accounts of bytes of all connections. */
export type Connections = ReturnType<typeof createConnections>;

/**
 * Creates it.
 *
 * @param proxies whose requests count as those of the addresses they name
 * @param behindProxy whether every connection is a proxy's, also where none is trusted to name addresses
 */
export function createConnections(buffers: Buffers, proxies: TrustedProxies | undefined, behindProxy: boolean) {
  const isProxy = (address: string | undefined) =>
    behindProxy || (proxies !== undefined && isTrustedProxy(address, proxies));
  return {
    /** Opens the holders of a connection; the code that opens them closes them with it. */
    open: (address: string | undefined) => buffers.connect(address, isProxy(address)),
    /** How many requests are not over. */
    openRequests: () => buffers.openRequests,
    /** Whose requests one of HTTP/1.1 waits with. */
    peerOf(connection: ConnectionHolders, req: IncomingMessage): Peer {
      if (!connection.isProxy) return connection.peer;
      const { remoteAddress } = req.socket;
      const named = peerAddress(remoteAddress, req.headers, proxies);
      return named === undefined || named === remoteAddress ? connection.peer : buffers.holder(addressKey(named)).peer;
    },
    /** Opens the buffers of a request. */
    begin(connection: ConnectionHolders, address: string | undefined, headers: IncomingHttpHeaders): RequestBuffers {
      const peer = connection.isProxy ? peerAddress(address, headers, proxies) : undefined;
      return new RequestBuffers(buffers, connection, peer === address ? undefined : peer);
    },
  };
}
