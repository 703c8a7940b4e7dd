// Limits the streams without an end that a peer may have open.

import { resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";

/** The limits of open streams. */
export interface StreamLimits {
  readonly total: number;
  readonly perConnection: number;
  /** A /64 of IPv6 counts as one address. */
  readonly perAddress: number;
}

/** The peer of a stream. Streams of an undefined connection or address are not limited by it. */
export interface StreamPeer {
  /** The connection, unless many peers share it. */
  readonly connection: object | undefined;
  /** The address of the peer, if it is known. */
  readonly address: string | undefined;
}

/** Limits open streams. */
export interface StreamLimiter {
  /**
   * Counts one more stream of a peer until the returned function is called.
   *
   * @throws ApiError RESOURCE_EXHAUSTED when there are too many
   */
  take(peer: StreamPeer): () => void;
}

/**
 * Creates the limiter.
 *
 * @param what the name of the streams in errors, such as "watchers"
 */
export function createStreamLimiter(what: string, limits: StreamLimits): StreamLimiter {
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
