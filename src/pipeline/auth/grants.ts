// Which of the grants that the store holds count for a caller.
import { type CapabilitySet, intersectionOf } from "../../kernel/capability-set.js";
import type { Principal } from "../../kernel/principal.js";
import { isWithin, rootOf } from "../../kernel/uidp.js";
import type { AccessRow } from "../../store/port.js";

/** A grant: capabilities at a group, and so below it. */
export interface Grant {
  readonly groupUid: string;
  readonly roleUid: string;
  readonly capabilities: CapabilitySet;
}

/**
 * The grants among `rows` that count. Of people who came through an organisation's own provider only
 * those within it do; and the limit of a token takes away, never gives: a grant above a group that
 * limits it counts at that group, one below it does not.
 */
export function effectiveGrants(principal: Principal, rows: readonly AccessRow[]): readonly Grant[] {
  const grants = rows.filter(isGrant);
  const providerUid = rows[0]?.providerUid ?? null;
  const within = providerUid === null ? grants : grants.filter(({ groupUid }) => inRootOf(providerUid, groupUid));
  return principal.limit === undefined ? within : limited(within, principal.limit);
}

function isGrant(row: AccessRow): row is AccessRow & Grant {
  return row.groupUid !== null && row.roleUid !== null && row.capabilities !== null;
}

function inRootOf(uid: string, groupUid: string): boolean {
  return rootOf(groupUid) === rootOf(uid);
}

function limited(grants: readonly Grant[], { cap, scope }: NonNullable<Principal["limit"]>): readonly Grant[] {
  const scoped =
    scope === undefined
      ? grants
      : grants.flatMap(({ groupUid, roleUid, capabilities }) =>
          highestWithin(groupUid, scope).map((uid) => ({ groupUid: uid, roleUid, capabilities })),
        );
  return cap === undefined
    ? scoped
    : scoped.map(({ capabilities, ...grant }) => ({ ...grant, capabilities: intersectionOf(capabilities, cap) }));
}

// Of two groups that limit a token and lie one below the other, what comes from above both counts at
// the higher one, and so at the lower as well.
function highestWithin(groupUid: string, scope: readonly string[]): string[] {
  const within = scope.filter((uid) => isWithin(uid, groupUid));
  return within.filter((uid) => !within.some((other) => other !== uid && isWithin(uid, other)));
}
