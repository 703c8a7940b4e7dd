// The kinds of resources on the command line, with a row for each: its commands, the service that they call, how lists show it,
// and how requests name it. Its commands follow from the row and the descriptors of the service (iam/resource-commands.ts), and
// so does where its names are accepted (names/fields.ts) and looked up (names/lookup.ts). A row loads the descriptors when they
// are needed, because most commands need those of one service.
import type { DescService, JsonObject } from "@bufbuild/protobuf";
import type { ListColumn } from "../output/format.js";
import { countOf, createColumn, present } from "./iam/columns.js";
import { findLastSeen } from "./iam/last-seen.js";

interface KindRow {
  /** The words for one, such as `role binding`. */
  readonly kind: string;
  /** Its commands, after `arbor`. */
  readonly command: string;
  /** The service of version 2beta1, without its package, and how to load it. */
  readonly service: string;
  readonly load: () => Promise<DescService>;
  /** The kinds that it lies directly below. */
  readonly parents: readonly string[];
  /** The names of the fields of requests that hold its uid, whatever the service is. */
  readonly fields?: readonly string[];
  /** Whether it has a name, which commands accept in place of the uid. */
  readonly isNamed?: boolean;
  /** The columns of a list. */
  readonly columns: readonly ListColumn[];
  /** The methods of the service that are none of the verbs. */
  readonly actions?: readonly ActionRow[];
  /** A note after a creation, in full sentences. */
  readonly creationNote?: string;
  /** A note before a deletion, in full sentences. */
  readonly deletionNote?: string;
  /** Whether `create` says which others in the group have the name already. */
  readonly warnsOfNamesakes?: true;
  /** Whether tables show the redirect URI, which is no field. */
  readonly hasRedirectUri?: true;
  /** Whether `create` has the flags of presets. */
  readonly hasPresets?: true;
  /** Whether `create` has `--expires`, and tables show when each ends. */
  readonly mayEnd?: true;
  /** Whether `delete` has `--recursive`. */
  readonly isTree?: true;
  /** What tells one from others of the same parent, where that is not the name; empty where a parent has only one. */
  readonly key?: readonly KeyField[];
  /** Whether one that a list shows counts as the same. Others are expired, or managed by a directory. */
  readonly counts?: (row: JsonObject) => boolean;
}

/** A field that tells a resource from others of the same parent. */
export interface KeyField {
  /** Its path in what is created, in JSON. */
  readonly created: string;
  /** The paths in a row of a list that may have the same value; that of `created` unless given. */
  readonly listed?: readonly string[];
  /** The filter of lists for it. */
  readonly filter?: string;
}

/** The command of a method that is none of the verbs. */
interface ActionRow {
  /** The name on the command line. */
  readonly name: string;
  /** The name of the method in generated code. */
  readonly method: string;
  readonly description: string;
  /** The name of the field with a resource, whose fields have flags without a prefix, and which `--file` sets. */
  readonly resource?: string;
  /** The columns of the list that the response has. */
  readonly columns?: readonly ListColumn[];
  /** Whether it asks for a confirmation, because it cannot be undone. */
  readonly destructive?: true;
  /** The kind of the uid in its arguments, whose name the question shows. */
  readonly describe?: string;
}

const uid = createColumn("UID", "uid");
const name = createColumn("NAME", "name");
const description = createColumn("DESCRIPTION", "description");
const created = createColumn("CREATED", "createTime");
const updated = createColumn("UPDATED", "updateTime");
const roleBindingColumns = [
  createColumn("NAME", "identity.name"),
  createColumn("E-MAIL", "identity.email"),
  createColumn("ROLE", "role.name"),
  createColumn("GROUP", "group.name"),
  createColumn("MANAGED BY", "managedByUidp"),
  createColumn("IDENTITY", "identity.uid"),
  uid,
];
const groupMappingColumns = [
  createColumn("EXTERNAL GROUP", "externalGroupId"),
  createColumn("ROLE", "roleUid"),
  createColumn("SCOPE", "scope", "uid"),
  uid,
];
const registryNote =
  "Images that are still in the registry come back with the next `arbor registry sync`, and when they are pushed again.";

const rows = [
  {
    kind: "group",
    command: "iam groups",
    service: "GroupsService",
    load: async () => (await import("#gen/chainguard/platform/iam/v2beta1/groups_pb.js")).GroupsService,
    parents: ["group"],
    fields: ["group", "group_uid", "registry_id"],
    isNamed: true,
    columns: [name, description, created, uid],
    actions: [
      {
        name: "lookup",
        method: "lookupGroup",
        description: "find the organisation of your e-mail address's domain",
      },
      {
        name: "request-access",
        method: "requestGroupAccess",
        description: "ask for access to an organisation",
      },
      {
        name: "check-eligibility",
        method: "checkEligibility",
        description: "print whether `lookup` may find an organisation for you",
      },
    ],
    warnsOfNamesakes: true,
    isTree: true,
  },
  {
    kind: "identity",
    command: "iam identities",
    service: "IdentitiesService",
    load: async () => (await import("#gen/chainguard/platform/iam/v2beta1/identities_pb.js")).IdentitiesService,
    parents: ["group"],
    fields: ["identity", "identity_uid", "actor"],
    isNamed: true,
    columns: [
      name,
      { title: "ASSUMED BY", cell: present("claimMatch", "staticKeys", "awsIdentity", "servicePrincipal") },
      description,
      { ...createColumn("LAST SEEN", "lastSeenTime"), cell: findLastSeen },
      uid,
    ],
    actions: [
      {
        name: "lookup",
        method: "lookupIdentity",
        description: "find the identity that a token of another issuer assumes",
      },
      {
        name: "update-metadata",
        method: "updateIdentityMetadata",
        description: "store what you say about yourself",
        resource: "identity_metadata",
      },
    ],
    warnsOfNamesakes: true,
    hasPresets: true,
  },
  {
    kind: "role",
    command: "iam roles",
    service: "RolesService",
    load: async () => (await import("#gen/chainguard/platform/iam/v2beta1/roles_pb.js")).RolesService,
    parents: ["group"],
    fields: ["role", "role_uid", "default_role"],
    isNamed: true,
    columns: [name, description, { title: "CAPABILITIES", cell: countOf("capabilities") }, uid],
  },
  {
    kind: "role binding",
    command: "iam role-bindings",
    service: "RoleBindingsService",
    load: async () => (await import("#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js")).RoleBindingsService,
    parents: ["group"],
    columns: roleBindingColumns,
    actions: [
      {
        name: "batch-create",
        method: "batchCreateRoleBindings",
        description: "create up to 25 role bindings, all or none",
        columns: roleBindingColumns,
      },
    ],
    mayEnd: true,
    key: [
      { created: "identityUid", listed: ["identity.uid"], filter: "identity" },
      { created: "roleUid", listed: ["role.uid"], filter: "role" },
    ],
    counts: ({ managedByUidp = "" }) => managedByUidp === "",
  },
  {
    kind: "identity provider",
    command: "iam identity-providers",
    service: "IdentityProvidersService",
    load: async () =>
      (await import("#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js")).IdentityProvidersService,
    parents: ["group"],
    fields: ["identity_provider_uid"],
    isNamed: true,
    columns: [
      name,
      createColumn("ISSUER", "oidc.issuer"),
      description,
      createColumn("DEFAULT ROLE", "defaultRole", "uid"),
      uid,
    ],
    actions: [
      {
        name: "generate-scim-token",
        method: "generateScimToken",
        description: "create the token with which an identity provider provisions people, and print it once",
      },
      {
        name: "regenerate-scim-token",
        method: "regenerateScimToken",
        description: "replace the token, and print the new one once",
        destructive: true,
        describe: "identity provider",
      },
      {
        name: "revoke-scim-token",
        method: "revokeScimToken",
        description: "revoke the token",
        destructive: true,
        describe: "identity provider",
      },
      {
        name: "set-scim-enabled",
        method: "setScimEnabled",
        description: "enable or disable provisioning",
      },
    ],
    hasRedirectUri: true,
  },
  {
    kind: "account association",
    command: "iam account-associations",
    service: "AccountAssociationsService",
    load: async () =>
      (await import("#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js")).AccountAssociationsService,
    parents: ["group"],
    isNamed: true,
    columns: [
      name,
      { title: "ACCOUNTS", cell: present("amazon", "google", "azure", "github", "chainguard") },
      description,
      uid,
    ],
    actions: [
      {
        name: "check",
        method: "checkAccountAssociation",
        description: "check an account with its provider",
      },
    ],
    key: [],
  },
  {
    kind: "group invite",
    command: "iam group-invites",
    service: "GroupInvitesService",
    load: async () => (await import("#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js")).GroupInvitesService,
    parents: ["group"],
    columns: [
      createColumn("E-MAIL", "email"),
      createColumn("ROLE", "role.name"),
      createColumn("EXPIRES", "expirationTime"),
      createColumn("SINGLE USE", "singleUse"),
      createColumn("KEY ID", "keyId"),
      uid,
    ],
    key: [{ created: "email" }, { created: "roleUid", listed: ["roleUid", "role.uid"] }],
    creationNote:
      "No mail is sent: give the code to the person, who accepts it with `arbor login --invite-file FILE`. It is shown this once.",
    counts: ({ expirationTime }) => Date.parse(String(expirationTime)) > Date.now(),
  },
  {
    kind: "external group role mapping",
    command: "iam group-mappings",
    service: "ExternalGroupRoleMappingsService",
    load: async () =>
      (await import("#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js"))
        .ExternalGroupRoleMappingsService,
    parents: ["identity provider"],
    columns: groupMappingColumns,
    actions: [
      {
        name: "batch-delete",
        method: "batchDeleteExternalGroupRoleMappings",
        description: "delete up to 100 mappings of one identity provider, and print those that existed",
        columns: groupMappingColumns,
        destructive: true,
        describe: "identity provider",
      },
    ],
    key: [{ created: "externalGroupId" }, { created: "roleUid" }, { created: "scope" }],
  },
  {
    kind: "SCIM user",
    command: "scim users",
    service: "ScimUsersService",
    load: async () => (await import("#gen/chainguard/platform/iam/v2beta1/scim_users_pb.js")).ScimUsersService,
    parents: ["identity provider"],
    columns: [
      createColumn("USER NAME", "userName"),
      createColumn("ACTIVE", "active"),
      createColumn("EXTERNAL ID", "externalId"),
      updated,
      createColumn("IDENTITY", "iamIdentityUid"),
      uid,
    ],
  },
  {
    kind: "repo",
    command: "registry repos",
    service: "ReposService",
    load: async () => (await import("#gen/chainguard/platform/registry/v2beta1/repos_pb.js")).ReposService,
    parents: ["group"],
    fields: ["repo_uid", "repo_id"],
    isNamed: true,
    columns: [name, description, createColumn("COPIED FROM", "sync_config.source"), updated, uid],
    deletionNote: registryNote,
  },
  {
    kind: "tag",
    command: "registry tags",
    service: "TagsService",
    load: async () => (await import("#gen/chainguard/platform/registry/v2beta1/tags_pb.js")).TagsService,
    parents: ["repo"],
    isNamed: true,
    columns: [name, updated, createColumn("DIGEST", "digest", "uid"), uid],
    deletionNote: registryNote,
  },
  {
    kind: "overlay",
    command: "registry overlays",
    service: "OverlaysService",
    load: async () => (await import("#gen/chainguard/platform/registry/v2beta1/overlays_pb.js")).OverlaysService,
    parents: ["group"],
    isNamed: true,
    columns: [name, createColumn("PACKAGES", "config.contents.packages", "prose"), uid],
  },
  {
    kind: "overlay binding",
    command: "registry overlay-bindings",
    service: "OverlayBindingsService",
    load: async () =>
      (await import("#gen/chainguard/platform/registry/v2beta1/overlay_bindings_pb.js")).OverlayBindingsService,
    parents: ["repo"],
    columns: [
      createColumn("OVERLAY", "overlay.name"),
      createColumn("SELECTS", "tagSelector.kind"),
      createColumn("TAGS", "tagSelector.tags", "prose"),
      uid,
    ],
    key: [{ created: "overlay", listed: ["overlay.uid", "overlay.name"] }, { created: "tagSelector" }],
  },
  {
    kind: "subscription",
    command: "events subscriptions",
    service: "SubscriptionsService",
    load: async () =>
      (await import("#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js")).SubscriptionsService,
    parents: ["group"],
    fields: ["subscription"],
    columns: [createColumn("SINK", "sink"), uid],
    key: [{ created: "sink" }],
  },
  {
    kind: "advisory",
    command: "advisories",
    service: "AdvisoriesService",
    load: async () =>
      (await import("#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js")).AdvisoriesService,
    parents: ["group"],
    columns: [
      createColumn("ADVISORY", "advisoryId"),
      createColumn("ARTIFACT", "artifactName"),
      createColumn("COMPONENT", "componentName"),
      updated,
      uid,
    ],
  },
] as const satisfies readonly KindRow[];

/** A kind of resource with commands. */
export type Kind = (typeof rows)[number]["kind"];

/** The kinds, those of a group of commands in the order of its help. */
export const kinds: readonly (KindRow & { readonly kind: Kind; readonly parents: readonly Kind[] })[] = rows;

/** Gets the row of a kind. */
export function getKind(kind: string): (typeof kinds)[number] {
  const row = kinds.find((one) => one.kind === kind);
  if (row === undefined) throw new TypeError(`there is no kind ${kind}`);
  return row;
}

/** The words for several of a kind, such as `role bindings`. */
export function formatPlural(singular: string): string {
  const [head = "", ...rest] = singular.split(" of ");
  return [/[^aeiou]y$/.test(head) ? `${head.slice(0, -1)}ies` : `${head}s`, ...rest].join(" of ");
}

/** Formats how many there are of a kind, such as `1 identity` or `more than 100 repos`. */
export function formatCount(singular: string, count: number | string): string {
  return `${count} ${String(count) === "1" ? singular : formatPlural(singular)}`;
}

/** Finds the kind whose plural is a key of the metadata of errors, such as `roleBindings`. */
export function findKindOfKey(key: string): Kind | undefined {
  const words = key.replace(/[A-Z]/g, (capital) => ` ${capital}`).toLowerCase();
  return kinds.find(({ kind }) => formatPlural(kind).toLowerCase() === words)?.kind;
}
