// How many streams that stay open without an end one peer may have.

import { resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";

/** How many there may be. */
export interface StreamShareLimits {
  readonly total: number;
  readonly perConnection: number;
  /** A network of 64 bits counts as one address of IPv6. */
  readonly perAddress: number;
}

/** Whose stream it is. What is undefined is not counted. */
export interface StreamPeer {
  /** The connection, unless it is one that many peers share. */
  readonly connection: object | undefined;
  /** The peer's address, unless it is not known. */
  readonly address: string | undefined;
}

/** Counts open streams. */
export interface StreamShares {
  /**
   * Counts one more stream of a peer until the returned function is called.
   *
   * @throws ApiError RESOURCE_EXHAUSTED when one more is too many.
   */
  take(peer: StreamPeer): () => void;
}

/** Creates the counters. @param what the streams, as errors call them: "watchers" */
export function createStreamShares(what: string, limits: StreamShareLimits): StreamShares {
  let total = 0;
  const connections = new Map<object, number>();
  const addresses = new Map<string, number>();

  return {
    take({ connection, address }) {
      const key = address === undefined ? undefined : addressKey(address);
      if (total >= limits.total) throw resourceExhausted(`there are ${limits.total} ${what}`, undefined, "streams");
      assertRoom(connections, connection, limits.perConnection, `this connection has ${limits.perConnection} ${what}`);
      assertRoom(addresses, key, limits.perAddress, `this address has ${limits.perAddress} ${what}`);
      total++;
      add(connections, connection, 1);
      add(addresses, key, 1);
      let taken = true;
      return () => {
        if (!taken) return;
        taken = false;
        total--;
        add(connections, connection, -1);
        add(addresses, key, -1);
      };
    },
  };
}

function assertRoom<K>(counts: ReadonlyMap<K, number>, key: K | undefined, limit: number, problem: string): void {
  if (key !== undefined && (counts.get(key) ?? 0) >= limit) throw resourceExhausted(problem, undefined, "streams");
}

function add<K>(counts: Map<K, number>, key: K | undefined, by: number): void {
  if (key === undefined) return;
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
