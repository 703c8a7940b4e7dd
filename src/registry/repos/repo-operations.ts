// What befalls repos, whoever asks for it: the API or a push to the registry.
import type { Ids } from "../../kernel/ids.js";
import type { RepoRow, Tx } from "../../store/port.js";

/** What making a row takes besides its contents. */
export interface RepoCreation {
  readonly ids: Ids;
  /** In epoch milliseconds. */
  readonly nowMs: number;
}

/** A repo that nothing is known of but its name, not stored yet. */
export function bareRepo(groupUid: string, name: string, { ids, nowMs }: RepoCreation): RepoRow {
  return {
    uid: ids.newUid(groupUid),
    groupUid,
    name,
    description: "",
    config: {},
    readme: "",
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
}

/** The repo of this name directly in a group, which must exist; made where there is none. */
export async function ensureRepo(tx: Tx, groupUid: string, name: string, making: RepoCreation): Promise<RepoRow> {
  const found = await tx.repos.named(groupUid, name);
  if (found !== undefined) return found;
  const row = bareRepo(groupUid, name, making);
  await tx.repos.insert(row);
  return row;
}

/** Deletes a repo with its tags and its deployment. */
export async function removeRepo(tx: Tx, uid: string): Promise<void> {
  await tx.tags.deleteOf(uid);
  await tx.registry.deleteManifestsOf(uid);
  await tx.registry.deleteDeployment(uid);
  await tx.repos.delete(uid);
}
