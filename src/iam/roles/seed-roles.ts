import { getOption, hasOption } from "@bufbuild/protobuf";
import { bit, CapabilitySchema, name } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { type CapabilitySet, capabilitySetOf } from "../../kernel/capability-set.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import type { Tx } from "../../store/port.js";
import { builtinRoles } from "./builtin-roles.js";

const bitByName = new Map(
  CapabilitySchema.values
    .filter((value) => hasOption(value, bit))
    .map((value) => [getOption(value, name), getOption(value, bit)]),
);

/** The set of the capabilities with these dotted names; throws TypeError for a name that does not exist. */
export function capabilitySetNamed(names: readonly string[]): CapabilitySet {
  return capabilitySetOf(
    names.map((one) => {
      const found = bitByName.get(one);
      if (found === undefined) throw new TypeError(`there is no capability ${one}`);
      return found;
    }),
  );
}

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
    if (stored?.description !== row.description || stored.capabilities !== row.capabilities) await tx.roles.put(row);
  }
}

// `registry.pull_token_creator` reads as `Registry Pull Token Creator`.
function titleOf(roleName: string): string {
  return roleName
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
}
