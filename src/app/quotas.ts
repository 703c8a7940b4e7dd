// Which methods create what quotas limit. Nothing else that creates such a thing
// is refused: the registry's own reports and commands on the host are recorded
// whatever there is, and count. Logins that create people or bindings ask for
// themselves (iam/people/room.ts).
import type { DescMessage, DescMethod, DescMethodUnary, Message, MessageShape } from "@bufbuild/protobuf";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { Subscriptions } from "#gen/chainguard/platform/events/subscriptions_pb.js";
import { SubscriptionsService } from "#gen/chainguard/platform/events/v2beta1/subscriptions_pb.js";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { Identities } from "#gen/chainguard/platform/iam/identity_pb.js";
import { IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { Advisories } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import type { MembershipGrant } from "../iam/role-bindings/new-binding.js";
import { MAX_BATCH } from "../iam/role-bindings/role-binding-v2beta1.js";
import type { QuotaKind } from "../kernel/quotas.js";
import { isUidp, lineageOf, rootOf } from "../kernel/uidp.js";
import { bitOf, withMapped } from "../pipeline/auth/authorize.js";
import type { Caller } from "../pipeline/auth/caller.js";
import { authRuleOf, type RoomCheck } from "../pipeline/method-table.js";
import type { Addition, Quotas } from "../pipeline/quotas.js";
import type { Awaitable, Tx } from "../store/port.js";

/** A method that creates what a quota limits, and how much of it a request creates. */
interface CreatingMethod {
  readonly method: DescMethod;
  /** Undefined where the request is not one that the caller may make: the handler says so. */
  readonly addition: (request: Message, caller: Caller, tx: Tx) => Awaitable<Addition | undefined>;
}

const createGroups = [{ bit: bitOf(Capability.CAP_IAM_GROUPS_CREATE) }];

/** All of them, in both versions; the stable names of version 2 follow from the beta's. */
const creatingMethods: readonly CreatingMethod[] = [
  creates(GroupsService.method.createGroup, groupOrRoot),
  creates(Groups.method.create, groupOrRoot),
  createsInScope("identities", IdentitiesService.method.createIdentity),
  createsInScope("identities", Identities.method.create),
  createsInScope("roles", RolesService.method.createRole),
  createsInScope("roles", Roles.method.create),
  // What is bound already is found instead of created.
  createsInScope("bindings", RoleBindingsService.method.createRoleBinding, ({ parent, roleBinding }) =>
    newBindings(parent, [{ identityUid: roleBinding?.identityUid ?? "", roleUid: roleBinding?.roleUid ?? "" }]),
  ),
  createsInScope("bindings", RoleBindings.method.create, ({ parent, roleBinding }) =>
    newBindings(parent, [{ identityUid: roleBinding?.identity ?? "", roleUid: roleBinding?.role ?? "" }]),
  ),
  createsInScope("bindings", RoleBindingsService.method.batchCreateRoleBindings, ({ parent, requests, roleUid }) =>
    newBindings(
      parent,
      requests.map(({ roleBinding }) => ({
        identityUid: roleBinding?.identityUid ?? "",
        roleUid: roleBinding?.roleUid || roleUid,
      })),
    ),
  ),
  createsInScope("bindings", RoleBindings.method.createBatch, ({ parent, roleBindings }) =>
    newBindings(
      parent,
      roleBindings.map(({ identity, role }) => ({ identityUid: identity, roleUid: role })),
    ),
  ),
  createsInScope("invites", GroupInvitesService.method.createGroupInvite),
  createsInScope("invites", GroupInvites.method.create),
  createsInScope("providers", IdentityProvidersService.method.createIdentityProvider),
  createsInScope("providers", IdentityProviders.method.create),
  createsInScope("mappings", ExternalGroupRoleMappingsService.method.createExternalGroupRoleMapping),
  createsInScope("mappings", ExternalGroupRoleMappings.method.create),
  createsInScope("subscriptions", SubscriptionsService.method.createSubscription),
  createsInScope("subscriptions", Subscriptions.method.create),
  createsInScope("repos", ReposService.method.createRepo),
  // A repo that exists is changed, unless the caller wants none to exist.
  createsInScope("repos", Registry.method.createRepo, ({ parentId, repo, preventExisting }) => ({
    exact: async (tx) => (!preventExisting && (await tx.repos.named(parentId, repo?.name ?? "")) ? 0 : 1),
  })),
  // A tag that exists is moved.
  createsInScope("tags", TagsService.method.createTag, ({ parent, tag }) => newTag(parent, tag?.name)),
  createsInScope("tags", Registry.method.createTag, ({ repoId, tag }) => newTag(repoId, tag?.name)),
  createsInScope("advisories", Advisories.method.create),
];

/**
 * What makes sure, before a method runs, that there is room for what it creates.
 *
 * @returns for each method its check, undefined for one that creates nothing which a quota limits
 */
export function roomChecks(quotas: Quotas): (method: DescMethod) => RoomCheck | undefined {
  const checks = new Map<string, RoomCheck>();
  for (const { method, addition } of creatingMethods) {
    checks.set(betaName(method), async (request, caller, tx) => {
      const added = await addition(request, caller, tx);
      if (added !== undefined) await quotas.requireRoom(tx, added);
    });
  }
  return (method) => checks.get(betaName(method));
}

function betaName({ parent, name }: DescMethod): string {
  return `${parent.typeName.replace(".v2.", ".v2beta1.")}.${name}`;
}

type Many = Pick<Addition, "most" | "exact">;

function creates<I extends DescMessage>(
  method: DescMethodUnary<I>,
  addition: (request: MessageShape<I>, caller: Caller, tx: Tx) => Awaitable<Addition | undefined>,
): CreatingMethod {
  return { method, addition: addition as CreatingMethod["addition"] };
}

// Of methods whose caller is authorized at the place where they create.
function createsInScope<I extends DescMessage>(
  kind: QuotaKind,
  method: DescMethodUnary<I>,
  many: (request: MessageShape<I>) => Many = () => ({}),
): CreatingMethod {
  const auth = authRuleOf(method);
  const scope = auth.mode === "guarded" ? auth.scope : undefined;
  if (scope === undefined) throw new TypeError(`${method} has no scope`);
  return creates(method, (request) => ({ kind, ownerUid: rootOf(scope.of(request)), ...many(request) }));
}

// The method is unscoped: the caller comes without grants, and whether they allow to create at the parent is
// checked here as well.
async function groupOrRoot(
  { parent }: { readonly parent: string },
  caller: Caller,
  tx: Tx,
): Promise<Addition | undefined> {
  if (parent === "" || parent === "/") return { kind: "roots", ownerUid: caller.uid };
  if (!isUidp(parent)) return undefined;
  const { principal } = caller;
  const there = caller.withGrants(await withMapped(principal, tx.access.at(caller.uid, lineageOf(parent)), tx));
  return there.holds(createGroups, parent) ? { kind: "groups", ownerUid: rootOf(parent) } : undefined;
}

function newBindings(group: string, all: readonly MembershipGrant[]): Many {
  // A batch with more is refused as it is.
  const joined = all.slice(0, MAX_BATCH);
  return {
    most: joined.length,
    async exact(tx: Tx) {
      const added = new Set<string>();
      for (const { identityUid, roleUid } of joined) {
        if (!(await tx.roleBindings.same(group, identityUid, roleUid))) added.add(`${identityUid} ${roleUid}`);
      }
      return added.size;
    },
  };
}

function newTag(repoUid: string, name = ""): Many {
  return { exact: async (tx) => ((await tx.tags.named(repoUid, name)) === undefined ? 1 : 0) };
}
