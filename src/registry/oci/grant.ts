// What the bearer of a credential may do with the repos asked for, by the rights
// that the store holds now.
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import type { Principal } from "../../kernel/principal.js";
import { lineageOf } from "../../kernel/uidp.js";
import { bitOf, callerOf, withMapped } from "../../pipeline/auth/authorize.js";
import type { Tx } from "../../store/port.js";
import { groupOfOrg } from "./repo-path.js";
import type { RepoAction, RequestedScope } from "./scope.js";

/** An entry of the claim `access` (distribution, "Docker Registry v2 Bearer token specification"). */
export interface Access {
  readonly type: "repository";
  readonly name: string;
  readonly actions: readonly RepoAction[];
}

const all = (...capabilities: readonly Capability[]) => capabilities.map((one) => ({ bit: bitOf(one) }));

/** What each action needs: a registry serves blobs, manifests and the list of tags by `pull` alone. */
const needed = {
  pull: all(Capability.CAP_REPO_BLOBS_GET, Capability.CAP_MANIFEST_LIST, Capability.CAP_TAG_LIST),
  push: all(Capability.CAP_MANIFEST_CREATE, Capability.CAP_TAG_CREATE, Capability.CAP_TAG_UPDATE),
  delete: all(Capability.CAP_MANIFEST_DELETE, Capability.CAP_TAG_DELETE),
};

/** The first push makes the repo. */
const pushAnew = [...needed.push, ...all(Capability.CAP_REPO_CREATE)];

/**
 * Of what is asked for, what `principal` may do. Nothing tells a repo that is not there from one
 * that belongs to others.
 *
 * @throws ApiError UNAUTHENTICATED when the identity is gone or its tokens were revoked.
 */
export async function grantedAccess(tx: Tx, principal: Principal, asked: readonly RequestedScope[]): Promise<Access[]> {
  // Also where nothing is asked for, so that the login of a client fails when its identity is gone.
  callerOf(principal, [], await tx.access.alone(principal.identityUid));
  const granted: Access[] = [];
  for (const one of asked) {
    const actions = await allowed(tx, principal, one);
    if (actions.length > 0) granted.push({ type: "repository", name: one.name, actions });
  }
  return granted;
}

async function allowed(
  tx: Tx,
  principal: Principal,
  { path, actions }: RequestedScope,
): Promise<readonly RepoAction[]> {
  const group = await groupOfOrg(tx, path.org);
  if (group === undefined) return [];
  const repo = await tx.repos.named(group, path.repo);
  const place = repo?.uid ?? group;
  const held = await withMapped(principal, tx.access.at(principal.identityUid, lineageOf(place)), tx);
  const caller = callerOf(principal, [], held);
  return actions.filter((action) => {
    // Whatever its bindings say: those from before it was held to pull roles may say more.
    if (principal.identityUid === ANONYMOUS_UID && action !== "pull") return false;
    const capabilities = action === "push" && repo === undefined ? pushAnew : needed[action];
    return caller.holds(capabilities, place);
  });
}
