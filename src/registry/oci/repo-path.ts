// The path of a repo in the registry: `<org>/<repo>`, where the organisation is a
// group's uid with its slashes, or the name of a root group that was verified.
import { isUidp } from "../../kernel/uidp.js";
import type { Tx } from "../../store/port.js";

/** A repo's place as a registry names it. */
export interface RepoPath {
  /** The uid of a group, or what may be the name of a verified root group. */
  readonly org: string;
  /** The repo's own name. */
  readonly repo: string;
}

/** How long a path may be, in characters: what registries take (distribution, `NameTotalLengthMax`). */
const MAX_PATH = 255;

/** How long the name of a repo may be, in characters. */
const MAX_REPO = 128;

// A component of a name, OCI distribution specification, "Pulling manifests". Nothing in it can be
// read in two ways, so it takes no longer than the text is long.
const COMPONENT = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;

/** Whether a repo may have this name: one component of an OCI name, at most 128 characters. */
export function isRepoName(name: string): boolean {
  return name.length <= MAX_REPO && COMPONENT.test(name);
}

/** The organisation and the repo that a path names; undefined: no repo can have that path. */
export function parseRepoPath(path: string): RepoPath | undefined {
  if (path.length > MAX_PATH) return undefined;
  const slash = path.lastIndexOf("/");
  const org = path.slice(0, Math.max(slash, 0));
  const repo = path.slice(slash + 1);
  return (isUidp(org) || COMPONENT.test(org)) && isRepoName(repo) ? { org, repo } : undefined;
}

/**
 * The uid of the existing group that the organisation of a path stands for. Names that were not
 * verified stand for nothing: anybody can give a group any name.
 */
export async function groupOfOrg(tx: Tx, org: string): Promise<string | undefined> {
  if (isUidp(org)) return (await tx.groups.get(org))?.uid;
  return (await tx.groups.verifiedRoot(org))?.uid;
}
