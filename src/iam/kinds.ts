// What errors call the resources of this domain.
import type { ResourceKind } from "../kernel/errors.js";

/** Identities. */
export const identityKind: ResourceKind = { noun: "identity", type: "iam.chainguard.dev/Identity" };
/** Roles. */
export const roleKind: ResourceKind = { noun: "role", type: "iam.chainguard.dev/Role" };
/** Role bindings. */
export const roleBindingKind: ResourceKind = { noun: "role binding", type: "iam.chainguard.dev/RoleBinding" };
/** Identity providers. */
export const identityProviderKind: ResourceKind = {
  noun: "identity provider",
  type: "iam.chainguard.dev/IdentityProvider",
};
/** Account associations. */
export const accountAssociationKind: ResourceKind = {
  noun: "account association",
  type: "iam.chainguard.dev/AccountAssociation",
};
/** Group invites. */
export const groupInviteKind: ResourceKind = { noun: "group invite", type: "iam.chainguard.dev/GroupInvite" };
/** Mappings of directories' groups to roles. */
export const groupMappingKind: ResourceKind = {
  noun: "external group role mapping",
  type: "iam.chainguard.dev/ExternalGroupRoleMapping",
};
