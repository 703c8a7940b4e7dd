// The sample organisation and its people. Its root is created on the host, as by `arbor bootstrap`, and the rest by its
// owner through the API.
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import type { Connection } from "../../../client/index.js";
import { bootstrap } from "../../../iam/operator/bootstrap.js";
import { verifyGroup } from "../../../iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../../kernel/ids.js";
import { groupKind } from "../../../store/iam/groups.js";
import type { Store } from "../../../store/store.js";

/** A person with an account at the provider. */
export interface DemoPerson {
  readonly subject: string;
  readonly name: string;
  readonly email: string;
  /** The description on the login page. */
  readonly about: string;
}

/** The name of the sample organisation. */
export const ORGANISATION = "demo.example";

/** The subject of the workload at the provider. */
export const WORKLOAD_SUBJECT = "workload:ci";

export const alice: DemoPerson = {
  subject: "alice",
  name: "Alice",
  email: `alice@${ORGANISATION}`,
  about: `owner of ${ORGANISATION}`,
};

export const people: readonly DemoPerson[] = [
  alice,
  { subject: "bob", name: "Bob", email: `bob@${ORGANISATION}`, about: "who needs an invite" },
];

/** The uids in the walkthrough. */
export interface SampleOrganisation {
  readonly root: string;
  /** A group with subgroups. */
  readonly platform: string;
  /** The identity that the workload assumes. */
  readonly workload: string;
  /** A role of the organisation, which the workload gets in the walkthrough. */
  readonly builder: string;
}

/**
 * The writes of {@link createSampleResources}. They may be repeated, and must be on a machine so busy that the service
 * rejects calls: an attempt that failed left nothing, or what the next start finds.
 */
export const sampleWrites = [
  GroupsService.method.createGroup,
  RolesService.method.createRole,
  IdentitiesService.method.createIdentity,
  RoleBindingsService.method.createRoleBinding,
];

/** Finds the root group of Alice. The first start creates and verifies it. */
export function ensureRoot(store: Store, issuer: string, nowMs: number): Promise<string> {
  return store.write(async (tx) => {
    const root = await tx.table(groupKind).findVerifiedRoot(ORGANISATION);
    if (root !== undefined) return root.uid;
    const owner = { issuer, subject: alice.subject };
    const { group } = await bootstrap(tx, { org: ORGANISATION, owner }, randomIds, nowMs);
    await verifyGroup(tx, group, "ORG_KIND_CUSTOMER", { ids: randomIds, nowMs });
    return group;
  });
}

/**
 * Creates the groups, the role, the workload identity and its binding, unless they exist.
 *
 * @param connection with a token of Alice
 */
export async function createSampleResources(
  connection: Connection,
  root: string,
  issuer: string,
): Promise<SampleOrganisation> {
  const groups = connection.client(GroupsService);
  const identities = connection.client(IdentitiesService);
  const roles = connection.client(RolesService);
  const bindings = connection.client(RoleBindingsService);

  async function group(parent: string, name: string, description: string): Promise<string> {
    const found = await groups.listGroups({ uidp: { childrenOf: parent }, name });
    return (found.groups[0] ?? (await groups.createGroup({ parent, group: { name, description } }))).uid;
  }

  async function role(name: string, description: string, capabilities: Capability[]): Promise<string> {
    const found = await roles.listRoles({ uidp: { childrenOf: root }, name });
    const request = { parent: root, role: { name, description, capabilities } };
    return (found.roles[0] ?? (await roles.createRole(request))).uid;
  }

  async function workloadIdentity(name: string, description: string): Promise<string> {
    const found = await identities.listIdentities({ uidp: { childrenOf: root }, name });
    const iss = { case: "issuer", value: issuer } as const;
    const sub = { case: "subject", value: WORKLOAD_SUBJECT } as const;
    const relationship = { case: "claimMatch", value: { iss, sub } } as const;
    const request = { parent: root, identity: { name, description, relationship } };
    return (found.identities[0] ?? (await identities.createIdentity(request))).uid;
  }

  const platform = await group(root, "platform", "Builds and runs what the others stand on");
  await group(platform, "production", "What customers see");
  await group(root, "research", "Tries things out");
  const builder = await role("builder", "May create groups", [Capability.CAP_IAM_GROUPS_CREATE]);
  const workload = await workloadIdentity("ci", "The pipeline that builds and deploys");
  // An existing binding is unchanged.
  await bindings.createRoleBinding({
    parent: root,
    roleBinding: { identityUid: workload, roleUid: builtinRoleUid("viewer") },
  });
  return { root, platform, workload, builder };
}
