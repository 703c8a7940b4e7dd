import { and, eq, lt, sql } from "drizzle-orm";
import { done, first } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { Awaitable, DeploymentRow, ManifestRow, RegistrySettingsRow, RegistryStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

type Event = { id: string; timeMs: number };

const known = statement<{ id: string }, Event>((q, t) =>
  q
    .select()
    .from(t.registryEvents)
    .where(eq(t.registryEvents.id, sql.placeholder("id"))),
);
const see = statement<Event>((q, t) => q.insert(t.registryEvents).values(placeholdersFor(t.registryEvents)));
const sweep = statement<{ timeMs: number }>((q, t) =>
  q.delete(t.registryEvents).where(lt(t.registryEvents.timeMs, sql.placeholder("timeMs"))),
);
const getManifest = statement<Omit<ManifestRow, "images">, ManifestRow>((q, t) =>
  q
    .select()
    .from(t.manifests)
    .where(and(eq(t.manifests.repoUid, sql.placeholder("repoUid")), eq(t.manifests.digest, sql.placeholder("digest")))),
);
const putManifest = statement<ManifestRow>((q, t) =>
  q
    .insert(t.manifests)
    .values(placeholdersFor(t.manifests))
    .onConflictDoUpdate({ target: [t.manifests.repoUid, t.manifests.digest], set: { images: sql`excluded.images` } }),
);

const deleteManifests = statement<{ repoUid: string }>((q, t) =>
  q.delete(t.manifests).where(eq(t.manifests.repoUid, sql.placeholder("repoUid"))),
);

const getDeployment = statement<{ repoUid: string }, DeploymentRow>((q, t) =>
  q
    .select()
    .from(t.deployments)
    .where(eq(t.deployments.repoUid, sql.placeholder("repoUid"))),
);
const putDeployment = statement<DeploymentRow>((q, t) =>
  q
    .insert(t.deployments)
    .values(placeholdersFor(t.deployments))
    .onConflictDoUpdate({
      target: t.deployments.repoUid,
      set: { charts: sql`excluded.charts`, updateTimeMs: sql`excluded.update_time_ms` },
    }),
);
const deleteDeployment = statement<{ repoUid: string }>((q, t) =>
  q.delete(t.deployments).where(eq(t.deployments.repoUid, sql.placeholder("repoUid"))),
);
const getSettings = statement<{ groupUid: string }, RegistrySettingsRow>((q, t) =>
  q
    .select()
    .from(t.registrySettings)
    .where(eq(t.registrySettings.groupUid, sql.placeholder("groupUid"))),
);
const putSettings = statement<RegistrySettingsRow>((q, t) =>
  q
    .insert(t.registrySettings)
    .values(placeholdersFor(t.registrySettings))
    .onConflictDoUpdate({
      target: t.registrySettings.groupUid,
      set: { uniqueTags: sql`excluded.unique_tags`, eolGracePeriod: sql`excluded.eol_grace_period` },
    }),
);
const deleteSettings = statement<{ groupUid: string }>((q, t) =>
  q.delete(t.registrySettings).where(eq(t.registrySettings.groupUid, sql.placeholder("groupUid"))),
);

/** News from a registry and what is set for it; see {@link RegistryStore}. */
export class Registry implements RegistryStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  async see(id: string, timeMs: number): Promise<boolean> {
    if ((await first(this.#tx.rows(known, { id }))) !== undefined) return false;
    await this.#tx.rows(see, { id, timeMs });
    return true;
  }

  sweep(timeMs: number): Awaitable<void> {
    return done(this.#tx.rows(sweep, { timeMs }));
  }

  manifest(repoUid: string, digest: string): Awaitable<ManifestRow | undefined> {
    return first(this.#tx.rows(getManifest, { repoUid, digest }));
  }

  putManifest(row: ManifestRow): Awaitable<void> {
    return done(this.#tx.rows(putManifest, row));
  }

  deleteManifestsOf(repoUid: string): Awaitable<void> {
    return done(this.#tx.rows(deleteManifests, { repoUid }));
  }

  deployment(repoUid: string): Awaitable<DeploymentRow | undefined> {
    return first(this.#tx.rows(getDeployment, { repoUid }));
  }

  putDeployment(row: DeploymentRow): Awaitable<void> {
    return done(this.#tx.rows(putDeployment, row));
  }

  deleteDeployment(repoUid: string): Awaitable<void> {
    return done(this.#tx.rows(deleteDeployment, { repoUid }));
  }

  settings(groupUid: string): Awaitable<RegistrySettingsRow | undefined> {
    return first(this.#tx.rows(getSettings, { groupUid }));
  }

  putSettings(row: RegistrySettingsRow): Awaitable<void> {
    return done(this.#tx.rows(putSettings, row));
  }

  deleteSettings(groupUid: string): Awaitable<void> {
    return done(this.#tx.rows(deleteSettings, { groupUid }));
  }
}
