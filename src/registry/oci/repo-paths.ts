import type { RepoRow, Tx } from "../../store/port.js";
import { parseRepoPath } from "./repo-path.js";

/** The paths that a repo may have in the registry: by its group's uid, and by the name of a verified root. */
export async function pathsOfRepo(tx: Tx, { groupUid, name }: RepoRow): Promise<string[]> {
  const paths = [`${groupUid}/${name}`];
  const group = groupUid.includes("/") ? undefined : await tx.groups.get(groupUid);
  if (group?.verified) paths.push(`${group.name}/${name}`);
  return paths.filter((path) => parseRepoPath(path) !== undefined);
}
