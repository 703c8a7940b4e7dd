// The connections of all workers: each is counted for its address before a worker has it, so that the limit of an address
// holds for all of them together.
//
//             a free worker             the worker has it         its worker says so
//   waiting ───────────────────> sent ───────────────────> held ────────────────────> closed
//      │ ▲                        │ │
//      │ └────────────────────────┘ │ the worker has ended, or not said that it has it in time
//      │   it did not reach it      │
//      └────────────────────────────┴──────────────────────────────────────────────> closed
//        too many wait, or too long
//
// Those that wait have a queue for each address, and the queues are served in turn, so that an address with very many
// connections delays only its own. A worker gets one at a time, so that one that hangs keeps at most one. The parent keeps
// the socket of a connection that is sent until the worker says that it has it, so that it can close the connection
// whatever happens to the worker. It does not send it to another worker then, because the first may have read from it.
import type { Socket } from "node:net";
import { FairQueue, type Turn } from "../../kernel/fair-queue.js";
import { addressKey, unmapAddress } from "../../kernel/ip-address.js";
import type { Logger } from "../../telemetry/logger.js";
import { createRejectionLog } from "../../transport/http/limits/admission.js";
import type { FromWorker, ToWorker } from "./messages.js";

/** When a worker is asked for a connection that it has not said to have, in milliseconds. */
const ASK_MS = 2_000;
/** How often it is checked which connections wait for too long, in milliseconds. */
const CHECK_MS = 250;
/** How often a connection is sent that does not reach a worker. */
const MAX_SENDS = 3;

/** A worker that takes connections. */
export interface Receiver {
  readonly number: number;
  /** Whether it serves. */
  readonly isReady: boolean;
  /** Sends a message with a socket, which stays open here. `onError` is called if it cannot be sent. */
  tell(message: ToWorker, socket?: Socket, onError?: () => void): void;
}

export interface ConnectionsDeps {
  /** How many an address may have. A worker that gets more of them answers health checks alone. */
  readonly limit: number;
  /** How many may wait for a worker; then the newest of the address with the most is closed. */
  readonly maxWaiting: number;
  /** How long one may wait until a worker has it, in milliseconds. */
  readonly maxWaitMs: number;
  readonly receivers: () => Iterable<Receiver>;
  /** Whether there is a worker, or will be one shortly. Where there is none connections are closed at once. */
  readonly canServe: () => boolean;
  readonly logger: Pick<Logger, "warn">;
  /** Returns whose queue a connection waits in; by its address, unless it is replaced in tests. */
  readonly keyOf?: (remoteAddress: string) => string;
}

/** A connection that waits for a worker. */
interface Waiting extends Turn {
  readonly socket: Socket;
  readonly remoteAddress: string;
  /** How often it was sent. */
  sends: number;
}

/** A connection that a worker has not said to have. */
interface Sent {
  readonly id: number;
  readonly connection: Waiting;
  readonly ask: NodeJS.Timeout;
}

/** What a worker has. */
interface Held {
  /** The addresses of its connections by their ids; undefined for one that is over the limit and does not count. */
  readonly open: Map<number, string | undefined>;
  /** The one that it is sent. */
  sent: Sent | undefined;
}

/** The connections that were accepted and have not ended. */
export class Connections {
  readonly #deps: ConnectionsDeps;
  readonly #waiting: FairQueue<Waiting>;
  readonly #perAddress = new Map<string, number>();
  readonly #held = new Map<Receiver, Held>();
  readonly #check = setInterval(() => this.#closeLate(), CHECK_MS).unref();
  readonly #logRefused = createRejectionLog(() => this.#refused);
  #onHandedOver: (() => void) | undefined;
  #lastId = 0;
  #refused = 0;

  constructor(deps: ConnectionsDeps) {
    this.#deps = deps;
    this.#waiting = new FairQueue(deps.maxWaiting);
  }

  /** How many were closed because no worker took them. */
  get refused(): number {
    return this.#refused;
  }

  /** How many are open. */
  get size(): number {
    let size = this.#waiting.size;
    for (const { open } of this.#held.values()) size += open.size;
    return size;
  }

  /** Adds one that was accepted, and of which nothing was read. */
  add(socket: Socket): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    socket.on("error", () => socket.destroy());
    const { keyOf = addressKey, maxWaitMs } = this.#deps;
    const startByMs = performance.now() + maxWaitMs;
    this.#wait({ key: keyOf(remoteAddress), startByMs, socket, remoteAddress, sends: 0 });
    this.dispatch();
  }

  /** Sends what waits, as far as workers take it. */
  dispatch(): void {
    while (this.#waiting.size > 0) {
      const receiver = this.#findReceiver();
      const connection = receiver && this.#waiting.take();
      if (receiver === undefined || connection === undefined) break;
      this.#send(connection, receiver);
    }
    if (this.#waiting.size > 0 && !this.#deps.canServe()) this.#refuseWaiting();
    this.#noteHandedOver();
  }

  /** Notes what a worker says of a connection that it was sent. */
  noteTaken(receiver: Receiver, { id, hasIt }: Pick<Extract<FromWorker, { kind: "taken" }>, "id" | "hasIt">): void {
    const held = this.#heldBy(receiver);
    const { sent } = held;
    if (sent?.id !== id) return;
    clearTimeout(sent.ask);
    held.sent = undefined;
    const { connection } = sent;
    if (hasIt) {
      // Closes the descriptor of this process. The connection goes on.
      connection.socket.destroy();
    } else {
      this.#forget(held, id);
      this.#deps.logger.warn({ worker: receiver.number }, "a connection did not reach its worker");
      if (connection.sends < MAX_SENDS && !connection.socket.destroyed) this.#wait(connection);
      else this.#refuse(connection);
    }
    this.dispatch();
  }

  /** Notes connections that a worker has closed. */
  noteClosed(receiver: Receiver, ids: readonly number[]): void {
    for (const id of ids) this.#forget(this.#heldBy(receiver), id);
  }

  /** Forgets a worker that has ended, and closes the connection on its way to it. Returns how many it had. */
  release(receiver: Receiver): number {
    const held = this.#heldBy(receiver);
    const count = held.open.size;
    if (held.sent !== undefined) {
      clearTimeout(held.sent.ask);
      this.#refuse(held.sent.connection);
    }
    for (const id of [...held.open.keys()]) this.#forget(held, id);
    this.#held.delete(receiver);
    this.dispatch();
    return count;
  }

  /** Resolves when workers have all connections that were accepted, at the latest when the longest may have waited. */
  handOver(): Promise<void> {
    return new Promise((resolve) => {
      this.#onHandedOver = resolve;
      this.#noteHandedOver();
    });
  }

  /** Closes those that no worker has. */
  close(): void {
    clearInterval(this.#check);
    this.#refuseWaiting();
    for (const { sent } of this.#held.values()) {
      clearTimeout(sent?.ask);
      sent?.connection.socket.destroy();
    }
  }

  #heldBy(receiver: Receiver): Held {
    const found = this.#held.get(receiver) ?? { open: new Map(), sent: undefined };
    this.#held.set(receiver, found);
    return found;
  }

  // The one with the fewest.
  #findReceiver(): Receiver | undefined {
    let found: Receiver | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const receiver of this.#deps.receivers()) {
      if (!receiver.isReady) continue;
      const { open, sent } = this.#heldBy(receiver);
      if (sent !== undefined || open.size >= fewest) continue;
      found = receiver;
      fewest = open.size;
    }
    return found;
  }

  #wait(connection: Waiting): void {
    const dropped = this.#waiting.push(connection);
    if (dropped !== undefined) this.#refuse(dropped);
  }

  #send(connection: Waiting, receiver: Receiver): void {
    const { socket } = connection;
    const address = addressKey(connection.remoteAddress);
    const isOverLimit = (this.#perAddress.get(address) ?? 0) >= this.#deps.limit;
    const id = ++this.#lastId;
    const held = this.#heldBy(receiver);
    held.open.set(id, isOverLimit ? undefined : address);
    if (!isOverLimit) this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    const ask = setTimeout(() => receiver.tell({ kind: "ask-taken", id }), ASK_MS);
    held.sent = { id, connection, ask };
    connection.sends++;
    receiver.tell({ kind: "connection", id, isOverLimit }, socket, () =>
      this.noteTaken(receiver, { id, hasIt: false }),
    );
  }

  #forget({ open }: Held, id: number): void {
    const address = open.get(id);
    open.delete(id);
    if (address === undefined) return;
    const count = this.#perAddress.get(address) ?? 0;
    if (count > 1) this.#perAddress.set(address, count - 1);
    else this.#perAddress.delete(address);
  }

  #closeLate(): void {
    const nowMs = performance.now();
    for (const connection of this.#waiting.expired(nowMs)) this.#refuse(connection);
    for (const { sent } of this.#held.values()) {
      if (sent === undefined || sent.connection.startByMs > nowMs || sent.connection.socket.destroyed) continue;
      // The worker may have a descriptor of it, so closing the one of this process would not end the connection.
      this.#count(sent.connection);
      sent.connection.socket.end(() => sent.connection.socket.destroy());
    }
    this.#noteHandedOver();
  }

  #refuseWaiting(): void {
    for (const connection of this.#waiting.expired(Number.POSITIVE_INFINITY)) this.#refuse(connection);
  }

  #refuse(connection: Waiting): void {
    this.#count(connection);
    // A reset costs no more packets, and the client learns at once that nothing was read.
    connection.socket.resetAndDestroy();
  }

  #count({ remoteAddress }: Waiting): void {
    this.#refused++;
    this.#logRefused((refused) => {
      const address = unmapAddress(remoteAddress);
      this.#deps.logger.warn({ refused, remoteAddress: address }, "connections were closed that no worker has taken");
    });
  }

  #noteHandedOver(): void {
    if (this.#onHandedOver === undefined || this.#waiting.size > 0) return;
    const isSending = [...this.#held.values()].some(
      ({ sent }) => sent !== undefined && !sent.connection.socket.destroyed,
    );
    if (isSending) return;
    this.#onHandedOver();
    this.#onHandedOver = undefined;
  }
}
