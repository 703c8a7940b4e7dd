// The index of lists (docs/adr/0014-compact-order-index.md): where each row stands in the lists of its ancestors, and
// how many rows there are. It is derived from the rows and can be rebuilt from them.
import type { Columns } from "./columns-sqlite.js";

/** Builds the tables of the index of lists. */
export function defineEntryTables(c: Columns) {
  // The ancestors that have rows below them. Other rows need no number.
  const scopes = c.table(
    "scopes",
    {
      id: c.rowNumber("id"),
      uid: c.str("uid").notNull(),
      /** Whether any list of it has ranks; changes in others need not look for them. */
      ranked: c.bool("ranked").notNull().default(false),
    },
    (t) => [c.uniqueIndex("scopes_uid").on(t.uid)],
  );

  // The lists of a scope lie next to each other: most are short, and a write changes several of them.
  const list = () => c.int("list").notNull();
  const scope = () => c.long("scope").notNull();
  const textKey = () => c.str("key").notNull();
  const timeKey = () => c.long("key").notNull();
  /** The segments of the row's uid below the scope, 8 bytes each: in the order of uids, in half the space. */
  const below = () => c.bytes("below").notNull();

  const textEntries = c.table("text_entries", { list: list(), scope: scope(), key: textKey(), below: below() }, (t) => [
    c.primaryKey({ columns: [t.scope, t.list, t.key, t.below] }),
  ]);
  const timeEntries = c.table("time_entries", { list: list(), scope: scope(), key: timeKey(), below: below() }, (t) => [
    c.primaryKey({ columns: [t.scope, t.list, t.key, t.below] }),
  ]);

  // The value of a total is the sum of its slots; on PostgreSQL concurrent writers use different slots.
  const slot = () => c.int("slot").notNull();
  const totals = c.table(
    "totals",
    { counter: c.int("counter").notNull(), scope: scope(), slot: slot(), n: c.long("n").notNull() },
    (t) => [c.primaryKey({ columns: [t.scope, t.counter, t.slot] })],
  );

  // How many entries of a long list lie between two positions, so that a page far into it is found without reading
  // those before it. `n` counts from the position up to the next one; null: not counted yet.
  const n = () => c.long("n");
  const textRanks = c.table(
    "text_ranks",
    { list: list(), scope: scope(), key: textKey(), below: below(), slot: slot(), n: n() },
    (t) => [c.primaryKey({ columns: [t.scope, t.list, t.key, t.below, t.slot] })],
  );
  const timeRanks = c.table(
    "time_ranks",
    { list: list(), scope: scope(), key: timeKey(), below: below(), slot: slot(), n: n() },
    (t) => [c.primaryKey({ columns: [t.scope, t.list, t.key, t.below, t.slot] })],
  );
  return { scopes, textEntries, timeEntries, totals, textRanks, timeRanks };
}
