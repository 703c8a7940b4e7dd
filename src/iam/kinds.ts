// What errors call the resources of this domain.
import type { ResourceKind } from "../kernel/errors.js";

/** Identities. */
export const identityKind: ResourceKind = { noun: "identity", type: "iam.chainguard.dev/Identity" };
/** Roles. */
export const roleKind: ResourceKind = { noun: "role", type: "iam.chainguard.dev/Role" };
/** Role bindings. */
export const roleBindingKind: ResourceKind = { noun: "role binding", type: "iam.chainguard.dev/RoleBinding" };
