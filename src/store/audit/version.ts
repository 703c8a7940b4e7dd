// The version of the audit rows that this process writes (docs/adr/0006-audit-chain.md).
import type { Clock } from "../../kernel/time.js";
import type { Awaitable } from "../awaitable.js";
import { isOlder } from "../version.js";

/** Versions before this one know rows of version 1 alone. */
const FIRST_VERSION = "0.5.0";

/** A version of audit rows, see the column. */
export type AuditVersion = 1 | 2;

/**
 * Chooses the version of new audit rows. Up to 0.4 Arbor knows version 1 alone: it would seal a row of version 2
 * without its new members, and `verify` would reject the chain for good. So version 2 begins when no such Arbor may
 * open the database any more.
 *
 * @param oldestVersion the value of the setting; undefined where it is not set
 */
export function chooseAuditVersion(oldestVersion: string | undefined): AuditVersion {
  return oldestVersion === undefined || isOlder(oldestVersion, FIRST_VERSION) ? 1 : 2;
}

/** How often the setting is read again, in milliseconds. */
const REFRESH_MS = 5_000;

/** Follows the setting. It is only ever raised, so a node that has not read it yet writes rows that all nodes know. */
export interface AuditVersionWatch {
  /** The version as of the last read. Begins another read, without waiting for it, when one is due. */
  current(): AuditVersion;
  /** Reads the setting. */
  refresh(): Awaitable<void>;
}

/**
 * Creates the watch, whose version is 1 until the first read.
 *
 * @param readOldest reads the setting; where it fails, it is read again later
 */
export function watchAuditVersion(readOldest: () => Awaitable<string | undefined>, clock: Clock): AuditVersionWatch {
  let version: AuditVersion = 1;
  let readMs = Number.NEGATIVE_INFINITY;

  function choose(oldest: string | undefined): void {
    version = chooseAuditVersion(oldest);
  }

  function refresh(): Awaitable<void> {
    readMs = clock();
    try {
      const oldest = readOldest();
      return oldest instanceof Promise ? oldest.then(choose, () => {}) : choose(oldest);
    } catch {
      // The store was closed or the database is busy. The next read tries again.
    }
  }

  return {
    current() {
      if (version === 1 && Math.abs(clock() - readMs) >= REFRESH_MS) void refresh();
      return version;
    },
    refresh,
  };
}
