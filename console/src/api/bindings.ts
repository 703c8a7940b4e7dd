import type { RoleBinding } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";

/** How a binding's identity is called: a person by the e-mail address, as far as it is shown. */
export function nameOf({ identity }: RoleBinding): string {
  return identity?.email || identity?.name || identity?.subject || identity?.uid || "";
}
