// The holders of the bytes of a request and its response: the connection, the address and the caller.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import { type ApiError, resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import { BufferAccount, type Charge, createHolder, type Holder } from "./buffer-account.js";
import { createPeer, isIdlePeer, type Peer } from "./fair-queue.js";
import type { Limits } from "./limits.js";
import { findForwardedAddress, isTrustedProxy, type TrustedProxies } from "./peer-address.js";

/** A connection and the address of its peer. */
export interface ConnectionHolders {
  readonly holders: readonly Holder[];
  /** A trusted proxy has no share of its own: its requests count for the addresses that it names. */
  readonly isProxy: boolean;
  /** The peer in whose queue its requests wait, unless a proxy names another. */
  readonly peer: Peer;
  /** Releases the connection. */
  close(): void;
}

interface Counted extends Holder {
  readonly peer: Peer;
  connections: number;
}

const RETRY_MS = 1_000;
/** The largest error without a message, in bytes. */
const STATUS_BYTES = 8 * 1024;
/** Requests slower than this may be rejected to make room, in bytes per millisecond. */
const SLOW_REQUEST = 64;
/** Responses slower than this may be cut off to make room, in bytes per millisecond. */
const SLOW_RESPONSE = 16;
/** When there are as many holders, those without connections and bytes are deleted. */
const SWEEP_AT = 10_000;

/** The two accounts of the process, of requests and of responses, and their holders. */
export class Buffers {
  readonly requests: BufferAccount;
  readonly answers: BufferAccount;
  /** The most bytes of a list that is sent as one message; such lists may exceed a holder's share. */
  readonly maxListBytes: number;
  /** The number of open requests. */
  openRequests = 0;
  readonly #holders = new Map<string, Counted>();

  constructor(limits: Limits) {
    const { requestBufferBytes, responseBufferBytes, waitingBodies, responseStallMs } = limits;
    this.maxListBytes = Math.max(limits.responseBytes, responseBufferBytes / 4);
    this.requests = new BufferAccount(0, {
      totalBytes: requestBufferBytes,
      smallBytes: limits.publicRequestBytes,
      waiting: waitingBodies,
      slowRate: SLOW_REQUEST,
    });
    this.answers = new BufferAccount(1, {
      totalBytes: responseBufferBytes,
      smallBytes: limits.requestBytes,
      waiting: waitingBodies,
      tinyBytes: STATUS_BYTES,
      stallMs: responseStallMs,
      slowRate: SLOW_RESPONSE,
    });
  }

  /** Opens the holders of a connection. */
  connect(address: string | undefined, isProxy: boolean): ConnectionHolders {
    if (isProxy) return { holders: [], isProxy, peer: createPeer(), close() {} };
    const key = addressKey(address);
    const network = this.#holderOf(key);
    network.connections++;
    return {
      holders: [createHolder(), network],
      isProxy,
      peer: network.peer,
      close: () => {
        if (--network.connections === 0 && isIdle(network)) this.#holders.delete(key);
      },
    };
  }

  /** Gets the holder of a caller, or of an address that a proxy names. */
  holder(key: string): Holder & { readonly peer: Peer } {
    return this.#holderOf(key);
  }

  #holderOf(key: string): Counted {
    const known = this.#holders.get(key);
    if (known !== undefined) return known;
    if (this.#holders.size >= SWEEP_AT) {
      for (const [other, holder] of this.#holders) if (isIdle(holder)) this.#holders.delete(other);
    }
    const holder = { ...createHolder(), peer: createPeer(), connections: 0 };
    this.#holders.set(key, holder);
    return holder;
  }
}

function isIdle({ connections, bufferedBytes: [requests, responses], peer }: Counted): boolean {
  return connections === 0 && requests === 0 && responses === 0 && isIdlePeer(peer);
}

/** The bytes of one request and its response, which are released at its end. */
export class RequestBuffers {
  /** The peer in whose queue the request waits. */
  readonly peer: Peer;
  readonly #buffers: Buffers;
  #holders: readonly Holder[];
  #request: Charge | undefined;
  #answer: Charge | undefined;
  #isOver = false;

  /** @param address the address that a trusted proxy names, if any */
  constructor(buffers: Buffers, connection: ConnectionHolders, address: string | undefined) {
    this.#buffers = buffers;
    const named = address === undefined ? undefined : buffers.holder(addressKey(address));
    this.#holders = connection.isProxy ? (named === undefined ? [] : [named]) : connection.holders;
    this.peer = named?.peer ?? connection.peer;
    this.peer.open++;
    buffers.openRequests++;
  }

  /** Called before the body is read, if the peer waits for 100 Continue (RFC 9110, section 10.1.1). */
  onContinueExpected: (() => void) | undefined;

  /** Sends 100 Continue, if the peer waits for it. */
  askForBody(): void {
    this.onContinueExpected?.();
    this.onContinueExpected = undefined;
  }

  /** Holds bytes for this caller as well from now on. */
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
   * Charges more bytes of the request, such as those of its decompressed body.
   *
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeRequest(bytes: number): void {
    if (!this.#isOver && this.#request?.growFirst(bytes) === false)
      throw resourceExhausted("body: the service holds as many bytes as it may, try again", RETRY_MS, "buffers");
  }

  /**
   * Charges bytes of the response before they are kept, and cuts off slow responses to make room.
   *
   * @param onRejected cuts this response off, if it is rejected to make room
   * @param isList whether the response is a list that is sent as one message
   * @throws ApiError RESOURCE_EXHAUSTED
   */
  chargeResponse(bytes: number, onRejected: () => void, isList = false): void {
    // The request has ended: the response is not sent, and its bytes would never be released.
    if (this.#isOver) return;
    const { answers, maxListBytes } = this.#buffers;
    this.#answer ??= answers.open(this.#holders, onRejected, isList ? maxListBytes : undefined);
    // A list that is being read makes progress.
    if (isList) this.#answer.noteProgress(bytes);
    if (!this.#answer.growFirst(bytes)) throw resourceExhausted("answer: too much is being sent", RETRY_MS, "buffers");
  }

  /** Releases bytes of the response that the peer has taken. */
  releaseResponse(bytes: number): void {
    this.#answer?.shrink(bytes);
  }

  /** Releases all bytes of a response that is not sent. */
  dropResponse(): void {
    this.#answer?.release();
    this.#answer = undefined;
  }

  /** Releases all bytes at the end of the request; nothing is charged for it any more. */
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

/** Attaches the buffers of a request to its stream, request or response. */
export function attachBuffers(buffers: RequestBuffers, ...carriers: Carrier[]): void {
  for (const carrier of carriers) (carrier as Owned)[key] = buffers;
}

/** Finds the buffers of a request by its stream, request or response. */
export function buffersOf(of: Carrier | Http2ServerRequest | Http2ServerResponse): RequestBuffers | undefined {
  const carrier = "stream" in of ? (of.stream as ServerHttp2Stream | undefined) : of;
  return (carrier as Owned | undefined)?.[key];
}

/** Accounts for the bytes of all connections. */
export type Connections = ReturnType<typeof createConnections>;

/**
 * Creates the accounts.
 *
 * @param proxies trusted proxies, whose requests count for the addresses that they name
 * @param behindProxy whether every connection is that of a proxy, also without trusted proxies
 */
export function createConnections(buffers: Buffers, proxies: TrustedProxies | undefined, behindProxy: boolean) {
  const isProxy = (address: string | undefined) =>
    behindProxy || (proxies !== undefined && isTrustedProxy(address, proxies));
  return {
    /** Opens the holders of a connection, which the caller closes with it. */
    open: (address: string | undefined) => buffers.connect(address, isProxy(address)),
    /** The number of open requests. */
    openRequests: () => buffers.openRequests,
    /** Gets the peer in whose queue a request of HTTP/1.1 waits. */
    peerOf(connection: ConnectionHolders, req: IncomingMessage): Peer {
      if (!connection.isProxy) return connection.peer;
      const named = findForwardedAddress(req.socket.remoteAddress, req.headers, proxies);
      return named === undefined ? connection.peer : buffers.holder(addressKey(named)).peer;
    },
    /** Gets the peer at an address; undefined for a proxy, whose connections are those of many. */
    peerAt: (address: string | undefined): Peer | undefined =>
      isProxy(address) ? undefined : buffers.holder(addressKey(address)).peer,
    /** Opens the buffers of a request. */
    begin(connection: ConnectionHolders, address: string | undefined, headers: IncomingHttpHeaders): RequestBuffers {
      const named = connection.isProxy ? findForwardedAddress(address, headers, proxies) : undefined;
      return new RequestBuffers(buffers, connection, named);
    },
  };
}
