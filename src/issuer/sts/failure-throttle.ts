// Limits the work that unauthenticated callers can cause. Many callers share an address, such as the runners of a CI
// service: callers that fail often are slowed down, and valid credentials are never rejected because of them.
import { LRUCache } from "lru-cache";
import { sha256 } from "../../kernel/digest.js";
import { resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import { createSlots } from "../../outbound/slots.js";
import { createFailureCounter, type FailureLimit, isFailedAttempt, type SharedFailures } from "./failure-limiter.js";

/** The address of a caller, and the identity that it claims. */
export interface Claimant {
  readonly remoteAddress: string | undefined;
  /** The uid in the request, such as that of an identity; empty where it has none. */
  readonly name: string;
}

/** The failures before callers are slowed down. */
export interface FailureLimits {
  /** For one name from one address. */
  readonly perName: FailureLimit;
  /** For one address; an IPv6 address counts with its /64. */
  readonly perAddress: FailureLimit;
}

/** How many callers over their limit are served at once, and how many may wait. */
const SLOTS = 2;
const WAITING = 40;
/** How long they may wait, in milliseconds. */
const WAIT_MS = 2_000;
/** How long a slot stays taken after a rejection, in milliseconds: 20 per second, so that 40 callers wait 2 s. */
const HOLD_MS = 100;
/** How long a name that succeeded is remembered with its address, in milliseconds. */
const PROVEN_MS = 10 * 60_000;
const MAX_PROVEN = 20_000;
/** Longer names are counted by their hash, so that each takes a bounded amount of memory. */
const MAX_NAME = 100;

/** Slows down callers that fail often. */
export type FailureThrottle = ReturnType<typeof createFailureThrottle>;

/** Creates a throttle that counts in memory, for a bounded number of addresses and names. */
export function createFailureThrottle({ perName, perAddress }: FailureLimits, shared?: SharedFailures) {
  const names = createFailureCounter(perName, shared && { ...shared, kind: `${shared.kind} by name` });
  const addresses = createFailureCounter(perAddress, shared && { ...shared, kind: `${shared.kind} by address` });
  // Created at the first success, because it allocates for all its entries at once.
  let proven: LRUCache<string, number> | undefined;
  const isProven = (name: string) => performance.now() - (proven?.get(name) ?? Number.NEGATIVE_INFINITY) < PROVEN_MS;
  const slots = createSlots({
    running: Number.POSITIVE_INFINITY,
    runningPerAccount: SLOTS,
    runningPerTarget: Number.POSITIVE_INFINITY,
    waiting: 10_000,
    waitingPerAccount: WAITING,
  });

  // The limit that the caller exceeds: its account of slots, and for how long.
  function findExhausted(
    address: string,
    name: string,
  ): { readonly account: string; readonly forMs: number } | undefined {
    const byName = names.msUntilReset(name);
    if (byName > 0) return { account: name, forMs: byName };
    const byAddress = isProven(name) ? 0 : addresses.msUntilReset(address);
    return byAddress > 0 ? { account: address, forMs: byAddress } : undefined;
  }

  // Returns the function that releases the slot: after the hold when the work was rejected.
  async function takeSlot(address: string, name: string): Promise<(wasRejected: boolean) => void> {
    const over = findExhausted(address, name);
    if (over === undefined) return () => {};
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), WAIT_MS);
    try {
      const releaseSlot = await slots.acquire(over.account, "", controller.signal);
      return (wasRejected) => {
        if (wasRejected) setTimeout(releaseSlot, HOLD_MS).unref();
        else releaseSlot();
      };
    } catch {
      throw resourceExhausted("too many refused requests", over.forMs, "rate");
    } finally {
      clearTimeout(timer);
    }
  }

  async function runCounted<T>(address: string, name: string, work: () => T | Promise<T>): Promise<T> {
    try {
      const result = await work();
      proven ??= new LRUCache({ max: MAX_PROVEN });
      proven.set(name, performance.now());
      return result;
    } catch (error) {
      if (isFailedAttempt(error)) {
        names.add(name);
        addresses.add(address);
      }
      throw error;
    }
  }

  return {
    /**
     * Does `work`. A caller over its limit waits at most 2 s for one of two slots, and after rejected work the slot
     * stays taken for another 100 ms. Rejected means UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT or NOT_FOUND, or
     * that a token has a key that could not be looked for.
     * A name that succeeded from an address within the last ten minutes is not slowed down by other names of that
     * address.
     *
     * @throws ApiError RESOURCE_EXHAUSTED when 40 callers are waiting or after 2 s; whatever `work` throws
     */
    async run<T>(claimant: Claimant, work: () => T | Promise<T>): Promise<T> {
      const { address, name } = buildKeys(claimant);
      const release = await takeSlot(address, name);
      let wasRejected = false;
      try {
        return await runCounted(address, name, work);
      } catch (error) {
        wasRejected = isFailedAttempt(error);
        throw error;
      } finally {
        release(wasRejected);
      }
    },
    /** Waits in the same way before work that must not wait, as in a transaction, and takes the slot for 100 ms. */
    async admit(claimant: Claimant): Promise<void> {
      const { address, name } = buildKeys(claimant);
      (await takeSlot(address, name))(true);
    },
    /** Does such work without waiting, and counts its failures. */
    count<T>(claimant: Claimant, work: () => T | Promise<T>): Promise<T> {
      const { address, name } = buildKeys(claimant);
      return runCounted(address, name, work);
    },
  };
}

function buildKeys({ remoteAddress, name }: Claimant): { readonly address: string; readonly name: string } {
  const address = addressKey(remoteAddress);
  const short = name.length <= MAX_NAME ? name : sha256(name).toString("base64url");
  return { address, name: `${address} ${short}` };
}
