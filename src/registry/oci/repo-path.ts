// The path of a repo in the registry: `<org>/<repo>`, where the organisation is the uid of a group, slashes
// included, or the name that was recorded when a root group was verified. Every repo has one path; repos of an
// organisation that was verified later may still be found at its uid until they are moved.
import { isUidp } from "../../kernel/uidp.js";
import { groupKind } from "../../store/iam/groups.js";
import type { RepoRow } from "../../store/registry/repos.js";
import type { UidPath } from "../../store/tables/registry.js";
import type { Tx } from "../../store/transaction.js";

export interface RepoPath {
  /** The uid of a group, or what may be the name of a verified root group. */
  readonly org: string;
  /** The repo's own name. */
  readonly repo: string;
}

/** The longest path, in characters (`NameTotalLengthMax` of distribution). */
const MAX_PATH = 255;

/** The longest name of a repo, in characters. */
const MAX_REPO = 128;

// A component of a name (OCI distribution specification, "Pulling manifests"). The expression is unambiguous, so
// matching takes linear time.
const COMPONENT = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;

/** Whether a repo may have this name: one component of an OCI name, at most 128 characters. */
export function isRepoName(name: string): boolean {
  return name.length <= MAX_REPO && COMPONENT.test(name);
}

/** Parses a path; undefined for a text that is not a path of a repo. */
export function parseRepoPath(path: string): RepoPath | undefined {
  if (path.length > MAX_PATH) return undefined;
  const slash = path.lastIndexOf("/");
  const org = path.slice(0, Math.max(slash, 0));
  const repo = path.slice(slash + 1);
  return (isUidp(org) || COMPONENT.test(org)) && isRepoName(repo) ? { org, repo } : undefined;
}

/** The group of a path, and the one path of the repo that the path names. */
export interface RepoLocation {
  readonly groupUid: string;
  /** Where the repo is pushed to. */
  readonly path: string;
  /** Set for another path, by the uid of an organisation with a name: what that path leads to. */
  readonly uidPath?: UidPath;
}

/**
 * Locates the repo of a path. Only recorded names of verified organisations count, because anybody can give a group
 * any name. Undefined where there is no such group; the repo need not exist.
 */
export async function locateRepo(tx: Tx, { org, repo }: RepoPath): Promise<RepoLocation | undefined> {
  const record = isUidp(org) ? undefined : await tx.registry.findByName(org);
  const groupUid = isUidp(org) ? org : record?.groupUid;
  if (groupUid === undefined || (await tx.table(groupKind).find(groupUid)) === undefined) return undefined;
  const { path, uidPath } = await resolvePath(tx, groupUid, repo);
  return path === `${org}/${repo}` ? { groupUid, path } : { groupUid, path, ...(uidPath && { uidPath }) };
}

/**
 * Lists the paths of a repo in the registry: the one that it is pushed to, and the one by the uid of its
 * organisation until it is moved.
 */
export async function listRepoPaths(tx: Tx, { groupUid, name }: RepoRow): Promise<string[]> {
  const { path, uidPath = "moved" } = await resolvePath(tx, groupUid, name);
  const paths = uidPath === "moved" ? [path] : [path, `${groupUid}/${name}`];
  return paths.filter((one) => parseRepoPath(one) !== undefined);
}

// A name that makes no path with the repo, such as a very long one, leaves the repo at the uid.
async function resolvePath(tx: Tx, groupUid: string, repo: string): Promise<Pick<RepoLocation, "path" | "uidPath">> {
  const record = groupUid.includes("/") ? undefined : await tx.registry.findName(groupUid);
  const named = `${record?.name}/${repo}`;
  if (record === undefined || parseRepoPath(named) === undefined) return { path: `${groupUid}/${repo}` };
  return { path: named, uidPath: record.uidPath };
}
