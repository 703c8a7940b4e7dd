// What is known of other issuers, kept apart for each organisation: what one
// causes to be fetched never takes the place of what another one needs.
import type { UsableKeys } from "./jwks.js";

/** What is known of an issuer. */
export interface IssuerEntry {
  /** Its keys; undefined when they could never be had. */
  readonly keys: UsableKeys | undefined;
  /** When the keys were fetched, in epoch milliseconds. */
  readonly fetchedMs: number;
  /** When it was last asked, in epoch milliseconds. */
  readonly attemptMs: number;
  /** Whether that failed. */
  readonly failed: boolean;
  /** Whether a token was verified with its keys. */
  readonly proven: boolean;
}

/** Keeps entries by organisation and issuer, those used last. */
export interface IssuerCache {
  /** The entry, which counts as used with this. */
  get(organisation: string | undefined, issuer: string): IssuerEntry | undefined;
  set(organisation: string | undefined, issuer: string, entry: IssuerEntry): void;
}

/** How many entries and how much memory are kept. */
export interface IssuerCacheLimits {
  /** Of one organisation: issuers of which a token was verified, whose keys were fetched, that failed. */
  readonly proven: number;
  readonly fetched: number;
  readonly failed: number;
  /** Of all organisations together, in bytes. */
  readonly bytes: number;
}

const LIMITS: IssuerCacheLimits = { proven: 200, fetched: 50, failed: 200, bytes: 64 * 1024 * 1024 };

/** What an entry occupies besides its keys, in bytes. */
const ENTRY_BYTES = 1_024;

type Tier = "proven" | "fetched" | "failed";
/** In the order in which they make room. */
const TIERS: readonly Tier[] = ["failed", "fetched", "proven"];

/** A map keeps its entries in order of insertion: an entry that is used goes to the end. */
type Partition = Record<Tier, Map<string, IssuerEntry>> & { bytes: number };

/**
 * Creates the cache. Within an organisation an issuer that nobody has proven anything with takes the
 * place of its like only, since anybody can send tokens that nobody signed. When all of it is too much,
 * the organisation that occupies most makes room; what the operator trusts always stays.
 */
export function createIssuerCache(limits: IssuerCacheLimits = LIMITS): IssuerCache {
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
    get(organisation, issuer) {
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
    set(organisation, issuer, entry) {
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

function bytesOf({ keys }: IssuerEntry): number {
  return ENTRY_BYTES + (keys?.bytes ?? 0);
}
