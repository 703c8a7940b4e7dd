// The interfaces of the stores of repos, tags, images and advisories.
import type { Awaitable, IndexedStore, ListQuery, Page } from "./port-lists.js";
import type { AdvisoryEventRow, AdvisoryRow } from "./tables/advisories.js";
import type {
  DeploymentRow,
  ManifestRow,
  RegistrySettingsRow,
  RepoRow,
  TagFamily,
  TagMove,
  TagRow,
} from "./tables/registry.js";

/** Repos. */
export interface RepoStore extends IndexedStore<RepoRow> {
  /** The child of the group with this name. */
  named(groupUid: string, name: string): Awaitable<RepoRow | undefined>;
}

/** Tags. `list` without a filter on families contains only usual tags, whose order is stored separately. */
export interface TagStore extends IndexedStore<TagRow> {
  named(repoUid: string, name: string): Awaitable<TagRow | undefined>;
  /** Lists tags of these families, or of all. */
  listAll(query: ListQuery, families?: readonly TagFamily[]): Promise<Page<TagRow>>;
  /** Records the digest that a tag points to; does nothing when it is already recorded. */
  moved(move: TagMove): Awaitable<void>;
  /** The moves of a tag from `fromMs` to before `toMs`, oldest first, at most `limit`. */
  history(tagUid: string, fromMs: number, toMs: number, limit: number): Awaitable<TagMove[]>;
  /** When a tag was last pushed or deleted according to the registry; undefined: never. */
  mark(repoUid: string, name: string): Awaitable<number | undefined>;
  putMark(repoUid: string, name: string, timeMs: number): Awaitable<void>;
  /** Deletes all tags of a repo with their histories and marks. */
  deleteOf(repoUid: string): Promise<void>;
  /** Deletes marks older than `timeMs` of tags that no longer exist. */
  sweepMarks(timeMs: number): Awaitable<void>;
}

/** Events of a registry, contents of its manifests, and its settings. */
export interface RegistryStore {
  /** Records an event of a registry; false when it is already recorded. */
  see(id: string, timeMs: number): Promise<boolean>;
  /** Deletes events older than `timeMs`. */
  sweep(timeMs: number): Awaitable<void>;
  manifest(repoUid: string, digest: string): Awaitable<ManifestRow | undefined>;
  putManifest(row: ManifestRow): Awaitable<void>;
  deleteManifestsOf(repoUid: string): Awaitable<void>;
  deployment(repoUid: string): Awaitable<DeploymentRow | undefined>;
  /** Inserts or replaces a deployment. */
  putDeployment(row: DeploymentRow): Awaitable<void>;
  deleteDeployment(repoUid: string): Awaitable<void>;
  settings(groupUid: string): Awaitable<RegistrySettingsRow | undefined>;
  /** Inserts or replaces the settings of a group. */
  putSettings(row: RegistrySettingsRow): Awaitable<void>;
  deleteSettings(groupUid: string): Awaitable<void>;
}

/** Advisories. Their filters are named in `ListFilter.equals`; see advisory-store.ts. */
export interface AdvisoryStore extends IndexedStore<AdvisoryRow> {
  /** The advisory that was imported from this record. */
  fromSource(groupUid: string, sourceKey: string): Awaitable<AdvisoryRow | undefined>;
  /** The events of these advisories, ordered by advisory, then oldest first. */
  events(advisoryUids: readonly string[]): Awaitable<AdvisoryEventRow[]>;
  putEvent(row: AdvisoryEventRow): Awaitable<void>;
  deleteEvents(advisoryUid: string): Awaitable<void>;
}
