// What the rest of the service sees of the storage of the registry and of
// advisories; part of port.ts.
import type { Awaitable, ListedStore, ListQuery, Page } from "./port-lists.js";

/** A repo as stored. */
export interface RepoRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly name: string;
  readonly description: string;
  /** The JSON of its message's other fields. */
  readonly config: object;
  readonly readme: string;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** Repos. */
export interface RepoStore extends ListedStore<RepoRow> {
  /** The repo of this name directly in the group. */
  named(groupUid: string, name: string): Awaitable<RepoRow | undefined>;
}

/** What the name of a tag says of it: usual, or of a family that lists hide unless asked. */
export type TagFamily = 0 | 1 | 2 | 3;

/** A tag as stored. */
export interface TagRow {
  readonly uid: string;
  readonly repoUid: string;
  readonly name: string;
  readonly digest: string;
  /** 0 usual, 1 referrers (`sha256-…`), 2 dates (`…-20yymmdd`), 3 epochs (`…-rN`). */
  readonly family: TagFamily;
  readonly deprecated: boolean;
  readonly bundles: string[];
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** What a tag pointed to from a time on. */
export interface TagMove {
  readonly tagUid: string;
  readonly timeMs: number;
  readonly digest: string;
}

/** Tags. Lists without a filter on families hold the usual ones alone and stay flat. */
export interface TagStore extends ListedStore<TagRow> {
  named(repoUid: string, name: string): Awaitable<TagRow | undefined>;
  /** Lists tags of all families, or with `families` of these. */
  listAll(query: ListQuery, families?: readonly TagFamily[]): Promise<Page<TagRow>>;
  /** Records where a tag points; does nothing when it is known. */
  moved(move: TagMove): Awaitable<void>;
  /** Where a tag pointed from `fromMs` to before `toMs`, oldest first, at most `limit`. */
  history(tagUid: string, fromMs: number, toMs: number, limit: number): Awaitable<TagMove[]>;
  /** When a tag was last pushed or deleted as far as the registry told; undefined: never. */
  mark(repoUid: string, name: string): Awaitable<number | undefined>;
  putMark(repoUid: string, name: string, timeMs: number): Awaitable<void>;
  /** Deletes all tags of a repo with what is known of them. */
  deleteOf(repoUid: string): Promise<void>;
  /** Deletes marks older than `timeMs` of tags that are gone. */
  sweepMarks(timeMs: number): Awaitable<void>;
}

/** What the manifest of an image says, as far as it was asked for. */
export interface ManifestRow {
  readonly repoUid: string;
  readonly digest: string;
  /** Sizes in bytes by architecture. */
  readonly images: Readonly<Record<string, number>>;
}

/** Which charts a repo is deployed by. */
export interface DeploymentRow {
  readonly repoUid: string;
  /** The JSON of their messages, in the order given. */
  readonly charts: object;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** What is set for all repos of a group. */
export interface RegistrySettingsRow {
  readonly groupUid: string;
  readonly uniqueTags: boolean;
  readonly eolGracePeriod: boolean;
}

/** News from a registry, what its manifests say, and what is set for it. */
export interface RegistryStore {
  /** Remembers an event of a registry; false when it was known. */
  see(id: string, timeMs: number): Promise<boolean>;
  /** Forgets events older than `timeMs`. */
  sweep(timeMs: number): Awaitable<void>;
  manifest(repoUid: string, digest: string): Awaitable<ManifestRow | undefined>;
  putManifest(row: ManifestRow): Awaitable<void>;
  /** Forgets what is known of the manifests of a repo. */
  deleteManifestsOf(repoUid: string): Awaitable<void>;
  deployment(repoUid: string): Awaitable<DeploymentRow | undefined>;
  /** Stores a deployment, new or changed. */
  putDeployment(row: DeploymentRow): Awaitable<void>;
  deleteDeployment(repoUid: string): Awaitable<void>;
  settings(groupUid: string): Awaitable<RegistrySettingsRow | undefined>;
  /** Stores the settings of a group, new or changed. */
  putSettings(row: RegistrySettingsRow): Awaitable<void>;
  deleteSettings(groupUid: string): Awaitable<void>;
}

/** An advisory as stored. */
export interface AdvisoryRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly advisoryId: string;
  readonly legacyAdvisoryId: string;
  readonly author: string;
  readonly artifactName: string;
  readonly artifactType: string;
  readonly artifactArchitecture: string;
  readonly componentName: string;
  readonly componentLocation: string;
  readonly componentType: string;
  readonly aliases: string[];
  /** The JSON of its severities. */
  readonly severities: object;
  /** What a query looks through: lower case, names and aliases with line breaks between. */
  readonly searched: string;
  /** The type of its latest approved event; 0 where there is none. */
  readonly latestEventType: number;
  /** Where it was imported from; empty for others. */
  readonly sourceKey: string;
  /** The hash of the imported record. */
  readonly sourceHash: string;
  readonly deleteTimeMs: number | null;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** An event of an advisory as stored. */
export interface AdvisoryEventRow {
  readonly uid: string;
  readonly advisoryUid: string;
  /** The number of the EventTypeFilter. */
  readonly type: number;
  readonly author: string;
  readonly reviewer: string;
  readonly reviewState: number;
  /** The JSON of its message. */
  readonly data: object;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** Advisories. Their filters are named in `ListFilter.equals`; see advisory-store.ts. */
export interface AdvisoryStore extends ListedStore<AdvisoryRow> {
  /** The advisory that was imported from this record. */
  fromSource(groupUid: string, sourceKey: string): Awaitable<AdvisoryRow | undefined>;
  /** The events of these advisories, by advisory, oldest first. */
  events(advisoryUids: readonly string[]): Awaitable<AdvisoryEventRow[]>;
  putEvent(row: AdvisoryEventRow): Awaitable<void>;
  deleteEvents(advisoryUid: string): Awaitable<void>;
}
