import { type CapabilitySet, hasBit, intersectionOf, unionOf } from "../../kernel/capability-set.js";
import type { Principal } from "../../kernel/principal.js";
import { isWithin, lineageOf, rootOf } from "../../kernel/uidp.js";
import type { AccessRow } from "../../store/iam/access.js";

/** A grant: capabilities at a group, and so below it. */
export interface Grant {
  readonly groupUid: string;
  readonly roleUid: string;
  readonly capabilities: CapabilitySet;
  /** When it ends, in epoch milliseconds; null: never. */
  readonly endTimeMs: number | null;
}

/**
 * Selects the grants among `rows` that count. For people of an organisation's own provider, these lie within that
 * organisation. Where the token is limited to groups, a grant at or above such a group counts at that group, and no
 * other grant counts.
 */
export function effectiveGrants(principal: Principal, rows: readonly AccessRow[]): readonly Grant[] {
  const grants = rows.filter(isGrant);
  const providerUid = rows[0]?.providerUid ?? null;
  const within = providerUid === null ? grants : grants.filter(({ groupUid }) => isInRootOf(providerUid, groupUid));
  return principal.limit === undefined ? within : limitGrants(within, principal.limit);
}

function isGrant(row: AccessRow): row is AccessRow & Grant {
  return row.groupUid !== null && row.roleUid !== null && row.capabilities !== null;
}

function isInRootOf(uid: string, groupUid: string): boolean {
  return rootOf(groupUid) === rootOf(uid);
}

function limitGrants(grants: readonly Grant[], { cap, scope }: NonNullable<Principal["limit"]>): readonly Grant[] {
  const scoped =
    scope === undefined
      ? grants
      : grants.flatMap(({ groupUid, roleUid, capabilities, endTimeMs }) =>
          findHighestWithin(groupUid, scope).map((uid) => ({ groupUid: uid, roleUid, capabilities, endTimeMs })),
        );
  return cap === undefined
    ? scoped
    : scoped.map(({ capabilities, ...grant }) => ({ ...grant, capabilities: intersectionOf(capabilities, cap) }));
}

// Where one group of the limit is a descendant of another, a grant above both counts at the higher one, which includes
// the lower.
function findHighestWithin(groupUid: string, scope: readonly string[]): string[] {
  const within = scope.filter((uid) => isWithin(uid, groupUid));
  return within.filter((uid) => !within.some((other) => other !== uid && isWithin(uid, other)));
}

/** A capability by its bit in sets. */
export interface CapabilityBit {
  readonly bit: number;
}

/**
 * Who calls and what the caller may do, as read in the transaction of the call. A grant at a group
 * holds there and below it.
 */
export class Caller {
  readonly principal: Principal;
  /** The organisation's own provider that a person came through; null for all others. */
  readonly providerUid: string | null;
  readonly #needed: readonly CapabilityBit[];
  readonly #rows: readonly AccessRow[];
  readonly #grants: readonly Grant[];
  #byGroup: ReadonlyMap<string, Grant[]> | undefined;
  /** The group of a pending binding among what is granted; undefined where there is none. */
  readonly pendingAt: string | undefined;

  /** @param rows what the store says of the caller; see {@link effectiveGrants} */
  constructor(principal: Principal, needed: readonly CapabilityBit[], rows: readonly AccessRow[]) {
    this.principal = principal;
    this.providerUid = rows[0]?.providerUid ?? null;
    this.#needed = needed;
    this.#rows = rows;
    this.#grants = effectiveGrants(principal, rows);
    this.pendingAt = findPendingGroup(rows);
  }

  /** The uid of the identity that calls. */
  get uid(): string {
    return this.principal.identityUid;
  }

  /** The same caller with other grants. */
  withGrants(rows: readonly AccessRow[]): Caller {
    return new Caller(this.principal, this.#needed, rows);
  }

  /** The same caller, as another method needs it. */
  withNeeded(needed: readonly CapabilityBit[]): Caller {
    return new Caller(this.principal, needed, this.#rows);
  }

  /** The grants that count, as the limit of the token leaves them. */
  get grants(): readonly Grant[] {
    return this.#grants;
  }

  /** Whether its token has no limit. */
  get unlimited(): boolean {
    return this.principal.limit === undefined;
  }

  /** Whether the caller holds all of `capabilities` at `scope`, there or at any group above it. */
  holds(capabilities: readonly CapabilityBit[], scope: string): boolean {
    if (this.#grants.length > MAX_SEARCHED) {
      const grants = this.#grantsAt(scope);
      return capabilities.every(({ bit }) => grants.some(({ capabilities: set }) => hasBit(set, bit)));
    }
    return capabilities.every(({ bit }) =>
      this.#grants.some(({ groupUid, capabilities: set }) => isWithin(scope, groupUid) && hasBit(set, bit)),
    );
  }

  /** Whether the caller holds, at `scope`, all that the method it calls needs. */
  holdsNeeded(scope: string): boolean {
    return this.holds(this.#needed, scope);
  }

  /** All that the caller holds at `scope`, there or above it. */
  rightsAt(scope: string): CapabilitySet {
    return unionOf(this.#grantsAt(scope).map(({ capabilities }) => capabilities));
  }

  /** What the caller holds at `scope`, there or above it, by grants that `counts` admits. */
  rightsBy(scope: string, counts: (grant: Grant) => boolean): CapabilitySet {
    const counted = this.#grantsAt(scope).filter(counts);
    return unionOf(counted.map(({ capabilities }) => capabilities));
  }

  /**
   * When the caller no longer holds all of those `capabilities` that it holds at `scope`, in epoch milliseconds, as its
   * grants are now; null where it will hold them for ever.
   */
  endOf(capabilities: readonly CapabilityBit[], scope: string): number | null {
    const grants = this.#grantsAt(scope);
    let endMs: number | null = null;
    for (const { bit } of capabilities) {
      const ends = grants.filter(({ capabilities: set }) => hasBit(set, bit)).map(({ endTimeMs }) => endTimeMs);
      if (ends.length === 0 || ends.includes(null)) continue;
      endMs = earlierOf(endMs, Math.max(...(ends as number[])));
    }
    return endMs;
  }

  /** When the first of its grants ends, in epoch milliseconds; null where none does. */
  get firstEndMs(): number | null {
    return this.#grants.reduce<number | null>((first, { endTimeMs }) => earlierOf(first, endTimeMs), null);
  }

  /**
   * The highest groups at which the caller holds all that an unscoped method needs: what a list may
   * show lies within them.
   */
  visibleGroups(): string[] {
    const visible: string[] = [];
    let last: string | undefined;
    // There may be thousands of grants. Sorted by uid, the ancestors of a group come before it, so one pass is enough.
    let above: Grant[] = [];
    for (const grant of sortGrants(this.#grants)) {
      const { groupUid } = grant;
      if (last !== undefined && isWithin(groupUid, last)) continue;
      above = above.filter((one) => isWithin(groupUid, one.groupUid));
      above.push(grant);
      if (!this.#needed.every(({ bit }) => above.some(({ capabilities }) => hasBit(capabilities, bit)))) continue;
      visible.push(groupUid);
      last = groupUid;
    }
    return visible;
  }

  // The grants at `scope` and above it. Few grants are searched one by one, many through a map.
  #grantsAt(scope: string): readonly Grant[] {
    if (this.#grants.length <= MAX_SEARCHED) {
      return this.#grants.filter(({ groupUid }) => isWithin(scope, groupUid));
    }
    this.#byGroup ??= groupGrants(this.#grants);
    const grantsAt = this.#byGroup;
    return lineageOf(scope).flatMap((uid) => grantsAt.get(uid) ?? []);
  }
}

/** The earlier one of two times of which null is never. */
export function earlierOf(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

function groupGrants(grants: readonly Grant[]): ReadonlyMap<string, Grant[]> {
  const byGroup = new Map<string, Grant[]>();
  for (const grant of grants) {
    const some = byGroup.get(grant.groupUid);
    if (some) some.push(grant);
    else byGroup.set(grant.groupUid, [grant]);
  }
  return byGroup;
}

/** Up to this many grants are searched without a map. */
const MAX_SEARCHED = 32;

function findPendingGroup(rows: readonly AccessRow[]): string | undefined {
  for (const { pending, groupUid } of rows) if (pending) return groupUid ?? undefined;
  return undefined;
}

function sortGrants(grants: readonly Grant[]): readonly Grant[] {
  const isAfter = (a: Grant, b: Grant) => a.groupUid > b.groupUid;
  const sorted = grants.every((one, i) => i === 0 || !isAfter(grants[i - 1] as Grant, one));
  return sorted ? grants : [...grants].sort((a, b) => (isAfter(a, b) ? 1 : isAfter(b, a) ? -1 : 0));
}
