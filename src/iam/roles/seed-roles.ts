import { builtinRoleUid } from "../../kernel/ids.js";
import type { Tx } from "../../store/port.js";
import { builtinRoles } from "./builtin-roles.js";
import { capabilitySetNamed } from "./capability-names.js";

/** Makes the stored built-in roles equal to those of this version. Their uids never change. */
export async function seedRoles(tx: Tx, nowMs: number): Promise<void> {
  for (const [roleName, names] of Object.entries(builtinRoles)) {
    const row = {
      uid: builtinRoleUid(roleName),
      groupUid: null,
      name: roleName,
      description: `${titleOf(roleName)} Role (built-in)`,
      capabilities: capabilitySetNamed(names),
      createTimeMs: nowMs,
      updateTimeMs: nowMs,
    };
    const stored = await tx.roles.get(row.uid);
    if (stored === undefined) await tx.roles.insert(row);
    else if (stored.description !== row.description || stored.capabilities !== row.capabilities) {
      await tx.roles.update(row.uid, row, nowMs);
    }
  }
}

// `registry.pull_token_creator` reads as `Registry Pull Token Creator`.
function titleOf(roleName: string): string {
  return roleName
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
}
