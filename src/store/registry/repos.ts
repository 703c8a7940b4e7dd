// The stores of repos, and of what a registry reports about them and is configured with.
import { inArray, lt, sql } from "drizzle-orm";
import type { Awaitable } from "../awaitable.js";
import { IndexedTable } from "../lists/indexed-table.js";
import { defineListedKind, ownColumns, usualSorts } from "../lists/resource.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpsertValues,
  countRows,
  discardRows,
  type Executor,
  statement,
  takeFirst,
} from "../statement.js";
import type {
  DeploymentRow,
  ManifestRow,
  RegistryEventRow,
  RegistryNameRow,
  RegistrySettingsRow,
  RepoRow,
} from "../tables/registry.js";

/** Repos as they are listed. */
export const repoKind = defineListedKind(9, {
  table: (t) => t.repos,
  parent: "groupUid",
  quota: "repos",
  hasRowsBelow: true,
  sorts: usualSorts,
});

const repoByName = statement<{ groupUid: string; name: string }, RepoRow>((q, t) =>
  q
    .select(ownColumns(t.repos))
    .from(t.repos)
    .where(buildEquals(t.repos, "groupUid", "name")),
);

/** Repos. */
export class Repos extends IndexedTable<RepoRow> {
  constructor(tx: Executor) {
    super(tx, repoKind);
  }

  /** The child of the group with this name. */
  findByName(groupUid: string, name: string): Awaitable<RepoRow | undefined> {
    return takeFirst(this.tx.rows(repoByName, { groupUid, name }));
  }
}

const getEvent = statement<{ id: string }, RegistryEventRow>((q, t) =>
  q.select().from(t.registryEvents).where(buildEquals(t.registryEvents, "id")),
);
const insertEvent = statement<RegistryEventRow>((q, t) =>
  q.insert(t.registryEvents).values(buildInsertValues(t.registryEvents)),
);
const sweepEvents = statement<{ timeMs: number; limit: number }, { id: string }>((q, t) => {
  const old = q
    .select({ id: t.registryEvents.id })
    .from(t.registryEvents)
    .where(lt(t.registryEvents.timeMs, sql.placeholder("timeMs")))
    .limit(sql.placeholder("limit"));
  return q.delete(t.registryEvents).where(inArray(t.registryEvents.id, old)).returning({ id: t.registryEvents.id });
});
const getManifest = statement<Omit<ManifestRow, "images">, ManifestRow>((q, t) =>
  q
    .select()
    .from(t.manifests)
    .where(buildEquals(t.manifests, "repoUid", "digest")),
);
const putManifest = statement<ManifestRow>((q, t) =>
  q
    .insert(t.manifests)
    .values(buildInsertValues(t.manifests))
    .onConflictDoUpdate({
      target: [t.manifests.repoUid, t.manifests.digest],
      set: buildUpsertValues(t.manifests, "images"),
    }),
);

const deleteManifests = statement<{ repoUid: string }>((q, t) =>
  q.delete(t.manifests).where(buildEquals(t.manifests, "repoUid")),
);

const getDeployment = statement<{ repoUid: string }, DeploymentRow>((q, t) =>
  q.select().from(t.deployments).where(buildEquals(t.deployments, "repoUid")),
);
const putDeployment = statement<DeploymentRow>((q, t) =>
  q
    .insert(t.deployments)
    .values(buildInsertValues(t.deployments))
    .onConflictDoUpdate({
      target: t.deployments.repoUid,
      set: buildUpsertValues(t.deployments, "charts", "updateTimeMs"),
    }),
);
const deleteDeployment = statement<{ repoUid: string }>((q, t) =>
  q.delete(t.deployments).where(buildEquals(t.deployments, "repoUid")),
);
const getSettings = statement<{ groupUid: string }, RegistrySettingsRow>((q, t) =>
  q.select().from(t.registrySettings).where(buildEquals(t.registrySettings, "groupUid")),
);
const putSettings = statement<RegistrySettingsRow>((q, t) =>
  q
    .insert(t.registrySettings)
    .values(buildInsertValues(t.registrySettings))
    .onConflictDoUpdate({
      target: t.registrySettings.groupUid,
      set: buildUpsertValues(t.registrySettings, "uniqueTags", "eolGracePeriod"),
    }),
);
const deleteSettings = statement<{ groupUid: string }>((q, t) =>
  q.delete(t.registrySettings).where(buildEquals(t.registrySettings, "groupUid")),
);

const allNames = statement<object, RegistryNameRow>((q, t) => q.select().from(t.registryNames));
const nameOfGroup = statement<{ groupUid: string }, RegistryNameRow>((q, t) =>
  q.select().from(t.registryNames).where(buildEquals(t.registryNames, "groupUid")),
);
const groupOfName = statement<{ name: string }, RegistryNameRow>((q, t) =>
  q.select().from(t.registryNames).where(buildEquals(t.registryNames, "name")),
);
const putName = statement<RegistryNameRow>((q, t) =>
  q
    .insert(t.registryNames)
    .values(buildInsertValues(t.registryNames))
    .onConflictDoUpdate({
      target: t.registryNames.name,
      set: buildUpsertValues(t.registryNames, "groupUid", "uidPath"),
    }),
);

/** Events of a registry, contents of its manifests, and its settings. */
export class Registry {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /** Records an event of a registry; false when it is already recorded. */
  async recordEvent(id: string, timeMs: number): Promise<boolean> {
    if ((await takeFirst(this.#tx.rows(getEvent, { id }))) !== undefined) return false;
    await this.#tx.rows(insertEvent, { id, timeMs });
    return true;
  }

  /** Deletes events older than `timeMs`, as the store of tickets does. */
  sweep(timeMs: number, limit: number): Awaitable<number> {
    return countRows(this.#tx.rows(sweepEvents, { timeMs, limit }));
  }

  findManifest(repoUid: string, digest: string): Awaitable<ManifestRow | undefined> {
    return takeFirst(this.#tx.rows(getManifest, { repoUid, digest }));
  }

  putManifest(row: ManifestRow): Awaitable<void> {
    return discardRows(this.#tx.rows(putManifest, row));
  }

  deleteManifestsOf(repoUid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteManifests, { repoUid }));
  }

  findDeployment(repoUid: string): Awaitable<DeploymentRow | undefined> {
    return takeFirst(this.#tx.rows(getDeployment, { repoUid }));
  }

  /** Inserts or replaces a deployment. */
  putDeployment(row: DeploymentRow): Awaitable<void> {
    return discardRows(this.#tx.rows(putDeployment, row));
  }

  deleteDeployment(repoUid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteDeployment, { repoUid }));
  }

  findSettings(groupUid: string): Awaitable<RegistrySettingsRow | undefined> {
    return takeFirst(this.#tx.rows(getSettings, { groupUid }));
  }

  /** Inserts or replaces the settings of a group. */
  putSettings(row: RegistrySettingsRow): Awaitable<void> {
    return discardRows(this.#tx.rows(putSettings, row));
  }

  deleteSettings(groupUid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteSettings, { groupUid }));
  }

  /** The names of all organisations in paths of the registry, those of deleted organisations included. */
  listNames(): Awaitable<RegistryNameRow[]> {
    return this.#tx.rows(allNames, {});
  }

  /** The name of a root group in paths of the registry; undefined where it was never verified. */
  findName(groupUid: string): Awaitable<RegistryNameRow | undefined> {
    return takeFirst(this.#tx.rows(nameOfGroup, { groupUid }));
  }

  /** The root group, which may be deleted, with this name in paths of the registry. */
  findByName(name: string): Awaitable<RegistryNameRow | undefined> {
    return takeFirst(this.#tx.rows(groupOfName, { name }));
  }

  /** Records a name, or replaces the row of the same name. */
  putName(row: RegistryNameRow): Awaitable<void> {
    return discardRows(this.#tx.rows(putName, row));
  }
}
