// The stores of what an installation has once: keys, settings, sealed values and background jobs.
import { and, getTableColumns, gt, ne } from "drizzle-orm";
import type { Awaitable } from "./awaitable.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpdateValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  statement,
  takeFirst,
  value,
} from "./statement.js";
import type { JobRow } from "./tables/schema.js";
import type { KeyRow, KeyState, TicketRow } from "./tables/tokens.js";

const listKeys = statement<object, KeyRow>((q, t) => q.select().from(t.keys).orderBy(t.keys.createTimeMs, t.keys.kid));
const insertKey = statement<KeyRow>((q, t) => q.insert(t.keys).values(buildInsertValues(t.keys)));
const setKeyState = statement<Pick<KeyRow, "kid" | "state" | "nextTimeMs">>((q, t) =>
  q
    .update(t.keys)
    .set(buildUpdateValues(t.keys, "state", "nextTimeMs"))
    .where(buildEquals(t.keys, "kid")),
);
const deleteKey = statement<{ kid: string }>((q, t) => q.delete(t.keys).where(buildEquals(t.keys, "kid")));

/** Keys. */
export class Keys {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  list(): Awaitable<KeyRow[]> {
    return this.#tx.rows(listKeys, {});
  }

  insert(row: KeyRow): Awaitable<void> {
    return discardRows(this.#tx.rows(insertKey, row));
  }

  setState(kid: string, state: KeyState, nextTimeMs: number | null): Awaitable<void> {
    return discardRows(this.#tx.rows(setKeyState, { kid, state, nextTimeMs }));
  }

  /** Does nothing when the key does not exist. */
  delete(kid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteKey, { kid }));
  }
}

type SettingRow = { name: string; value: string };

const getSetting = statement<{ name: string }, SettingRow>((q, t) =>
  q.select().from(t.settings).where(buildEquals(t.settings, "name")),
);
const putSetting = statement<SettingRow>((q, t) =>
  q
    .insert(t.settings)
    .values(buildInsertValues(t.settings))
    .onConflictDoUpdate({ target: t.settings.name, set: buildUpsertValues(t.settings, "value") }),
);

/** Values that belong to the installation itself, such as the check value of the master key. */
export class SettingRows {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  async find(name: string): Promise<string | undefined> {
    return (await takeFirst(this.#tx.rows(getSetting, { name })))?.value;
  }

  put(name: string, value: string): Awaitable<void> {
    return discardRows(this.#tx.rows(putSetting, { name, value }));
  }
}

// What the master key has encrypted, for its rotation: the same columns that `arbor check` opens.

const setSealedKey = statement<{ kid: string; sealed: string }>((q, t) =>
  q
    .update(t.keys)
    .set({ sealed: value("sealed") as never })
    .where(buildEquals(t.keys, "kid")),
);
const listClientSecrets = statement<{ after: string; limit: number }, { uid: string; sealed: string }>((q, t) => {
  const { uid, sealedSecret } = t.identityProviders;
  return q
    .select({ uid, sealed: sealedSecret })
    .from(t.identityProviders)
    .where(and(ne(sealedSecret, ""), gt(uid, value("after"))))
    .orderBy(uid)
    .limit(value("limit"));
});
const setClientSecret = statement<{ uid: string; sealed: string }>((q, t) =>
  q
    .update(t.identityProviders)
    .set({ sealedSecret: value("sealed") as never })
    .where(buildEquals(t.identityProviders, "uid")),
);
const listTickets = statement<{ after: string; limit: number }, TicketRow>((q, t) =>
  q
    .select()
    .from(t.tickets)
    .where(gt(t.tickets.hash, value("after")))
    .orderBy(t.tickets.hash)
    .limit(value("limit")),
);

/** What the master key has encrypted, besides the check value of the settings. Only its rotation writes here. */
export class SealedValues {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /** Does nothing when the key does not exist. */
  setKey(kid: string, sealed: string): Awaitable<void> {
    return discardRows(this.#tx.rows(setSealedKey, { kid, sealed }));
  }

  /** Client secrets of identity providers with uids after `after`, in their order. */
  listClientSecrets(after: string, limit: number): Awaitable<{ uid: string; sealed: string }[]> {
    return this.#tx.rows(listClientSecrets, { after, limit });
  }

  setClientSecret(uid: string, sealed: string): Awaitable<void> {
    return discardRows(this.#tx.rows(setClientSecret, { uid, sealed }));
  }

  /** Tickets with hashes after `after`, in their order. */
  listTickets(after: string, limit: number): Awaitable<TicketRow[]> {
    return this.#tx.rows(listTickets, { after, limit });
  }
}

// Only the job runner and `arbor admin jobs list` use the store of background jobs, so units of work of the API never
// conflict with it.

const getJob = statement<{ name: string }, JobRow>((q, t) =>
  q.select().from(t.jobs).where(buildEquals(t.jobs, "name")),
);
const listJobs = statement<object, JobRow>((q, t) => q.select().from(t.jobs).orderBy(t.jobs.name));
const putJob = statement<JobRow>((q, t) => {
  const { name, ...columns } = getTableColumns(t.jobs);
  return q
    .insert(t.jobs)
    .values(buildInsertValues(t.jobs))
    .onConflictDoUpdate({
      target: t.jobs.name,
      set: buildUpsertValues(t.jobs, ...(Object.keys(columns) as (keyof typeof columns)[])),
    });
});

/** Background jobs. Only src/jobs and commands of the operator use it. */
export class Jobs {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /**
   * The time of the database in epoch milliseconds. All nodes on PostgreSQL share its clock; on SQLite it is the clock
   * of the process.
   */
  nowMs(): Awaitable<number> {
    return this.#tx.nowMs();
  }

  find(name: string): Awaitable<JobRow | undefined> {
    return takeFirst(this.#tx.rows(getJob, { name }));
  }

  /** Inserts or replaces a job. */
  put(row: JobRow): Awaitable<void> {
    return discardRows(this.#tx.rows(putJob, row));
  }

  /** All jobs in the order of their names. */
  list(): Awaitable<JobRow[]> {
    return this.#tx.rows(listJobs, {});
  }
}
