// Refuses what would exceed a quota. The count is read outside the unit of work
// that creates: within it, all who create something in one organisation would
// write after reading the same counter, and lose against each other. So calls in
// flight at the same time may exceed a quota by as many as they are.
import { quotaExceeded } from "../kernel/errors.js";
import { limitsFor, type QuotaKind, type QuotaLimits, quotas } from "../kernel/quotas.js";
import type { Awaitable, Tx } from "../store/port.js";

/** What a call would add to what a quota limits. */
export interface Addition {
  readonly kind: QuotaKind;
  /** The root group of the organisation, or the person where the quota is a person's. */
  readonly ownerUid: string;
  /** How many things at most; 1 unless set. */
  readonly most?: number;
  /** How many exactly, where some of them may exist already; read only where `most` are too many. */
  readonly exact?: (tx: Tx) => Awaitable<number>;
}

/** The quotas of the installation. */
export interface Quotas {
  /** What the settings say; an organisation's own limits take their place. */
  readonly limits: QuotaLimits;

  /**
   * Makes sure that there is room for `addition`. To be called in a read, and for callers alone who
   * may create it: whether a quota is full is nobody else's to know.
   *
   * @throws ApiError RESOURCE_EXHAUSTED with QuotaFailure
   */
  requireRoom(tx: Tx, addition: Addition): Promise<void>;
}

/** Creates the quotas from what the settings say. */
export function createQuotas(limits: QuotaLimits): Quotas {
  async function requireRoom(tx: Tx, { kind, ownerUid, most = 1, exact }: Addition): Promise<void> {
    const { per, displayName } = quotas[kind];
    const own = per === "organisation" ? (await tx.groups.get(ownerUid))?.resourceLimits : undefined;
    const limit = limitsFor(own, limits)[kind];
    const used = await tx.usage.count(kind, ownerUid, limit);
    if (used + most <= limit) return;
    const more = exact === undefined ? most : await exact(tx);
    if (more === 0 || used + more <= limit) return;
    const [subject, owner] =
      per === "person" ? [`identity:${ownerUid}`, "a person"] : [`group:${ownerUid}`, "the organisation"];
    const rule = `${owner}'s limit of ${displayName} is ${limit}, and ${more} more would exceed it`;
    throw quotaExceeded(subject, kind, rule);
  }

  return { limits, requireRoom };
}
