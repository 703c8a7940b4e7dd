// Synchronizes the store with a whole registry, for a registry that existed before, or whose events were lost:
// first it adds missing tags, then it removes tags that the registry does not have. The position is stored with
// every batch, so that an interrupted run can resume.
import type { Ids } from "../../kernel/ids.js";
import type { Clock } from "../../kernel/time.js";
import type { AuditRow, RepoRow, Store, TagRow, Tx } from "../../store/port.js";
import { type AuditContext, ensureAuditedRepo, recordTag } from "./apply-event.js";
import { isDigest } from "./notification.js";
import type { RegistryClient } from "./registry-client.js";
import { findGroupOfOrg, listRepoPaths, parseRepoPath } from "./repo-path.js";
import { applyTagDeletion, applyTagPush } from "./tag-events.js";

/** The number of tags that one transaction writes. */
const BATCH = 500;
/** The number of concurrent requests to the registry. */
const REQUESTS = 16;
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
  /** Receives the number of finished tags, of tags found so far, and of tags in the last batch. */
  readonly onProgress: (done: number, found: number, batch: number) => void;
}

/**
 * Synchronizes the whole registry.
 *
 * @returns the totals, those before an interruption included
 * @throws ApiError UNAVAILABLE when the registry fails; the next call resumes there.
 */
export async function syncRegistry(deps: SyncDeps): Promise<SyncState> {
  const state = await resumeOrStart(deps);
  if (state.stage === "add") {
    for await (const path of deps.registry.catalog(state.after)) await addTags(deps, state, path);
    Object.assign(state, { stage: "remove", after: "", path: "", tag: "" });
    await deps.store.write((tx) => savePosition(tx, state));
  }
  for (const root of await deps.store.read((tx) => tx.auditChain.roots())) await removeTags(deps, state, root);
  await deps.store.write((tx) => tx.settings.put(POSITION, ""));
  return state;
}

async function resumeOrStart({ store, clock }: SyncDeps): Promise<SyncState> {
  const kept = await store.read((tx) => tx.settings.get(POSITION));
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
  const group = parsed && (await store.read((tx) => findGroupOfOrg(tx, parsed.org)));
  if (parsed === undefined || group === undefined) {
    Object.assign(state, { after: path, unknown: state.unknown + 1 });
    return;
  }
  if (state.path !== path) Object.assign(state, { path, tag: "" });
  const tags = (await registry.tags(path)).sort().filter((tag) => tag > state.tag);
  const found = state.tags + tags.length;
  for (let start = 0; start < tags.length; start += BATCH) {
    const batch = tags.slice(start, start + BATCH);
    const current = await mapConcurrently(batch, async (tag) => {
      // The time is read before the digest, so that a push in between counts as newer.
      const timeMs = clock();
      return { name: tag, digest: await registry.digestOf(path, tag), timeMs };
    });
    const added = await store.write(async (tx) => {
      const nowMs = clock();
      const rows: AuditRow[] = [];
      const trace = buildContext(deps, nowMs);
      const repo = await ensureAuditedRepo(tx, group, parsed.repo, { ids: deps.ids, nowMs, trace, rows });
      for (const { name, digest, timeMs } of current) {
        if (digest === undefined || !isDigest(digest)) continue;
        if ((await tx.tags.named(repo.uid, name))?.digest === digest) continue;
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

async function removeTags(deps: SyncDeps, state: SyncState, root: string): Promise<void> {
  const { store } = deps;
  const query = { visible: [root], filter: {}, order: BY_UID, skip: 0, limit: 100 };
  let after = state.after > root ? state.after : "";
  for (;;) {
    const position = after === "" ? {} : { after: { key: after, uid: after } };
    const repos = await store.read(async (tx) => {
      const page = await tx.repos.list({ ...query, ...position });
      return Promise.all(page.rows.map(async (repo) => ({ repo, paths: await listRepoPaths(tx, repo) })));
    });
    for (const { repo, paths } of repos) await removeTagsOfRepo(deps, state, repo, paths);
    const last = repos.at(-1);
    if (last === undefined) return;
    after = last.repo.uid;
  }
}

async function removeTagsOfRepo(
  deps: SyncDeps,
  state: SyncState,
  repo: RepoRow,
  paths: readonly string[],
): Promise<void> {
  const { store, registry, clock } = deps;
  const existing = new Set<string>();
  for (const path of paths) for (const tag of await registry.tags(path)) existing.add(tag);
  const query = { visible: [repo.uid], filter: {}, order: BY_UID, skip: 0, limit: BATCH };
  let page = await store.read((tx) => tx.tags.listAll(query));
  for (;;) {
    const gone = page.rows.filter((row: TagRow) => row.updateTimeMs < state.startMs && !existing.has(row.name));
    if (gone.length > 0) {
      state.removed += await store.write(async (tx) => {
        const rows: AuditRow[] = [];
        const trace = buildContext(deps, clock());
        // The deletion has the time of the start, so that newer events win.
        for (const { name } of gone) recordTag(await applyTagDeletion(tx, repo.uid, name, state.startMs), trace, rows);
        await savePosition(tx, { ...state, removed: state.removed + rows.length });
        for (const row of rows) await tx.audit.append(row);
        return rows.length;
      });
    }
    const { next } = page;
    if (next === undefined) break;
    page = await store.read((tx) => tx.tags.listAll({ ...query, after: next }));
  }
  state.after = repo.uid;
}

const BY_UID = { field: "uid", descending: false };

function buildContext({ ids }: SyncDeps, timeMs: number): AuditContext {
  return { method: "arbor registry sync", remoteAddress: "", actorUid: "", requestId: ids.newId(), timeMs };
}

// Maps a few items at a time; the results keep the order of `items`.
async function mapConcurrently<T, R>(items: readonly T[], of: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length);
  let next = 0;
  const work = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await of(items[i] as T);
  };
  await Promise.all(Array.from({ length: REQUESTS }, work));
  return results;
}
