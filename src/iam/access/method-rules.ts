// What methods require of their callers besides or in place of the capabilities that they declare, in words: the handlers
// of these methods authorize themselves. docs/access.md has the same list.
import type { DescMethod } from "@bufbuild/protobuf";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { TrustService } from "#gen/arbor/trust/v1/trust_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { Identities as EventIdentities } from "#gen/chainguard/platform/events/identities_pb.js";
import { GroupAccountAssociations } from "#gen/chainguard/platform/iam/account_associations_pb.js";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { Identities } from "#gen/chainguard/platform/iam/identity_pb.js";
import { IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import { AccountAssociationsService } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { OverlayBindingsService } from "#gen/chainguard/platform/registry/v2beta1/overlay_bindings_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { Vulnerabilities } from "#gen/chainguard/platform/registry/vulnerabilities_pb.js";
import { VersionsService } from "#gen/chainguard/platform/versions/v2beta1/versions_pb.js";
import { Advisories } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";

/** A rule, and the methods that have it: those of version 2beta1 stand for version 2 as well. */
export interface MethodRule {
  readonly rule: string;
  readonly methods: readonly DescMethod[];
}

export const methodRules: readonly MethodRule[] = [
  {
    rule: "below a group, the caller needs `groups.create` there; an organisation is created by people who are allowed to",
    methods: [GroupsService.method.createGroup, Groups.method.create],
  },
  {
    rule: "it is about the organisation of the caller's e-mail domain",
    methods: [
      GroupsService.method.lookupGroup,
      GroupsService.method.requestGroupAccess,
      GroupsService.method.checkEligibility,
      Groups.method.lookupGroup,
      Groups.method.requestGroupAccess,
      Groups.method.checkEligibility,
    ],
  },
  {
    rule: "the caller needs all that the role grants, where it grants it; owners may also grant the roles of advisories",
    methods: [
      RoleBindingsService.method.createRoleBinding,
      RoleBindingsService.method.batchCreateRoleBindings,
      RoleBindings.method.create,
      RoleBindings.method.createBatch,
      TemporaryBindingsService.method.createTemporaryBinding,
      GroupInvitesService.method.createGroupInvite,
      GroupInvitesService.method.updateGroupInvite,
      GroupInvites.method.create,
      IdentityProvidersService.method.createIdentityProvider,
      IdentityProvidersService.method.updateIdentityProvider,
      IdentityProviders.method.create,
      IdentityProviders.method.update,
      ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping,
      ExternalGroupRoleMappings.method.create,
    ],
  },
  {
    rule: "the caller needs all rights of an owner in the root group",
    methods: [TrustService.method.setIssuerGuard, TrustService.method.removeIssuerGuard],
  },
  {
    rule: "to change how people sign in, the caller needs all rights of an owner",
    methods: [IdentityProvidersService.method.updateIdentityProvider, IdentityProviders.method.update],
  },
  {
    rule: "with a source, the caller must be able to pull from it",
    methods: [
      ReposService.method.createRepo,
      ReposService.method.updateRepo,
      Registry.method.createRepo,
      Registry.method.updateRepo,
    ],
  },
  {
    rule: "the caller needs `registry.overlays.list` at the overlay that it names",
    methods: [OverlayBindingsService.method.createOverlayBinding],
  },
  {
    rule: "a review, which is any state but PENDING, needs `advisories.approve`",
    methods: [Advisories.method.create, Advisories.method.createAdvisoryEvent, Advisories.method.updateAdvisoryEvent],
  },
  {
    rule: "the caller needs all that the new role grants; a binding to a role of the operator stays as it is",
    methods: [RoleBindingsService.method.updateRoleBinding, RoleBindings.method.update],
  },
  {
    rule: "for a later end, or none, the caller needs all that the role grants until then; a binding to a role of the operator keeps its end",
    methods: [TemporaryBindingsService.method.setBindingEnd],
  },
  {
    rule: "a binding to a role of the operator is deleted by the operator only",
    methods: [RoleBindingsService.method.deleteRoleBinding, RoleBindings.method.delete],
  },
  {
    rule: "the caller needs the capabilities of the role in its group",
    methods: [RolesService.method.createRole, RolesService.method.updateRole, Roles.method.create, Roles.method.update],
  },
  {
    rule: "everybody sees built-in roles; the caller needs `roles.list` at the group of another role",
    methods: [RolesService.method.getRole],
  },
  {
    rule: "to change how the identity is assumed, the caller needs all rights of the identity",
    methods: [IdentitiesService.method.updateIdentity, Identities.method.update, TrustService.method.setConditions],
  },
  {
    rule: "the caller needs all rights of the service principals that it names",
    methods: [
      AccountAssociationsService.method.createAccountAssociation,
      AccountAssociationsService.method.updateAccountAssociation,
      GroupAccountAssociations.method.create,
      GroupAccountAssociations.method.update,
    ],
  },
  {
    rule: "open to all callers: the uid follows from issuer and subject",
    methods: [IdentitiesService.method.lookupIdentity, Identities.method.lookup],
  },
  {
    rule: "it is about the caller itself",
    methods: [
      IdentitiesService.method.updateIdentityMetadata,
      EventIdentities.method.create,
      EventIdentities.method.updateMetadata,
    ],
  },
  {
    rule: "it is about the caller itself, whose token must not be limited",
    methods: [
      Auth.method.delete,
      BindingsService.method.listBindings,
      BindingsService.method.acceptBinding,
      BindingsService.method.dropBinding,
      SessionsService.method.listSessions,
      SessionsService.method.revokeSession,
    ],
  },
  {
    rule: "an event is NOT_FOUND where the caller lacks the capability at what was changed",
    methods: [AuditService.method.getEvent],
  },
  {
    rule: "the caller needs the capability at the repo that it names, or at any group",
    methods: [
      Registry.method.listEolTags,
      Registry.method.getPackageVersionMetadata,
      Registry.method.listBuildReports,
      Registry.method.getBuildStatus,
      Vulnerabilities.method.listVulnReports,
      Vulnerabilities.method.getRawVulnReport,
      Vulnerabilities.method.listVulnCountReports,
      Vulnerabilities.method.listCumulativeVulnCountReports,
      VersionsService.method.getProject,
    ],
  },
  {
    rule: "it is about the token of the caller",
    methods: [Auth.method.validate],
  },
  {
    rule: "it is not served, because an organisation needs an owner",
    methods: [GroupInvites.method.createWithGroup],
  },
  {
    rule: "about another identity, the caller needs `role_bindings.list` at the resource",
    methods: [AccessService.method.check, AccessService.method.explain],
  },
  {
    rule: "the caller needs `role_bindings.list` at the resource",
    methods: [AccessService.method.listSubjects],
  },
  {
    rule: "of another identity it shows what is in groups where the caller has `role_bindings.list`",
    methods: [AccessService.method.listAccess],
  },
  {
    rule: "it shows what is in groups where the caller has `groups.list`, `identity.list` or `repo.list`",
    methods: [AccessService.method.searchNames],
  },
  {
    rule: "it shows what the lists of the caller show",
    methods: [AccessService.method.find],
  },
];

const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}.${name}`;
const byName = new Map<string, string[]>();
for (const { rule, methods } of methodRules) {
  for (const name of methods.map(nameOf)) byName.set(name, [...(byName.get(name) ?? []), rule]);
}

/** The rules of a method as one text; empty where it has none. */
export function findMethodRule(method: DescMethod): string {
  return (byName.get(nameOf(method).replace(".v2.", ".v2beta1.")) ?? []).join("; ");
}
