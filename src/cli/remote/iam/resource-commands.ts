// The resources of `arbor iam`, with their methods and the columns of their lists. Flags, requests and responses follow from
// the descriptors.
import type { DescField, DescMessage, DescMethodUnary, JsonValue } from "@bufbuild/protobuf";
import { AccountAssociationsService } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { TermsService } from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import type { ListColumn } from "../../output/format.js";
import { createColumn } from "./columns.js";
import { findLastSeen } from "./last-seen.js";

export type Verb = "list" | "get" | "create" | "update" | "delete";

/** The commands of one kind of resource. */
export interface ResourceCommand {
  /** The name on the command line. */
  readonly name: string;
  /** The words for one resource, such as `role binding`. */
  readonly singular: string;
  readonly methods: Readonly<Partial<Record<Verb, DescMethodUnary>>>;
  /** The methods that are none of the verbs. */
  readonly actions?: readonly ActionCommand[];
  /** The verb that creates one, if it is not `create`. */
  readonly createAlias?: string;
  /** The columns of a list; none without one. */
  readonly columns?: readonly ListColumn[];
  /** A note before a deletion, in full sentences. */
  readonly deletionNote?: string;
  /** Whether `create` says which others in the group have the name already. */
  readonly warnsOfNamesakes?: true;
  /** Whether tables show the redirect URI, which is no field. */
  readonly hasRedirectUri?: true;
}

/** The command of a method that is none of the verbs. */
export interface ActionCommand {
  /** The name on the command line. */
  readonly name: string;
  readonly method: DescMethodUnary;
  readonly description: string;
  /** The names of the fields that are arguments: the required ones that have one value, unless given. */
  readonly args?: readonly string[];
  /** The name of the field with a resource, whose fields have flags without a prefix, and which `--file` sets. */
  readonly resource?: string;
  /** The columns of the list that the response has. */
  readonly columns?: readonly ListColumn[];
  /** Whether it asks for a confirmation, because it cannot be undone. */
  readonly destructive?: true;
  /** The method that gets what the uid in its arguments is of, whose name the question shows. */
  readonly describe?: DescMethodUnary;
}

const uid = createColumn("UID", "uid");
const name = createColumn("NAME", "name");
const description = createColumn("DESCRIPTION", "description", true);
const created = createColumn("CREATED", "createTime");
const roleBindingColumns = [
  uid,
  createColumn("IDENTITY", "identity.uid"),
  createColumn("IDENTITY NAME", "identity.name"),
  createColumn("ROLE", "role.name"),
  createColumn("GROUP", "group.name"),
];
const groupMappingColumns = [
  uid,
  createColumn("EXTERNAL GROUP", "externalGroupId"),
  createColumn("ROLE", "roleUid"),
  createColumn("SCOPE", "scope"),
];

/** The resources in the order of the help. */
export const resourceCommands: readonly ResourceCommand[] = [
  {
    name: "groups",
    singular: "group",
    methods: {
      list: GroupsService.method.listGroups,
      get: GroupsService.method.getGroup,
      create: GroupsService.method.createGroup,
      update: GroupsService.method.updateGroup,
      delete: GroupsService.method.deleteGroup,
    },
    actions: [
      {
        name: "lookup",
        method: GroupsService.method.lookupGroup,
        description: "find the organisation of your e-mail address's domain",
      },
      {
        name: "request-access",
        method: GroupsService.method.requestGroupAccess,
        description: "ask for access to an organisation",
      },
      {
        name: "check-eligibility",
        method: GroupsService.method.checkEligibility,
        description: "print whether `lookup` may find an organisation for you",
      },
    ],
    columns: [uid, name, description, created],
    warnsOfNamesakes: true,
  },
  {
    name: "identities",
    singular: "identity",
    methods: {
      list: IdentitiesService.method.listIdentities,
      get: IdentitiesService.method.getIdentity,
      create: IdentitiesService.method.createIdentity,
      update: IdentitiesService.method.updateIdentity,
      delete: IdentitiesService.method.deleteIdentity,
    },
    actions: [
      {
        name: "lookup",
        method: IdentitiesService.method.lookupIdentity,
        description: "find the identity that a token of another issuer assumes",
      },
      {
        name: "update-metadata",
        method: IdentitiesService.method.updateIdentityMetadata,
        description: "store what you say about yourself",
        resource: "identity_metadata",
      },
    ],
    columns: [
      uid,
      name,
      { title: "ASSUMED BY", cell: present("claimMatch", "staticKeys", "awsIdentity", "servicePrincipal") },
      { ...createColumn("LAST SEEN", "lastSeenTime"), cell: findLastSeen },
      description,
    ],
    warnsOfNamesakes: true,
  },
  {
    name: "roles",
    singular: "role",
    methods: {
      list: RolesService.method.listRoles,
      get: RolesService.method.getRole,
      create: RolesService.method.createRole,
      update: RolesService.method.updateRole,
      delete: RolesService.method.deleteRole,
    },
    columns: [
      uid,
      name,
      { title: "CAPABILITIES", path: "capabilities", cell: (row) => String(length(row.capabilities)) },
      description,
    ],
  },
  {
    name: "role-bindings",
    singular: "role binding",
    methods: {
      list: RoleBindingsService.method.listRoleBindings,
      get: RoleBindingsService.method.getRoleBinding,
      create: RoleBindingsService.method.createRoleBinding,
      update: RoleBindingsService.method.updateRoleBinding,
      delete: RoleBindingsService.method.deleteRoleBinding,
    },
    actions: [
      {
        name: "batch-create",
        method: RoleBindingsService.method.batchCreateRoleBindings,
        description: "create up to 25 role bindings, all or none",
        columns: roleBindingColumns,
      },
    ],
    columns: roleBindingColumns,
  },
  {
    name: "identity-providers",
    singular: "identity provider",
    methods: {
      list: IdentityProvidersService.method.listIdentityProviders,
      get: IdentityProvidersService.method.getIdentityProvider,
      create: IdentityProvidersService.method.createIdentityProvider,
      update: IdentityProvidersService.method.updateIdentityProvider,
      delete: IdentityProvidersService.method.deleteIdentityProvider,
    },
    actions: [
      {
        name: "generate-scim-token",
        method: IdentityProvidersService.method.generateScimToken,
        description: "create the token with which an identity provider provisions people, and print it once",
      },
      {
        name: "regenerate-scim-token",
        method: IdentityProvidersService.method.regenerateScimToken,
        description: "replace the token, which is then rejected, and print the new one once",
        destructive: true,
        describe: IdentityProvidersService.method.getIdentityProvider,
      },
      {
        name: "revoke-scim-token",
        method: IdentityProvidersService.method.revokeScimToken,
        description: "revoke the token",
        destructive: true,
        describe: IdentityProvidersService.method.getIdentityProvider,
      },
      {
        name: "set-scim-enabled",
        method: IdentityProvidersService.method.setScimEnabled,
        description: "enable or disable provisioning",
      },
    ],
    columns: [
      uid,
      name,
      createColumn("ISSUER", "oidc.issuer"),
      createColumn("DEFAULT ROLE", "defaultRole"),
      description,
    ],
    hasRedirectUri: true,
  },
  {
    name: "account-associations",
    singular: "account association",
    methods: {
      list: AccountAssociationsService.method.listAccountAssociations,
      get: AccountAssociationsService.method.getAccountAssociation,
      create: AccountAssociationsService.method.createAccountAssociation,
      update: AccountAssociationsService.method.updateAccountAssociation,
      delete: AccountAssociationsService.method.deleteAccountAssociation,
    },
    actions: [
      {
        name: "check",
        method: AccountAssociationsService.method.checkAccountAssociation,
        description: "check an account with its provider",
      },
    ],
    columns: [
      uid,
      name,
      { title: "ACCOUNTS", cell: present("amazon", "google", "azure", "github", "chainguard") },
      description,
    ],
  },
  {
    name: "group-invites",
    singular: "group invite",
    methods: {
      list: GroupInvitesService.method.listGroupInvites,
      get: GroupInvitesService.method.getGroupInvite,
      create: GroupInvitesService.method.createGroupInvite,
      update: GroupInvitesService.method.updateGroupInvite,
      delete: GroupInvitesService.method.deleteGroupInvite,
    },
    columns: [
      uid,
      createColumn("ROLE", "role.name"),
      createColumn("E-MAIL", "email"),
      createColumn("SINGLE USE", "singleUse"),
      createColumn("KEY ID", "keyId"),
      createColumn("EXPIRES", "expirationTime"),
    ],
  },
  {
    name: "group-mappings",
    singular: "external group role mapping",
    methods: {
      list: ExternalGroupRoleMappingsService.method.listExternalGroupRoleMappings,
      get: ExternalGroupRoleMappingsService.method.getExternalGroupRoleMapping,
      create: ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping,
      delete: ExternalGroupRoleMappingsService.method.deleteExternalGroupRoleMapping,
    },
    actions: [
      {
        name: "batch-delete",
        method: ExternalGroupRoleMappingsService.method.batchDeleteExternalGroupRoleMappings,
        description: "delete up to 100 mappings of one identity provider, and print those that existed",
        columns: groupMappingColumns,
        destructive: true,
        describe: IdentityProvidersService.method.getIdentityProvider,
      },
    ],
    columns: groupMappingColumns,
  },
  {
    name: "terms",
    singular: "acceptance of terms",
    methods: { list: TermsService.method.listTermsAcceptances, create: TermsService.method.acceptTerms },
    createAlias: "accept",
    columns: [
      createColumn("DOCUMENT", "docId"),
      createColumn("ORGANISATION", "orgUid"),
      createColumn("ACCEPTED BY", "acceptedBy"),
      createColumn("ACCEPTED", "createTime"),
    ],
  },
];

/** Gets the field of a list's response with its rows. */
export function getRowsField(method: DescMethodUnary): DescField & { readonly message: DescMessage } {
  const field = method.output.fields.find(({ fieldKind, message }) => fieldKind === "list" && message);
  if (field?.message === undefined) throw new TypeError(`${method} has no list in its response`);
  return field as DescField & { readonly message: DescMessage };
}

/** Finds the field of a request with the resource; undefined when the request has the fields itself. */
export function findResourceField({ methods }: ResourceCommand, { input }: DescMethodUnary): DescField | undefined {
  const { list, get } = methods;
  const resource = list === undefined ? get?.output : getRowsField(list).message;
  return input.fields.find(({ fieldKind, message }) => fieldKind === "message" && message === resource);
}

/** The cell of a column that names the members which a row has. */
export function present(...members: readonly string[]): ListColumn["cell"] {
  return (row) => {
    const set = members.filter((member) => row[member] !== undefined);
    return set.map((member) => member.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)).join(", ");
  };
}

function length(value: JsonValue | undefined): number {
  return Array.isArray(value) ? value.length : 0;
}
