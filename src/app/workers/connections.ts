// The connections of all workers: each is counted for its address before a worker has it, so that the limit of an address
// holds for all of them together. A worker gets one at a time, so one that hangs keeps at most one waiting; the others go
// to the other workers.
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { addressKey } from "../../kernel/ip-address.js";
import type { FromWorker, ToWorker } from "./messages.js";

/** How many may wait for a worker. */
const MAX_WAITING = 4_096;
/** When a worker is asked for a connection that it has not said to have, in milliseconds. */
const ASK_MS = 2_000;

/** A worker that takes connections. */
export interface Receiver {
  readonly number: number;
  readonly child: ChildProcess;
  isReady: boolean;
}

export interface ConnectionsDeps {
  /** How many an address may have. A worker that gets more of them answers health checks alone. */
  readonly limit: number;
  readonly receivers: () => Iterable<Receiver>;
  /** Called with the number of a worker that did not get a connection. */
  readonly onLost: (worker: number) => void;
}

/** What a worker has. */
interface Held {
  /** The addresses of its connections by their ids; undefined for one that is over the limit and does not count. */
  readonly open: Map<number, string | undefined>;
  /** The one that it is sent, until it says that it has it. */
  sending: NodeJS.Timeout | undefined;
}

/** Creates the connections, of which there are none. */
export function createConnections({ limit, receivers, onLost }: ConnectionsDeps) {
  const waiting: Socket[] = [];
  const perAddress = new Map<string, number>();
  const held = new Map<Receiver, Held>();
  let lastId = 0;

  function heldBy(receiver: Receiver): Held {
    const found = held.get(receiver) ?? { open: new Map(), sending: undefined };
    held.set(receiver, found);
    return found;
  }

  function findReceiver(): Receiver | undefined {
    let found: Receiver | undefined;
    for (const one of receivers()) {
      if (!one.isReady || !one.child.connected || heldBy(one).sending !== undefined) continue;
      if (found === undefined || heldBy(one).open.size < heldBy(found).open.size) found = one;
    }
    return found;
  }

  function dispatch(): void {
    while (waiting.length > 0) {
      const receiver = findReceiver();
      if (receiver === undefined) return;
      send(waiting.shift() as Socket, receiver);
    }
  }

  function send(socket: Socket, receiver: Receiver): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const address = addressKey(remoteAddress);
    const isOverLimit = (perAddress.get(address) ?? 0) >= limit;
    const id = ++lastId;
    const { child } = receiver;
    const worker = heldBy(receiver);
    worker.open.set(id, isOverLimit ? undefined : address);
    if (!isOverLimit) perAddress.set(address, (perAddress.get(address) ?? 0) + 1);
    worker.sending = setTimeout(() => child.send({ kind: "ask-taken", id } satisfies ToWorker, () => {}), ASK_MS);
    child.send({ kind: "connection", id, isOverLimit } satisfies ToWorker, socket, (error) => {
      if (error === null) return;
      socket.destroy();
      noteTaken(receiver, { id, hasIt: false });
    });
  }

  function noteTaken(receiver: Receiver, { id, hasIt }: Pick<Extract<FromWorker, { kind: "taken" }>, "id" | "hasIt">) {
    const worker = heldBy(receiver);
    clearTimeout(worker.sending);
    worker.sending = undefined;
    if (!hasIt && worker.open.has(id)) {
      onLost(receiver.number);
      forget(worker, id);
    }
    dispatch();
  }

  function forget({ open }: Held, id: number): void {
    const address = open.get(id);
    open.delete(id);
    if (address === undefined) return;
    const count = perAddress.get(address) ?? 0;
    if (count > 1) perAddress.set(address, count - 1);
    else perAddress.delete(address);
  }

  return {
    /** Adds one that was accepted, and of which nothing was read. */
    add(socket: Socket): void {
      socket.on("error", () => socket.destroy());
      if (waiting.length >= MAX_WAITING) socket.destroy();
      else waiting.push(socket);
      dispatch();
    },
    /** Hands over what waits, as far as workers take it. */
    dispatch,
    noteTaken,
    noteClosed(receiver: Receiver, ids: readonly number[]): void {
      for (const id of ids) forget(heldBy(receiver), id);
    },
    /** Forgets a worker that has ended; returns how many connections it had. */
    release(receiver: Receiver): number {
      const worker = heldBy(receiver);
      const count = worker.open.size;
      clearTimeout(worker.sending);
      for (const id of [...worker.open.keys()]) forget(worker, id);
      held.delete(receiver);
      return count;
    },
    /** How many are open. */
    count(): number {
      let count = waiting.length;
      for (const { open } of held.values()) count += open.size;
      return count;
    },
    /** Cuts those that wait. */
    cutWaiting(): void {
      for (const socket of waiting.splice(0)) socket.destroy();
    },
  };
}
