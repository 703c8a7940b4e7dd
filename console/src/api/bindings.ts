import type { RoleBinding } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";

/** How a binding says that its identity is called: a person by the e-mail address. Undefined where it says only the uid. */
export function findName({ identity }: RoleBinding): string | undefined {
  return identity?.email || identity?.name || identity?.subject || undefined;
}
