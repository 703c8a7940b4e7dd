import { and, eq, lt, sql } from "drizzle-orm";
import { done, first } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { Awaitable, ManifestRow, RegistryStore } from "./port.js";
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

/** News from a registry; see {@link RegistryStore}. */
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
}
