// Moves the repos of verified organisations in the registry, from paths by their uids to paths by their names.
import { formatBody, REGISTRY_MOVED } from "../../kernel/audit-body.js";
import { failedPrecondition } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { Clock } from "../../kernel/time.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import { groupKind } from "../../store/iam/groups.js";
import { repoKind } from "../../store/registry/repos.js";
import { tagKind } from "../../store/registry/tags.js";
import type { Store } from "../../store/store.js";
import type { RegistryNameRow } from "../../store/tables/registry.js";
import { type CopyCounts, type CopyDeps, copyRepo, deleteCopied, type RepoMove } from "./copy-repo.js";
import { parseDigest } from "./reference.js";
import type { RegistryClient } from "./registry-client.js";
import { parseRepoPath } from "./repo-path.js";

export interface MoveDeps extends Pick<CopyDeps, "onBroken" | "onProgress"> {
  readonly store: Store;
  readonly registry: RegistryClient;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Whether the paths by uid are deleted afterwards. */
  readonly deleteOld: boolean;
  /** Whether an organisation is moved although some of its images could not be copied. */
  readonly skipBroken: boolean;
}

/** What was done. */
export interface MoveCounts extends CopyCounts {
  /** Organisations whose repos are found under their names alone from now on. */
  organisations: number;
  /** The repos of these organisations. */
  repos: number;
}

/**
 * Moves all organisations that are not moved yet. Pulls by uid end when all repos of an organisation are copied. An
 * interrupted run is repeated: it copies what is missing.
 *
 * @throws ApiError UNAVAILABLE when the registry fails, FAILED_PRECONDITION where it can only be read, or has nothing
 * of an organisation with tags
 */
export async function moveRegistry(deps: MoveDeps): Promise<MoveCounts> {
  const counts = { organisations: 0, repos: 0, tags: 0, manifests: 0, blobs: 0, broken: 0, deleted: 0, kept: 0 };
  const copyDeps = { ...deps, counts };
  for (const { record, repos } of await findOrganisations(deps)) {
    if (record.uidPath !== "moved") {
      const before = counts.broken;
      for (const repo of repos) await copyRepo(await readMove(deps, record, repo), copyDeps);
      if (counts.broken > before && !deps.skipBroken) continue;
      await markMoved(deps, record);
      counts.organisations++;
      counts.repos += repos.length;
    }
    if (!deps.deleteOld) continue;
    for (const repo of repos) await deleteCopied(await readMove(deps, record, repo), copyDeps);
  }
  return counts;
}

interface Organisation {
  readonly record: RegistryNameRow;
  /** The names of the repos under its uid in the registry. */
  readonly repos: string[];
  /** Whether the registry has any repo of it. */
  isFound: boolean;
}

async function findOrganisations({ store, registry }: MoveDeps): Promise<readonly Organisation[]> {
  const organisations = await store.read(async (tx) => {
    const existing: Organisation[] = [];
    for (const record of await tx.registry.listNames()) {
      if (await tx.table(groupKind).find(record.groupUid)) existing.push({ record, repos: [], isFound: false });
    }
    return existing;
  });
  const byOrg = new Map(
    organisations.flatMap((one) => [[one.record.groupUid, one] as const, [one.record.name, one] as const]),
  );
  for await (const path of registry.listRepos("")) {
    const { org = "", repo = "" } = parseRepoPath(path) ?? {};
    const organisation = byOrg.get(isUidp(org) ? rootOf(org) : org);
    if (organisation === undefined) continue;
    const { record, repos } = organisation;
    organisation.isFound = true;
    if (org === record.groupUid && parseRepoPath(`${record.name}/${repo}`) !== undefined) repos.push(repo);
  }
  for (const { record, isFound } of organisations) if (!isFound) await requireNoTags(store, record);
  return organisations;
}

// A registry that has nothing of an organisation is another one, unless there is nothing.
async function requireNoTags(store: Store, { groupUid, name, uidPath }: RegistryNameRow): Promise<void> {
  if (uidPath === "moved") return;
  const order = { field: "uid", descending: false };
  const query = { visible: [groupUid], filter: {}, order, skip: 0, limit: 1 };
  const { total } = await store.read((tx) => tx.table(tagKind).listAll(query));
  if (total === 0) return;
  throw failedPrecondition("REGISTRY", `the registry has no repo of ${name}: check --registry-url, or sync first`);
}

async function readMove({ store }: MoveDeps, { groupUid, name }: RegistryNameRow, repo: string): Promise<RepoMove> {
  const stored = await store.read(async (tx) => {
    const row = await tx.table(repoKind).findByName(groupUid, repo);
    return row === undefined ? [] : tx.table(tagKind).digestsOf(row.uid);
  });
  // Tags of version 1 may have no digest.
  const digests = stored.flatMap((digest) => parseDigest(digest) ?? []);
  return { from: `${groupUid}/${repo}`, to: `${name}/${repo}`, digests };
}

function markMoved({ store, ids, clock }: MoveDeps, record: RegistryNameRow): Promise<void> {
  return store.write(async (tx) => {
    await tx.registry.putName({ ...record, uidPath: "moved" });
    await tx.audit.append({
      rootUid: record.groupUid,
      timeMs: clock(),
      type: REGISTRY_MOVED,
      body: formatBody(
        { type: REGISTRY_MOVED, before: { path: record.groupUid }, after: { path: record.name } },
        REGISTRY_MOVED,
      ),
      method: "arbor registry move",
      subjectUid: record.groupUid,
      actorUid: "",
      tokenId: "",
      requestId: ids.newId(),
      remoteAddress: "",
    });
  });
}
