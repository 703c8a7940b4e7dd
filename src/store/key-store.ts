import type { Awaitable, KeyRow, KeyState, KeyStore, SettingStore } from "./port.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpdateValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  statement,
  takeFirst,
} from "./statement.js";

const list = statement<object, KeyRow>((q, t) => q.select().from(t.keys).orderBy(t.keys.createTimeMs, t.keys.kid));
const insert = statement<KeyRow>((q, t) => q.insert(t.keys).values(buildInsertValues(t.keys)));
const setState = statement<Pick<KeyRow, "kid" | "state" | "nextTimeMs">>((q, t) =>
  q
    .update(t.keys)
    .set(buildUpdateValues(t.keys, "state", "nextTimeMs"))
    .where(buildEquals(t.keys, "kid")),
);
const remove = statement<{ kid: string }>((q, t) => q.delete(t.keys).where(buildEquals(t.keys, "kid")));

/** Keys; see {@link KeyStore}. */
export class Keys implements KeyStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  list(): Awaitable<KeyRow[]> {
    return this.#tx.rows(list, {});
  }

  insert(row: KeyRow): Awaitable<void> {
    return discardRows(this.#tx.rows(insert, row));
  }

  setState(kid: string, state: KeyState, nextTimeMs: number | null): Awaitable<void> {
    return discardRows(this.#tx.rows(setState, { kid, state, nextTimeMs }));
  }

  delete(kid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(remove, { kid }));
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

/** Values of the installation; see {@link SettingStore}. */
export class SettingRows implements SettingStore {
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
