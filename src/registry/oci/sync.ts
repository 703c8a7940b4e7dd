// Synchronizes the store with a whole registry, for a registry that existed before, or whose events were lost:
// first it adds missing tags, then it removes tags that the registry does not have. The position is stored with
// every batch, so that an interrupted run can resume. Until the repos of an organisation are moved to its name, a repo
// has the tags of both of its paths, and those of the name count where both have one.
import { failedPrecondition } from "../../kernel/errors.js";
import type { Ids } from "../../kernel/ids.js";
import type { Clock } from "../../kernel/time.js";
import { repoKind } from "../../store/registry/repos.js";
import { type TagRow, tagKind } from "../../store/registry/tags.js";
import type { Store } from "../../store/store.js";
import type { AuditRow } from "../../store/tables/audit.js";
import type { Tx } from "../../store/transaction.js";
import { type AuditContext, ensureAuditedRepo, recordTag } from "./apply-event.js";
import { mapConcurrently, type RegistryClient } from "./registry-client.js";
import { listRepoPaths, locateRepo, parseRepoPath } from "./repo-path.js";
import { applyTagDeletion, applyTagPush } from "./tag-events.js";

/** The number of tags that one transaction writes. */
const BATCH = 500;
const POSITION = "registry-sync";

/** An interrupted run older than this starts again from the beginning, in milliseconds. */
const MAX_AGE_MS = 24 * 3_600_000;

/** The progress of a run. */
export interface SyncState {
  /** The start of the run, in epoch milliseconds. */
  readonly startMs: number;
  /** Whether missing tags are added, or deleted ones removed. */
  stage: "add" | "remove";
  /** The last finished repo: its path in the stage `add`, its uid in the stage `remove`. */
  after: string;
  /** The current path, and the last finished tag there. */
  path: string;
  tag: string;
  /** Tags read from the registry. */
  tags: number;
  /** Tags and repos that were added or changed in the store. */
  added: number;
  removed: number;
  /** Repos of the registry that belong to no group. */
  unknown: number;
}

export interface SyncDeps {
  readonly store: Store;
  readonly registry: RegistryClient;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Whether more than half of all tags may be removed. */
  readonly allowMassRemoval: boolean;
  /** Receives the number of finished tags, of tags found so far, and of tags in the last batch. */
  readonly onProgress: (done: number, found: number, batch: number) => void;
}

/**
 * Synchronizes the whole registry.
 *
 * @returns the totals, those before an interruption included
 * @throws ApiError UNAVAILABLE when the registry fails; the next call resumes there. FAILED_PRECONDITION when it would
 * remove too many tags; the next call starts from the beginning.
 */
export async function syncRegistry(deps: SyncDeps): Promise<SyncState> {
  const state = await resumeOrStart(deps);
  if (state.stage === "add") {
    for await (const path of deps.registry.listRepos(state.after)) await addTags(deps, state, path);
    Object.assign(state, { stage: "remove", after: "", path: "", tag: "" });
    await deps.store.write((tx) => savePosition(tx, state));
  }
  if (!deps.allowMassRemoval) await requireFewRemovals(deps, state);
  for await (const repo of readRepos(deps.store, state.after)) await removeTags(deps, state, repo);
  await deps.store.write((tx) => tx.settings.put(POSITION, ""));
  return state;
}

async function resumeOrStart({ store, clock }: SyncDeps): Promise<SyncState> {
  const kept = await store.read((tx) => tx.settings.find(POSITION));
  const left = kept ? (JSON.parse(kept) as SyncState) : undefined;
  if (left !== undefined && left.startMs > clock() - MAX_AGE_MS) return left;
  return { startMs: clock(), stage: "add", after: "", path: "", tag: "", tags: 0, added: 0, removed: 0, unknown: 0 };
}

function savePosition(tx: Tx, state: SyncState) {
  return tx.settings.put(POSITION, JSON.stringify(state));
}

async function addTags(deps: SyncDeps, state: SyncState, path: string): Promise<void> {
  const { store, registry, clock, onProgress } = deps;
  const parsed = parseRepoPath(path);
  const location = parsed && (await store.read((tx) => locateRepo(tx, parsed)));
  if (parsed === undefined || location === undefined) {
    Object.assign(state, { after: path, unknown: state.unknown + 1 });
    return;
  }
  const { groupUid, uidPath } = location;
  if (uidPath === "moved") {
    state.after = path;
    return;
  }
  if (state.path !== path) Object.assign(state, { path, tag: "" });
  const shadowed = new Set(uidPath === undefined ? [] : await registry.listTags(location.path));
  const tags = (await registry.listTags(path)).sort().filter((tag) => tag > state.tag && !shadowed.has(tag));
  const found = state.tags + tags.length;
  for (let start = 0; start < tags.length; start += BATCH) {
    const batch = tags.slice(start, start + BATCH);
    const current = await mapConcurrently(batch, async (tag) => {
      // The time is read before the digest, so that a push in between counts as newer.
      const timeMs = clock();
      return { name: tag, digest: await registry.findDigest(path, tag), timeMs };
    });
    const added = await store.write(async (tx) => {
      const nowMs = clock();
      const rows: AuditRow[] = [];
      const trace = buildContext(deps, nowMs);
      const repo = await ensureAuditedRepo(tx, groupUid, parsed.repo, { ids: deps.ids, nowMs, trace, rows });
      for (const { name, digest, timeMs } of current) {
        if (digest === undefined) continue;
        if ((await tx.table(tagKind).findByName(repo.uid, name))?.digest === digest) continue;
        recordTag(await applyTagPush(tx, { repoUid: repo.uid, name, digest, timeMs }, deps.ids), trace, rows);
      }
      const next = { tag: batch.at(-1) ?? "", tags: state.tags + batch.length, added: state.added + rows.length };
      await savePosition(tx, { ...state, ...next });
      for (const row of rows) await tx.audit.append(row);
      return next;
    });
    Object.assign(state, added);
    onProgress(state.tags, found, batch.length);
  }
  state.after = path;
}

// A registry that lost its storage, or another one by mistake, has none of the tags.
async function requireFewRemovals({ store, registry }: SyncDeps, { startMs }: SyncState): Promise<void> {
  let [total, gone] = [0, 0];
  for await (const repo of readRepos(store, "")) {
    for await (const rows of readOldTags(store, registry, repo, startMs)) {
      total += rows.filter(({ row }) => row.createTimeMs < startMs).length;
      gone += rows.filter(({ isGone }) => isGone).length;
    }
  }
  if (gone * 2 <= total) return;
  await store.write((tx) => tx.settings.put(POSITION, ""));
  const rule = "check --registry-url, or remove them with --allow-mass-removal";
  throw failedPrecondition("MASS_REMOVAL", `the registry lacks ${gone} of ${total} tags: ${rule}`);
}

/** A repo with its paths in the registry. */
interface RepoPaths {
  readonly uid: string;
  readonly paths: readonly string[];
}

// The repos of all organisations after a uid, in the order of their uids.
async function* readRepos(store: Store, afterUid: string): AsyncGenerator<RepoPaths> {
  for (const root of await store.read((tx) => tx.auditChain.listRoots())) {
    const query = { visible: [root], filter: {}, order: BY_UID, skip: 0, limit: 100 };
    let after = afterUid > root ? afterUid : "";
    for (;;) {
      const position = after === "" ? {} : { after: { key: after, uid: after } };
      const page = await store.read(async (tx) => {
        const { rows } = await tx.table(repoKind).list({ ...query, ...position });
        return Promise.all(rows.map(async (repo) => ({ uid: repo.uid, paths: await listRepoPaths(tx, repo) })));
      });
      yield* page;
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.uid;
    }
  }
}

// The tags of a repo in pages. A tag is gone if it did not change since the start and the registry does not have it.
async function* readOldTags(
  store: Store,
  registry: RegistryClient,
  { uid, paths }: RepoPaths,
  startMs: number,
): AsyncGenerator<readonly { readonly row: TagRow; readonly isGone: boolean }[]> {
  const existing = new Set<string>();
  for (const path of paths) for (const tag of await registry.listTags(path)) existing.add(tag);
  const query = { visible: [uid], filter: {}, order: BY_UID, skip: 0, limit: BATCH };
  let page = await store.read((tx) => tx.table(tagKind).listAll(query));
  for (;;) {
    yield page.rows.map((row) => ({ row, isGone: row.updateTimeMs < startMs && !existing.has(row.name) }));
    const { next } = page;
    if (next === undefined) return;
    page = await store.read((tx) => tx.table(tagKind).listAll({ ...query, after: next }));
  }
}

async function removeTags(deps: SyncDeps, state: SyncState, repo: RepoPaths): Promise<void> {
  const { store, registry, clock } = deps;
  for await (const tags of readOldTags(store, registry, repo, state.startMs)) {
    const gone = tags.filter(({ isGone }) => isGone);
    if (gone.length === 0) continue;
    state.removed += await store.write(async (tx) => {
      const rows: AuditRow[] = [];
      const trace = buildContext(deps, clock());
      // The deletion has the time of the start, so that newer events win.
      for (const { row } of gone) recordTag(await applyTagDeletion(tx, repo.uid, row.name, state.startMs), trace, rows);
      await savePosition(tx, { ...state, removed: state.removed + rows.length });
      for (const row of rows) await tx.audit.append(row);
      return rows.length;
    });
  }
  state.after = repo.uid;
}

const BY_UID = { field: "uid", descending: false };

function buildContext({ ids }: SyncDeps, timeMs: number): AuditContext {
  return { method: "arbor registry sync", remoteAddress: "", actorUid: "", requestId: ids.newId(), timeMs };
}
