import { and, eq, sql } from "drizzle-orm";
import { first } from "./first.js";
import { IndexedTable } from "./indexed-table.js";
import type { Awaitable, RepoRow, RepoStore } from "./port.js";
import { defineResourceIndex, usualSorts } from "./resource-index.js";
import { type Executor, statement } from "./statement.js";

/** How repos are kept in lists. */
export const repoLists = defineResourceIndex(9, { table: (t) => t.repos, place: "groupUid", sorts: usualSorts });

const named = statement<{ groupUid: string; name: string }, RepoRow>((q, t) =>
  q
    .select()
    .from(t.repos)
    .where(and(eq(t.repos.groupUid, sql.placeholder("groupUid")), eq(t.repos.name, sql.placeholder("name")))),
);

/** Repos; see {@link RepoStore}. */
export class Repos extends IndexedTable<RepoRow> implements RepoStore {
  readonly #executor: Executor;

  constructor(tx: Executor) {
    super(tx, repoLists);
    this.#executor = tx;
  }

  named(groupUid: string, name: string): Awaitable<RepoRow | undefined> {
    return first(this.#executor.rows(named, { groupUid, name }));
  }
}
