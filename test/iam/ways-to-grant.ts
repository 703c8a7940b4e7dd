// Every way of the API to give somebody a role, in all versions.
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { RoleBindingsService as StableRoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { personUid, randomIds } from "../../src/kernel/ids.js";

/** A call of any method. */
export type Attempt = readonly [method: DescMethodUnary, request: object];

/** What the ways need: the role, and where it is granted. */
export interface GrantTarget {
  readonly group: string;
  readonly role: string;
  /** An identity provider of the group. */
  readonly provider: string;
  /** Creates a binding of another role at the group; returns its uid. */
  readonly binding: () => Promise<string>;
}

/** The configuration of an identity provider. */
export const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "secret" };

const ttl = { seconds: 60n };

/** The uid of somebody who is nobody yet. */
export const person = () => personUid("i", randomIds.newId());

/** The ways, by name. */
export const waysToGrant: readonly (readonly [
  name: string,
  attempt: (target: GrantTarget) => Promise<Attempt> | Attempt,
])[] = [
  [
    "a binding",
    ({ group, role }) => [
      RoleBindingsService.method.createRoleBinding,
      { parent: group, roleBinding: { identityUid: person(), roleUid: role } },
    ],
  ],
  [
    "a binding of the stable version",
    ({ group, role }) => [
      StableRoleBindingsService.method.createRoleBinding,
      { parent: group, roleBinding: { identityUid: person(), roleUid: role } },
    ],
  ],
  [
    "a binding of version 1",
    ({ group, role }) => [RoleBindings.method.create, { parent: group, roleBinding: { identity: person(), role } }],
  ],
  [
    "a batch",
    ({ group, role }) => [
      RoleBindingsService.method.batchCreateRoleBindings,
      { parent: group, requests: [{ roleBinding: { identityUid: person(), roleUid: role } }] },
    ],
  ],
  [
    "the role of a batch",
    ({ group, role }) => [
      RoleBindingsService.method.batchCreateRoleBindings,
      { parent: group, roleUid: role, requests: [{ roleBinding: { identityUid: person() } }] },
    ],
  ],
  [
    "a batch of version 1",
    ({ group, role }) => [
      RoleBindings.method.createBatch,
      { parent: group, roleBindings: [{ identity: person(), role }] },
    ],
  ],
  [
    "the update of a binding",
    async ({ role, binding }) => [
      RoleBindingsService.method.updateRoleBinding,
      { roleBinding: { uid: await binding(), roleUid: role }, updateMask: { paths: ["role_uid"] } },
    ],
  ],
  [
    "the update of a binding of version 1",
    async ({ role, binding }) => [RoleBindings.method.update, { id: await binding(), identity: person(), role }],
  ],
  [
    "an invite",
    ({ group, role }) => [
      GroupInvitesService.method.createGroupInvite,
      { parent: group, groupInvite: { roleUid: role, ttl } },
    ],
  ],
  ["an invite of version 1", ({ group, role }) => [GroupInvites.method.create, { group: group, role, ttl }]],
  [
    "the default role of a new provider",
    ({ group, role }) => [
      IdentityProvidersService.method.createIdentityProvider,
      {
        parent: group,
        identityProvider: { name: "x", defaultRole: role, configuration: { case: "oidc", value: oidc } },
      },
    ],
  ],
  [
    "the default role of a provider",
    ({ role, provider }) => [
      IdentityProvidersService.method.updateIdentityProvider,
      { identityProvider: { uid: provider, defaultRole: role }, updateMask: { paths: ["default_role"] } },
    ],
  ],
  [
    "the default role of a provider of version 1",
    ({ group, role }) => [
      IdentityProviders.method.create,
      {
        parentId: group,
        identityProvider: { name: "x", defaultRole: role, configuration: { case: "oidc", value: oidc } },
      },
    ],
  ],
  [
    "a mapping",
    ({ group, role, provider }) => [
      ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping,
      { parent: provider, externalGroupRoleMapping: { externalGroupId: "x", roleUid: role, scope: group } },
    ],
  ],
  [
    "a mapping of version 1",
    ({ group, role, provider }) => [
      ExternalGroupRoleMappings.method.create,
      { parentId: provider, mapping: { externalGroupId: "x", roleUidp: role, scope: group } },
    ],
  ],
];
