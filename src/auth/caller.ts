import { type CapabilitySet, holdsBit, unionOf } from "../kernel/capability-set.js";
import type { Principal } from "../kernel/principal.js";
import { isWithin, lineageOf, maximalOf } from "../kernel/uidp.js";
import type { AccessRow } from "../store/port.js";

/** A capability by the bit that stands for it in sets. */
export interface CapabilityBit {
  readonly bit: number;
}

/**
 * Who calls and what the caller may do, as read in the transaction of the call. A grant at a group
 * holds there and below it.
 */
export class Caller {
  readonly principal: Principal;
  readonly #needed: readonly CapabilityBit[];
  readonly #grants: readonly AccessRow[];

  constructor(principal: Principal, needed: readonly CapabilityBit[], grants: readonly AccessRow[]) {
    this.principal = principal;
    this.#needed = needed;
    this.#grants = grants;
  }

  /** The uid of the identity that calls. */
  get uid(): string {
    return this.principal.identityUid;
  }

  /** The same caller with other grants in view. */
  withGrants(grants: readonly AccessRow[]): Caller {
    return new Caller(this.principal, this.#needed, grants);
  }

  /** Whether the caller holds all of `capabilities` at `scope`, there or at any group above it. */
  holds(capabilities: readonly CapabilityBit[], scope: string): boolean {
    return capabilities.every(({ bit }) =>
      this.#grants.some(
        ({ groupUid, capabilities: set }) =>
          groupUid !== null && set !== null && isWithin(scope, groupUid) && holdsBit(set, bit),
      ),
    );
  }

  /** Whether the caller holds, at `scope`, all that the method it calls needs. */
  holdsNeeded(scope: string): boolean {
    return this.holds(this.#needed, scope);
  }

  /** All that the caller holds at `scope`, there or above it. */
  rightsAt(scope: string): CapabilitySet {
    return unionOf(
      this.#grants.flatMap(({ groupUid, capabilities }) =>
        groupUid !== null && capabilities !== null && isWithin(scope, groupUid) ? [capabilities] : [],
      ),
    );
  }

  /**
   * The highest groups at which the caller holds all that an unscoped method needs: what a list may
   * show lies within them.
   */
  visibleGroups(): string[] {
    const setsAt = new Map<string, CapabilitySet[]>();
    for (const { groupUid, capabilities } of this.#grants) {
      if (groupUid === null || capabilities === null) continue;
      const sets = setsAt.get(groupUid);
      if (sets) sets.push(capabilities);
      else setsAt.set(groupUid, [capabilities]);
    }
    const holdsAt = (groupUid: string) => {
      const sets = lineageOf(groupUid).flatMap((uid) => setsAt.get(uid) ?? []);
      return this.#needed.every(({ bit }) => sets.some((set) => holdsBit(set, bit)));
    };
    return maximalOf([...setsAt.keys()].filter(holdsAt));
  }
}
