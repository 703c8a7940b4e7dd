// The kinds of resources of files: how each is read from the service, created, changed and deleted. What they have in common
// is in read.ts, plan.ts and run.ts.
import {
  create,
  type DescMethodUnary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import {
  CreateTemporaryBindingRequestSchema,
  SetBindingEndRequestSchema,
  TemporaryBindingsService,
} from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import {
  AllowedIssuerSchema,
  CreateIdentityRequestSchema,
  IssuerGuardSchema,
  RemoveIssuerGuardRequestSchema,
  SetConditionsRequestSchema,
  SetIssuerGuardRequestSchema,
  TrustService,
} from "#gen/arbor/trust/v1/trust_pb.js";
import {
  CreateSubscriptionRequestSchema,
  DeleteSubscriptionRequestSchema,
  ListSubscriptionsRequestSchema,
  SubscriptionsService,
} from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import {
  CreateGroupRequestSchema,
  DeleteGroupRequestSchema,
  GroupsService,
  ListGroupsRequestSchema,
  UpdateGroupRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  DeleteIdentityRequestSchema,
  IdentitiesService,
  IdentitySchema,
  ListIdentitiesRequestSchema,
  UpdateIdentityRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import {
  CreateRoleBindingRequestSchema,
  DeleteRoleBindingRequestSchema,
  ListRoleBindingsRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import {
  CreateRoleRequestSchema,
  DeleteRoleRequestSchema,
  ListRolesRequestSchema,
  RolesService,
  UpdateRoleRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { timestampOf } from "../../../kernel/time.js";
import { isPullToken } from "../auth/pull-token.js";
import {
  capabilities,
  company,
  conditions,
  description,
  endTime,
  type FieldRow,
  guardSwitches,
  issuers,
  numberOfCapability,
  relationshipNames,
  relationships,
  toConditions,
} from "./fields.js";
import type { Actual, FieldChange, KindName, ManagedBy, Values } from "./model.js";

/** The largest page of the service. */
export const PAGE_SIZE = 200;

/** A call to make. */
export interface Call {
  readonly method: DescMethodUnary;
  readonly request: Message;
}

/** The uids of what a new resource refers to. */
export interface Uids {
  readonly group: string;
  readonly identity: string;
  readonly role: string;
}

/** What the row of a list says of a resource, without where it is. */
export interface RowFields
  extends Pick<Actual, "name" | "identityUid" | "roleUid" | "identityText" | "roleText" | "managedBy"> {
  readonly values: Values;
}

export interface KindRow {
  readonly kind: KindName;
  /** The name of the section of the file. */
  readonly section: string;
  /** The keys that say which resource it is. */
  readonly keys: readonly string[];
  readonly fields: readonly FieldRow[];
  /** The capability to list it, and the list of all below a group; the issuer guard has none. */
  readonly lists: string;
  readonly list?: (group: string) => Call;
  /** Lists those of a group that have a name: where two may have it, a resource is looked for before it is created. */
  readonly find?: (group: string, name: string) => Call;
  readonly parse: (row: JsonObject) => RowFields;
  readonly create: (name: string, values: Values, uids: Uids) => Call;
  /** The calls that change fields, in their order. */
  readonly update: (
    actual: Pick<Actual, "uid" | "values">,
    values: Values,
    fields: readonly FieldChange[],
  ) => readonly Call[];
  readonly remove: (uid: string) => Call;
}

const groups = GroupsService.method;
const identities = IdentitiesService.method;
const roles = RolesService.method;
const bindings = RoleBindingsService.method;
const subscriptions = SubscriptionsService.method;
const temporary = TemporaryBindingsService.method;
const trust = TrustService.method;

const below = (group: string) => ({ uidp: { descendantsOf: group }, pageSize: PAGE_SIZE });
const named = (group: string, name: string) => ({ uidp: { childrenOf: group }, name, pageSize: PAGE_SIZE });

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const maskOf = (fields: readonly FieldChange[]) => ({ paths: fields.map(({ field }) => snakeCase(field)) });
const textOf = (value: unknown) => String(value ?? "");

export const kinds: readonly KindRow[] = [
  {
    kind: "group",
    section: "groups",
    keys: ["path"],
    fields: [description],
    lists: "groups.list",
    list: (group) => ({ method: groups.listGroups, request: create(ListGroupsRequestSchema, below(group)) }),
    find: (group, name) => ({
      method: groups.listGroups,
      request: create(ListGroupsRequestSchema, named(group, name)),
    }),
    parse: (row) => ({ name: textOf(row.name), values: { description: textOf(row.description) } }),
    create: (name, values, { group: parent }) => ({
      method: groups.createGroup,
      request: create(CreateGroupRequestSchema, { parent, group: { name, description: textOf(values.description) } }),
    }),
    update: ({ uid }, values, fields) => [
      {
        method: groups.updateGroup,
        request: create(UpdateGroupRequestSchema, {
          group: { uid, description: textOf(values.description) },
          updateMask: maskOf(fields),
        }),
      },
    ],
    remove: (uid) => ({ method: groups.deleteGroup, request: create(DeleteGroupRequestSchema, { uid }) }),
  },
  {
    kind: "issuer guard",
    section: "issuerGuard",
    keys: [],
    fields: [issuers, ...guardSwitches],
    lists: "identity_providers.list",
    parse: (row) => ({
      name: "",
      values: {
        issuers: issuers.parse((row.issuers ?? []) as JsonValue, "service"),
        ...Object.fromEntries(guardSwitches.map(({ name }) => [name, (row[name] ?? true) as boolean])),
      },
    }),
    create: (_, values, { group }) => setGuard(group, values),
    update: ({ uid, values: before }, values) => [setGuard(uid, { ...before, ...values })],
    remove: (group) => ({
      method: trust.removeIssuerGuard,
      request: create(RemoveIssuerGuardRequestSchema, { group }),
    }),
  },
  {
    kind: "role",
    section: "roles",
    keys: ["path"],
    fields: [description, capabilities],
    lists: "roles.list",
    list: (group) => ({ method: roles.listRoles, request: create(ListRolesRequestSchema, below(group)) }),
    find: (group, name) => ({ method: roles.listRoles, request: create(ListRolesRequestSchema, named(group, name)) }),
    parse: (row) => ({
      name: textOf(row.name),
      values: {
        description: textOf(row.description),
        capabilities: capabilities.parse((row.capabilities ?? []) as JsonValue, "service"),
      },
    }),
    create: (name, values, { group: parent }) => ({
      method: roles.createRole,
      request: create(CreateRoleRequestSchema, { parent, role: { name, ...roleFields(values) } }),
    }),
    update: ({ uid }, values, fields) => [
      {
        method: roles.updateRole,
        request: create(UpdateRoleRequestSchema, { role: { uid, ...roleFields(values) }, updateMask: maskOf(fields) }),
      },
    ],
    remove: (uid) => ({ method: roles.deleteRole, request: create(DeleteRoleRequestSchema, { uid }) }),
  },
  {
    kind: "identity",
    section: "identities",
    keys: ["path"],
    fields: [description, company, ...relationships, conditions],
    lists: "identity.list",
    list: (group) => ({
      method: identities.listIdentities,
      request: create(ListIdentitiesRequestSchema, below(group)),
    }),
    find: (group, name) => ({
      method: identities.listIdentities,
      request: create(ListIdentitiesRequestSchema, named(group, name)),
    }),
    parse: (row) => ({
      name: textOf(row.name),
      ...(isPullToken(row) && { managedBy: "arbor auth pull-tokens" as ManagedBy }),
      values: {
        description: textOf(row.description),
        company: textOf(row.company),
        ...Object.fromEntries(
          relationships.flatMap(({ name, parse }) => {
            const value = row[name];
            return value === undefined ? [] : [[name, parse(value, "service")]];
          }),
        ),
      },
    }),
    create: (name, values, { group: parent }) => ({
      method: trust.createIdentity,
      request: create(CreateIdentityRequestSchema, {
        parent,
        identity: toIdentity({ ...values, name }),
        conditions: toConditions(values.conditions ?? []),
      }),
    }),
    update: updateIdentity,
    remove: (uid) => ({ method: identities.deleteIdentity, request: create(DeleteIdentityRequestSchema, { uid }) }),
  },
  {
    kind: "role binding",
    section: "roleBindings",
    keys: ["group", "identity", "role"],
    fields: [endTime],
    lists: "role_bindings.list",
    list: (group) => ({
      method: bindings.listRoleBindings,
      request: create(ListRoleBindingsRequestSchema, below(group)),
    }),
    parse: ({ identity, role, managedByUidp }) => {
      const [person, bound] = [identity as JsonObject, role as JsonObject];
      return {
        name: "",
        identityUid: textOf(person.uid),
        identityText: textOf(person.email),
        roleUid: textOf(bound.uid),
        roleText: textOf(bound.name),
        ...(textOf(managedByUidp) !== "" && { managedBy: "a directory, by SCIM" as ManagedBy }),
        values: { endTime: null },
      };
    },
    create: (_, values, { group: parent, identity: identityUid, role: roleUid }) =>
      typeof values.endTime === "string"
        ? {
            method: temporary.createTemporaryBinding,
            request: create(CreateTemporaryBindingRequestSchema, {
              ...{ parent, identityUid, roleUid },
              endTime: timestampOf(Date.parse(values.endTime)),
            }),
          }
        : {
            method: bindings.createRoleBinding,
            request: create(CreateRoleBindingRequestSchema, { parent, roleBinding: { identityUid, roleUid } }),
          },
    update: ({ uid }, values) => [
      {
        method: temporary.setBindingEnd,
        request: create(SetBindingEndRequestSchema, {
          uid,
          ...(typeof values.endTime === "string" && { endTime: timestampOf(Date.parse(values.endTime)) }),
        }),
      },
    ],
    remove: (uid) => ({ method: bindings.deleteRoleBinding, request: create(DeleteRoleBindingRequestSchema, { uid }) }),
  },
  {
    kind: "subscription",
    section: "subscriptions",
    keys: ["group", "sink"],
    fields: [],
    lists: "subscriptions.list",
    list: (group) => ({
      method: subscriptions.listSubscriptions,
      request: create(ListSubscriptionsRequestSchema, below(group)),
    }),
    find: (group) => ({
      method: subscriptions.listSubscriptions,
      request: create(ListSubscriptionsRequestSchema, { uidp: { childrenOf: group }, pageSize: PAGE_SIZE }),
    }),
    parse: (row) => ({ name: textOf(row.sink), values: {} }),
    create: (sink, _, { group: parent }) => ({
      method: subscriptions.createSubscription,
      request: create(CreateSubscriptionRequestSchema, { parent, subscription: { sink } }),
    }),
    update: () => [],
    remove: (uid) => ({
      method: subscriptions.deleteSubscription,
      request: create(DeleteSubscriptionRequestSchema, { uid }),
    }),
  },
];

const byName = new Map(kinds.map((row) => [row.kind, row]));

/** Gets the row of a kind. */
export function getKindRow(kind: KindName): KindRow {
  const row = byName.get(kind);
  if (row === undefined) throw new TypeError(`there is no kind ${kind}`);
  return row;
}

function roleFields(values: Values) {
  return {
    description: textOf(values.description),
    capabilities: ((values.capabilities ?? []) as string[]).map(numberOfCapability),
  };
}

function setGuard(group: string, values: Values): Call {
  const guard = create(IssuerGuardSchema, {
    issuers: ((values.issuers ?? []) as JsonObject[]).map(({ conditions: own = [], ...allowed }) => ({
      ...fromJson(AllowedIssuerSchema, allowed),
      conditions: toConditions(own),
    })),
    staticKeys: values.staticKeys !== false,
    aws: values.aws !== false,
    servicePrincipals: values.servicePrincipals !== false,
  });
  return { method: trust.setIssuerGuard, request: create(SetIssuerGuardRequestSchema, { group, guard }) };
}

function toIdentity({ conditions: _, ...values }: Values) {
  return fromJson(IdentitySchema, values as JsonObject);
}

// Conditions are set before the identity can be assumed in another way, so that no token is accepted in between which neither
// the old nor the new fields accept. They apply to claim matches and static keys alone, so others change first.
function updateIdentity(
  { uid, values: before }: Pick<Actual, "uid" | "values">,
  values: Values,
  fields: readonly FieldChange[],
): readonly Call[] {
  const changed = fields.filter(({ field }) => field !== "conditions");
  const named = new Set(changed.map(({ field }) => field));
  const kept = Object.fromEntries(Object.entries(values).filter(([name]) => named.has(name)));
  const update: Call = {
    method: identities.updateIdentity,
    request: create(UpdateIdentityRequestSchema, {
      identity: { ...toIdentity(withoutPastExpiry(kept)), uid },
      updateMask: maskOf(changed),
    }),
  };
  const set: Call = {
    method: trust.setConditions,
    request: create(SetConditionsRequestSchema, {
      identity: uid,
      conditions: toConditions(values.conditions ?? []),
    }),
  };
  if (changed.length === fields.length) return [update];
  if (changed.length === 0) return [set];
  return before.awsIdentity === undefined ? [set, update] : [update, set];
}

// The time of keys that have expired is not one that the service accepts again: without one they live as long as they may.
function withoutPastExpiry(values: Values): Values {
  const { staticKeys } = values;
  if (staticKeys === undefined) return values;
  const { expirationTime, ...keys } = staticKeys as JsonObject;
  const isPast = typeof expirationTime === "string" && Date.parse(expirationTime) <= Date.now();
  return isPast ? { ...values, staticKeys: keys } : values;
}

/** The name of the member of the relationship that an identity has; undefined for none. */
export function findRelationship(values: Values): (typeof relationshipNames)[number] | undefined {
  return relationshipNames.find((name) => values[name] !== undefined);
}

/** Reads the conditions of a response. */
export function parseConditions(json: JsonValue): JsonValue {
  return conditions.parse(json, "service");
}

/** Reads the end of a role binding of a response. */
export function parseEnd(json: JsonValue): JsonValue {
  return endTime.parse(json, "service");
}
