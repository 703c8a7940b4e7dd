// The path of a repo in the registry: `<org>/<repo>`, where the organisation is the uid of a group, slashes
// included, or the name of a verified root group.
import { isUidp } from "../../kernel/uidp.js";
import type { RepoRow, Tx } from "../../store/port.js";

/** A parsed path. */
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

/**
 * Finds the uid of the group that the organisation of a path names. Only names of verified root groups count,
 * because anybody can give a group any name.
 */
export async function findGroupOfOrg(tx: Tx, org: string): Promise<string | undefined> {
  if (isUidp(org)) return (await tx.groups.get(org))?.uid;
  return (await tx.groups.verifiedRoot(org))?.uid;
}

/** Lists the paths of a repo in the registry: by the uid of its group, and by the name of a verified root group. */
export async function listRepoPaths(tx: Tx, { groupUid, name }: RepoRow): Promise<string[]> {
  const paths = [`${groupUid}/${name}`];
  const group = groupUid.includes("/") ? undefined : await tx.groups.get(groupUid);
  if (group?.verified) paths.push(`${group.name}/${name}`);
  return paths.filter((path) => parseRepoPath(path) !== undefined);
}
