// The sample organisation. Its root is made on the host, as `arbor bootstrap` does
// it; the rest by its owner through the API, as anybody would.

import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import type { Connection } from "../../../client/index.js";
import { bootstrap } from "../../../iam/operator/bootstrap.js";
import { verifyGroup } from "../../../iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../../kernel/ids.js";
import type { Store } from "../../../store/port.js";
import { alice, ORGANISATION, WORKLOAD_SUBJECT } from "./people.js";

/** The uids of what the demo speaks of. */
export interface SampleOrganisation {
  readonly root: string;
  /** A group in it with groups of its own. */
  readonly platform: string;
  /** The identity that the workload assumes. */
  readonly workload: string;
  /** A role of the organisation's own, which the workload does not have yet. */
  readonly builder: string;
}

/** Makes the root group with Alice as its owner, and verifies it; or finds it. */
export function ensureRoot(store: Store, issuer: string, nowMs: number): Promise<string> {
  return store.write(async (tx) => {
    const root = await tx.groups.verifiedRoot(ORGANISATION);
    if (root !== undefined) return root.uid;
    const owner = { issuer, subject: alice.subject };
    const { group } = await bootstrap(tx, { org: ORGANISATION, owner }, randomIds, nowMs);
    await verifyGroup(tx, group, "ORG_KIND_CUSTOMER", { ids: randomIds, nowMs });
    return group;
  });
}

/**
 * Makes what is not there yet of the groups, the role, the workload identity and its binding.
 *
 * @param connection as Alice
 */
export async function fillOrganisation(
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
    const asked = { parent: root, role: { name, description, capabilities } };
    return (found.roles[0] ?? (await roles.createRole(asked))).uid;
  }

  async function workloadIdentity(name: string, description: string): Promise<string> {
    const found = await identities.listIdentities({ uidp: { childrenOf: root }, name });
    const iss = { case: "issuer", value: issuer } as const;
    const sub = { case: "subject", value: WORKLOAD_SUBJECT } as const;
    const relationship = { case: "claimMatch", value: { iss, sub } } as const;
    const asked = { parent: root, identity: { name, description, relationship } };
    return (found.identities[0] ?? (await identities.createIdentity(asked))).uid;
  }

  const platform = await group(root, "platform", "Builds and runs what the others stand on");
  await group(platform, "production", "What customers see");
  await group(root, "research", "Tries things out");
  const builder = await role("builder", "May create groups", [Capability.CAP_IAM_GROUPS_CREATE]);
  const workload = await workloadIdentity("ci", "The pipeline that builds and deploys");
  // What is bound already stays as it is.
  await bindings.createRoleBinding({
    parent: root,
    roleBinding: { identityUid: workload, roleUid: builtinRoleUid("viewer") },
  });
  return { root, platform, workload, builder };
}
