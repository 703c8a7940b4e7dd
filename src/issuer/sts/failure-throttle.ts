// Limits what can be made to be computed before anything is proven. Many callers
// share an address, such as the runners of a CI service: one that fails often is
// slowed down, and no credential that is good is ever refused for it.
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import { createSlots } from "../../outbound/slots.js";
import { createFailureCounter, type FailureLimit, isRejection } from "./failure-limiter.js";

/** Who calls, and whom the caller says it is. */
export interface Claimant {
  readonly remoteAddress: string | undefined;
  /** What the request names, such as the uid of an identity; empty where it names nothing. */
  readonly name: string;
}

/** How many failures pass at full speed. */
export interface FailureLimits {
  /** Of one name from one address. */
  readonly perName: FailureLimit;
  /** From one address, whatever is named; an address of IPv6 counts with its /64. */
  readonly perAddress: FailureLimit;
}

/** Slows down callers that fail often. */
export interface FailureThrottle {
  /**
   * Does `work`. A caller over its limit waits for one of two slots, at most 2 s, and a slot in which
   * `work` was refused stays taken for another 100 ms. Refusals are UNAUTHENTICATED, PERMISSION_DENIED,
   * INVALID_ARGUMENT and NOT_FOUND. A name that was let in from an address within the last ten minutes
   * is not slowed down by what others of that address do.
   *
   * @throws ApiError RESOURCE_EXHAUSTED when 40 are waiting or 2 s have passed; whatever `work` throws.
   */
  run<T>(claimant: Claimant, work: () => T | Promise<T>): Promise<T>;
  /** Waits in the same way before work that must not wait, as within a transaction, and takes a slot for 100 ms. */
  admit(claimant: Claimant): Promise<void>;
  /** Does such work: counts it, and does not wait. */
  count<T>(claimant: Claimant, work: () => T | Promise<T>): Promise<T>;
}

/** How many callers over their limit are served at once, and wait. */
const SLOTS = 2;
const WAITING = 40;
/** How long they wait at most, in milliseconds. */
const WAIT_MS = 2_000;
/** How long a slot stays taken after a refusal, in milliseconds: 20 a second, which 40 wait for 2 s. */
const HOLD_MS = 100;
/** How long a name that was let in is known by its address, in milliseconds. */
const PROVEN_MS = 10 * 60_000;
const MAX_PROVEN = 20_000;
/** Longer names are counted by their hash, so that each takes as little memory. */
const MAX_NAME = 100;

/** Creates a limiter that counts in memory, for a bounded number of addresses and names. */
export function createFailureThrottle({ perName, perAddress }: FailureLimits): FailureThrottle {
  const names = createFailureCounter(perName);
  const addresses = createFailureCounter(perAddress);
  const proven = new LRUCache<string, number>({ max: MAX_PROVEN });
  const isProven = (name: string) => performance.now() - (proven.get(name) ?? Number.NEGATIVE_INFINITY) < PROVEN_MS;
  const slots = createSlots({
    running: Number.POSITIVE_INFINITY,
    runningPerAccount: SLOTS,
    runningPerTarget: Number.POSITIVE_INFINITY,
    waiting: 10_000,
    waitingPerAccount: WAITING,
  });

  // What a caller is slowed down by: the account of slots, and for how long.
  function exhausted(address: string, name: string): { readonly account: string; readonly forMs: number } | undefined {
    const byName = names.exhaustedForMs(name);
    if (byName > 0) return { account: name, forMs: byName };
    const byAddress = isProven(name) ? 0 : addresses.exhaustedForMs(address);
    return byAddress > 0 ? { account: address, forMs: byAddress } : undefined;
  }

  // The function that ends it: after the hold when what was done was refused.
  async function enter(address: string, name: string): Promise<(isRefused: boolean) => void> {
    const over = exhausted(address, name);
    if (over === undefined) return () => {};
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), WAIT_MS);
    try {
      const giveBack = await slots.take(over.account, "", controller.signal);
      return (isRefused) => {
        if (isRefused) setTimeout(giveBack, HOLD_MS).unref();
        else giveBack();
      };
    } catch {
      throw resourceExhausted("too many refused requests", over.forMs);
    } finally {
      clearTimeout(timer);
    }
  }

  async function counted<T>(address: string, name: string, work: () => T | Promise<T>): Promise<T> {
    try {
      const result = await work();
      proven.set(name, performance.now());
      return result;
    } catch (error) {
      if (isRejection(error)) {
        names.add(name);
        addresses.add(address);
      }
      throw error;
    }
  }

  return {
    async run(claimant, work) {
      const { address, name } = keysOf(claimant);
      const leave = await enter(address, name);
      let refused = false;
      try {
        return await counted(address, name, work);
      } catch (error) {
        refused = isRejection(error);
        throw error;
      } finally {
        leave(refused);
      }
    },
    async admit(claimant) {
      const { address, name } = keysOf(claimant);
      (await enter(address, name))(true);
    },
    count(claimant, work) {
      const { address, name } = keysOf(claimant);
      return counted(address, name, work);
    },
  };
}

function keysOf({ remoteAddress, name }: Claimant): { readonly address: string; readonly name: string } {
  const address = addressKey(remoteAddress);
  const short = name.length <= MAX_NAME ? name : createHash("sha256").update(name).digest("base64url");
  return { address, name: `${address} ${short}` };
}
