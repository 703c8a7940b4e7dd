// Walks a whole registry, for one that was there before, or whose news were
// lost: what is missing here is added, then what is gone there is removed. The
// place it has come to is stored with every batch, so a walk that was cut off
// goes on where it was.
import type { Clock } from "../../kernel/clock.js";
import type { Ids } from "../../kernel/ids.js";
import type { AuditRow, RepoRow, Store, TagRow, Tx } from "../../store/port.js";
import { recordTag, repoFor, type Trace } from "./apply-event.js";
import { isDigest } from "./notification.js";
import type { RegistryClient } from "./registry-client.js";
import { groupOfOrg, parseRepoPath } from "./repo-path.js";
import { pathsOfRepo } from "./repo-paths.js";
import { tagDeleted, tagPushed } from "./tag-news.js";

/** How many tags are written in one transaction. */
const BATCH = 500;
/** How many requests to the registry run at once. */
const REQUESTS = 16;
const POSITION = "registry-sync";

/** A walk that was cut off is begun anew when it is older than this, in milliseconds. */
const MAX_AGE_MS = 24 * 3_600_000;

/** How a walk stands. */
export interface SyncState {
  /** When it began, in epoch milliseconds. */
  readonly startMs: number;
  /** What it does: add what is missing, or remove what is gone. */
  stage: "add" | "remove";
  /** The last repo it is done with, by path where it adds and by uid where it removes. */
  after: string;
  /** The path it is at, and the last tag there that it is done with. */
  path: string;
  tag: string;
  /** Tags looked at in the registry. */
  tags: number;
  /** Tags and repos that were added or changed here. */
  added: number;
  removed: number;
  /** Repos of the registry that belong to no group here. */
  unknown: number;
}

/** What a walk needs. */
export interface SyncDeps {
  readonly store: Store;
  readonly registry: RegistryClient;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Told how many tags are done of those found so far, and how many of them just now. */
  readonly onProgress: (done: number, found: number, batch: number) => void;
}

/**
 * Walks the registry to its end.
 *
 * @returns how it went, parts before an interruption included
 * @throws ApiError UNAVAILABLE when the registry fails; called again, it goes on from there.
 */
export async function syncRegistry(deps: SyncDeps): Promise<SyncState> {
  const state = await begun(deps);
  if (state.stage === "add") {
    for await (const path of deps.registry.catalog(state.after)) await addTags(deps, state, path);
    Object.assign(state, { stage: "remove", after: "", path: "", tag: "" });
    await deps.store.write((tx) => keep(tx, state));
  }
  for (const root of await deps.store.read((tx) => tx.auditChain.roots())) await removeTags(deps, state, root);
  await deps.store.write((tx) => tx.settings.put(POSITION, ""));
  return state;
}

async function begun({ store, clock }: SyncDeps): Promise<SyncState> {
  const kept = await store.read((tx) => tx.settings.get(POSITION));
  const left = kept ? (JSON.parse(kept) as SyncState) : undefined;
  if (left !== undefined && left.startMs > clock() - MAX_AGE_MS) return left;
  return { startMs: clock(), stage: "add", after: "", path: "", tag: "", tags: 0, added: 0, removed: 0, unknown: 0 };
}

function keep(tx: Tx, state: SyncState) {
  return tx.settings.put(POSITION, JSON.stringify(state));
}

async function addTags(deps: SyncDeps, state: SyncState, path: string): Promise<void> {
  const { store, registry, clock, onProgress } = deps;
  const place = parseRepoPath(path);
  const group = place && (await store.read((tx) => groupOfOrg(tx, place.org)));
  if (place === undefined || group === undefined) {
    Object.assign(state, { after: path, unknown: state.unknown + 1 });
    return;
  }
  if (state.path !== path) Object.assign(state, { path, tag: "" });
  const tags = (await registry.tags(path)).sort().filter((tag) => tag > state.tag);
  const found = state.tags + tags.length;
  for (let start = 0; start < tags.length; start += BATCH) {
    const batch = tags.slice(start, start + BATCH);
    const seen = await withDigests(batch, async (tag) => {
      // Before it is asked for: what is pushed meanwhile is newer.
      const timeMs = clock();
      return { name: tag, digest: await registry.digestOf(path, tag), timeMs };
    });
    const added = await store.write(async (tx) => {
      const nowMs = clock();
      const rows: AuditRow[] = [];
      const trace = traceOf(deps, nowMs);
      const repo = await repoFor(tx, group, place.repo, { ids: deps.ids, nowMs, trace, rows });
      for (const { name, digest, timeMs } of seen) {
        if (digest === undefined || !isDigest(digest)) continue;
        if ((await tx.tags.named(repo.uid, name))?.digest === digest) continue;
        recordTag(await tagPushed(tx, { repoUid: repo.uid, name, digest, timeMs }, deps.ids), trace, rows);
      }
      const next = { tag: batch.at(-1) ?? "", tags: state.tags + batch.length, added: state.added + rows.length };
      await keep(tx, { ...state, ...next });
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
      return Promise.all(page.rows.map(async (repo) => ({ repo, paths: await pathsOfRepo(tx, repo) })));
    });
    for (const { repo, paths } of repos) await removeFrom(deps, state, repo, paths);
    const last = repos.at(-1);
    if (last === undefined) return;
    after = last.repo.uid;
  }
}

async function removeFrom(deps: SyncDeps, state: SyncState, repo: RepoRow, paths: readonly string[]): Promise<void> {
  const { store, registry, clock } = deps;
  const there = new Set<string>();
  for (const path of paths) for (const tag of await registry.tags(path)) there.add(tag);
  const query = { visible: [repo.uid], filter: {}, order: BY_UID, skip: 0, limit: BATCH };
  let page = await store.read((tx) => tx.tags.listAll(query));
  for (;;) {
    const gone = page.rows.filter((row: TagRow) => row.updateTimeMs < state.startMs && !there.has(row.name));
    if (gone.length > 0) {
      state.removed += await store.write(async (tx) => {
        const rows: AuditRow[] = [];
        const trace = traceOf(deps, clock());
        // As of the start: whatever is known to be newer stays.
        for (const { name } of gone) recordTag(await tagDeleted(tx, repo.uid, name, state.startMs), trace, rows);
        await keep(tx, { ...state, removed: state.removed + rows.length });
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

function traceOf({ ids }: SyncDeps, timeMs: number): Trace {
  return { method: "arbor registry sync", remoteAddress: "", actorUid: "", requestId: ids.newId(), timeMs };
}

// A few at a time, in the order of `items`.
async function withDigests<T, R>(items: readonly T[], of: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = new Array(items.length);
  let next = 0;
  const work = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await of(items[i] as T);
  };
  await Promise.all(Array.from({ length: REQUESTS }, work));
  return results;
}
