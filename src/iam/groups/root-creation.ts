import { permissionDenied } from "../../kernel/errors.js";
import { ANONYMOUS_UID, builtinRoleUid } from "../../kernel/ids.js";
import type { UnaryCall } from "../../pipeline/call.js";

/** Who may create root groups: people, those who own one already, or nobody. */
export type RootCreation = "users" | "owners" | "off";

const owner = builtinRoleUid("owner");

/**
 * Makes sure that the caller may create a root group. Identities that lie in a group may never: they
 * are workloads, and whoever assumes them would gain an organisation nobody answers for. Nor may people
 * who came through another organisation's provider, nor anybody with a token that is good for less.
 *
 * @throws ApiError PERMISSION_DENIED
 */
export async function requireRootCreation(rule: RootCreation, { caller, tx }: UnaryCall): Promise<void> {
  const isPerson = !caller.uid.includes("/") && caller.uid !== ANONYMOUS_UID && caller.providerUid === null;
  if (!caller.unlimited) throw permissionDenied("creation of root groups");
  if (isPerson && rule === "users") return;
  if (isPerson && rule === "owners" && (await tx.roleBindings.holdsAtRoot(caller.uid, owner))) return;
  throw permissionDenied("creation of root groups");
}
