// The scopes that a client requests for a registry token, and the access that it is granted (distribution,
// "Docker Registry Token Scope and Access").
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import type { Principal } from "../../kernel/principal.js";
import { lineageOf } from "../../kernel/uidp.js";
import { addMappedGrants, bitOf, readCaller } from "../../pipeline/auth/authorize.js";
import { earlierOf } from "../../pipeline/auth/caller.js";
import { repoKind } from "../../store/registry/repos.js";
import type { Tx } from "../../store/transaction.js";
import { locateRepo, parseRepoPath, type RepoPath } from "./repo-path.js";

export type RepoAction = "pull" | "push" | "delete";

/** A repo and the actions that a client requests. */
export interface RequestedRepoAccess {
  /** The name of the repo, as requested. */
  readonly name: string;
  readonly path: RepoPath;
  /** Each once, in this order: pull, push, delete. */
  readonly actions: readonly RepoAction[];
}

const ACTIONS: readonly RepoAction[] = ["pull", "push", "delete"];

/**
 * The largest number of repos that one token is requested for. A push that mounts layers of other repos names each of
 * them. Each takes a few reads of the database.
 */
const MAX_REPOS = 100;

/**
 * Parses scopes, each `repository:<name>:<actions>`. Other types, names that no repo can have and unknown
 * actions are ignored. `*` stands for every action; some clients use it to delete. Scopes of the same repo count
 * once.
 *
 * @param values of the parameter `scope`, each a list with blanks between
 * @throws ApiError INVALID_ARGUMENT for more than 100 repos.
 */
export function parseScopes(values: readonly string[]): readonly RequestedRepoAccess[] {
  const scopes = values.flatMap((value) => value.split(" ")).filter(Boolean);
  const requested = new Map<string, Set<string>>();
  for (const scope of scopes) {
    const [type, name, actions, ...more] = scope.split(":");
    if (type !== "repository" || name === undefined || actions === undefined || more.length > 0) continue;
    const known = requested.get(name) ?? new Set();
    for (const action of actions.split(",")) known.add(action);
    requested.set(name, known);
  }
  if (requested.size > MAX_REPOS) {
    throw invalidArgument({ field: "scope", rule: `must name at most ${MAX_REPOS} repositories` });
  }
  return [...requested].flatMap(([name, given]) => {
    const path = parseRepoPath(name);
    const actions = given.has("*") ? ACTIONS : ACTIONS.filter((action) => given.has(action));
    return path === undefined || actions.length === 0 ? [] : [{ name, path, actions }];
  });
}

/** An entry of the claim `access` (distribution, "Docker Registry v2 Bearer token specification"). */
export interface Access {
  readonly type: "repository";
  readonly name: string;
  readonly actions: readonly RepoAction[];
}

const all = (...capabilities: readonly Capability[]) => capabilities.map((one) => ({ bit: bitOf(one) }));

/** The capabilities for each action. A registry serves blobs, manifests and lists of tags under `pull`. */
const needed = {
  pull: all(Capability.CAP_REPO_BLOBS_GET, Capability.CAP_MANIFEST_LIST, Capability.CAP_TAG_LIST),
  push: all(Capability.CAP_MANIFEST_CREATE, Capability.CAP_TAG_CREATE, Capability.CAP_TAG_UPDATE),
  delete: all(Capability.CAP_MANIFEST_DELETE, Capability.CAP_TAG_DELETE),
};

/** The first push creates the repo. */
const pushNewRepo = [...needed.push, ...all(Capability.CAP_REPO_CREATE)];

/** What a principal may do of what it requested. */
export interface ResolvedAccess {
  readonly granted: readonly Access[];
  /** The paths of repos that the principal has rights in and requested by a path that they do not have. */
  readonly elsewhere: readonly string[];
  /** When the first of the rights ends on which what is granted rests, in epoch milliseconds; null: never. */
  readonly endTimeMs: number | null;
}

/**
 * Reduces the requested scopes to what `principal` may do. A repo that does not exist gives the same result as
 * one of another organisation.
 *
 * @throws ApiError UNAUTHENTICATED when the identity is gone or deactivated, or its tokens were revoked.
 */
export async function resolveAccess(
  tx: Tx,
  principal: Principal,
  requested: readonly RequestedRepoAccess[],
): Promise<ResolvedAccess> {
  // This check runs without any scope as well, so that a client cannot log in with a deleted or deactivated identity.
  await readCaller(principal, [], tx.access.findIdentity(principal.identityUid, principal), tx);
  const granted: Access[] = [];
  const elsewhere: string[] = [];
  let endTimeMs: number | null = null;
  for (const one of requested) {
    const location = await locateRepo(tx, one.path);
    if (location === undefined) continue;
    const { groupUid, path, uidPath } = location;
    const { actions: allowed, endMs } = await filterActions(tx, principal, groupUid, one);
    if (allowed.length === 0) continue;
    const isServed = uidPath === undefined || (uidPath === "pulls" && allowed.every((action) => action === "pull"));
    if (isServed) {
      granted.push({ type: "repository", name: one.name, actions: allowed });
      endTimeMs = earlierOf(endTimeMs, endMs);
    } else elsewhere.push(path);
  }
  return { granted, elsewhere, endTimeMs };
}

async function filterActions(
  tx: Tx,
  principal: Principal,
  groupUid: string,
  { path, actions }: RequestedRepoAccess,
): Promise<{ readonly actions: readonly RepoAction[]; readonly endMs: number | null }> {
  const repo = await tx.table(repoKind).findByName(groupUid, path.repo);
  const resource = repo?.uid ?? groupUid;
  const grants = addMappedGrants(
    principal,
    tx.access.findGrantsAt(principal.identityUid, lineageOf(resource), principal),
    tx,
  );
  const caller = await readCaller(principal, [], grants, tx);
  const neededFor = (action: RepoAction) => (action === "push" && repo === undefined ? pushNewRepo : needed[action]);
  const allowed = actions.filter((action) => {
    // Old bindings of `anonymous` may grant more than today's rule allows.
    if (principal.identityUid === ANONYMOUS_UID && action !== "pull") return false;
    return caller.holds(neededFor(action), resource);
  });
  return { actions: allowed, endMs: caller.endOf(allowed.flatMap(neededFor), resource) };
}
