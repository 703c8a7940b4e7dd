// The cache of other issuers' keys, partitioned by organisation: fetches of one organisation never evict the entries
// of another.
import type { UsableKeys } from "./jwks.js";

export interface IssuerAttempt {
  /** When it ended, in epoch milliseconds. */
  readonly atMs: number;
  /** What the token that caused it was to be verified with, such as the key that it names. */
  readonly sought: string;
}

export interface IssuerEntry {
  /** Its keys; undefined when they were never fetched. */
  readonly keys: UsableKeys | undefined;
  /** When the keys were fetched, in epoch milliseconds. */
  readonly fetchedMs: number;
  /** The last requests, the newest at the end. */
  readonly attempts: readonly IssuerAttempt[];
  /** Whether the last request failed. */
  readonly failed: boolean;
  /** Whether a token was verified with its keys. */
  readonly proven: boolean;
}

export interface IssuerCacheLimits {
  /**
   * Entries of one organisation: issuers that verified a token, issuers whose keys were fetched, and issuers that
   * failed.
   */
  readonly proven: number;
  readonly fetched: number;
  readonly failed: number;
  /** The size of all organisations together, in bytes. */
  readonly bytes: number;
}

const LIMITS: IssuerCacheLimits = { proven: 200, fetched: 50, failed: 200, bytes: 64 * 1024 * 1024 };

/** The size of an entry without its keys, in bytes. */
const ENTRY_BYTES = 1_024;

type Tier = "proven" | "fetched" | "failed";
/** The order of eviction. */
const TIERS: readonly Tier[] = ["failed", "fetched", "proven"];

/** A map keeps the order of insertion: a used entry moves to the end. */
type Partition = Record<Tier, Map<string, IssuerEntry>> & { bytes: number };

/** Caches entries by organisation and issuer, the most recently used ones. */
export type IssuerCache = ReturnType<typeof createIssuerCache>;

/**
 * Creates the cache. Within an organisation, an issuer that never verified a token evicts only issuers of the same
 * kind, because anybody can send unsigned tokens. When the cache exceeds its size, entries of the largest organisation
 * are evicted; those of the operator stay.
 */
export function createIssuerCache(limits: IssuerCacheLimits = LIMITS) {
  const operator = newPartition();
  const organisations = new Map<string, Partition>();
  let bytes = 0;

  function remove(partition: Partition, tier: Tier, issuer: string): void {
    const entry = partition[tier].get(issuer);
    if (entry === undefined) return;
    partition[tier].delete(issuer);
    partition.bytes -= bytesOf(entry);
    if (partition !== operator) bytes -= bytesOf(entry);
  }

  function removeOldest(partition: Partition, tier: Tier): boolean {
    const [issuer] = partition[tier].keys();
    if (issuer === undefined) return false;
    remove(partition, tier, issuer);
    return true;
  }

  function trim(): void {
    while (bytes > limits.bytes) {
      let [name, largest] = ["", undefined as Partition | undefined];
      for (const [uid, partition] of organisations) {
        if (partition.bytes > (largest?.bytes ?? 0)) [name, largest] = [uid, partition];
      }
      if (largest === undefined || !TIERS.some((tier) => removeOldest(largest, tier))) return;
      if (largest.bytes === 0) organisations.delete(name);
    }
  }

  return {
    /** How many entries there are. */
    size(): number {
      let size = 0;
      for (const partition of [operator, ...organisations.values()])
        for (const tier of TIERS) size += partition[tier].size;
      return size;
    },
    /** Gets an entry, and marks it as used. */
    find(organisation: string | undefined, issuer: string): IssuerEntry | undefined {
      const partition = organisation === undefined ? operator : organisations.get(organisation);
      if (partition === undefined) return undefined;
      for (const tier of TIERS.toReversed()) {
        const found = partition[tier].get(issuer);
        if (found === undefined) continue;
        partition[tier].delete(issuer);
        partition[tier].set(issuer, found);
        return found;
      }
      return undefined;
    },
    set(organisation: string | undefined, issuer: string, entry: IssuerEntry): void {
      let partition = organisation === undefined ? operator : organisations.get(organisation);
      if (partition === undefined) {
        partition = newPartition();
        organisations.set(organisation ?? "", partition);
      }
      for (const tier of TIERS) remove(partition, tier, issuer);
      const tier = entry.keys === undefined ? "failed" : entry.proven ? "proven" : "fetched";
      partition[tier].set(issuer, entry);
      partition.bytes += bytesOf(entry);
      if (partition !== operator) bytes += bytesOf(entry);
      if (partition[tier].size > limits[tier]) removeOldest(partition, tier);
      trim();
    },
  };
}

function newPartition(): Partition {
  return { proven: new Map(), fetched: new Map(), failed: new Map(), bytes: 0 };
}

function bytesOf({ keys, attempts }: IssuerEntry): number {
  return ENTRY_BYTES + (keys?.bytes ?? 0) + attempts.reduce((sum, { sought }) => sum + sought.length, 0);
}
