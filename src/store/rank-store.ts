// Finds long lists that have no ranks, and counts them in short units of work.
import { eq, sql } from "drizzle-orm";
import { toNumber } from "./list-statements.js";
import type { RankSearch, RankStore, Store, UnrankedList } from "./port.js";
import { buildRanks } from "./rank-maintenance.js";
import { isRanked, type RankedList } from "./ranks.js";
import { childListOf, type ResourceIndex } from "./resource-index.js";
import { resourceIndexes } from "./resource-indexes.js";
import { type Executor, statement, value } from "./statement.js";

/** A shorter list needs no ranks: one statement skips all of it, in less than half a millisecond. */
const MIN_ENTRIES = 5_000;
/** How many totals one search reads. */
const TOTALS = 2_000;
/** How many buckets one unit of work counts. */
const BUCKETS = 20;

interface Position {
  readonly counter: number;
  readonly scope: number;
}

// Counts what the slots of each total add up to. The last total may be incomplete: the next search begins with it.
const totalsFrom = statement<Position & { limit: number }, Position & { n: number }>((q, t) => {
  const chunk = q
    .select({ counter: t.totals.counter, scope: t.totals.scope, n: t.totals.n })
    .from(t.totals)
    .where(sql`(${t.totals.scope}, ${t.totals.counter}) >= (${value("scope")}, ${value("counter")})`)
    .orderBy(t.totals.scope, t.totals.counter)
    .limit(value("limit"))
    .as("chunk");
  return q
    .select({ counter: chunk.counter, scope: chunk.scope, n: toNumber(sql`sum(${chunk.n})`).as("n") })
    .from(chunk)
    .groupBy(chunk.scope, chunk.counter)
    .orderBy(chunk.scope, chunk.counter);
});

const scopeUid = statement<{ scope: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.scopes.uid })
    .from(t.scopes)
    .where(eq(t.scopes.id, value("scope"))),
);

/** Ranks of lists; see {@link RankStore}. */
export class Ranks implements RankStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  async findUnranked(from: Position = { counter: 0, scope: 0 }): Promise<RankSearch> {
    const totals = await this.#tx.rows(totalsFrom, { ...from, limit: TOTALS });
    const lists: UnrankedList[] = [];
    for (const { counter, scope, n } of totals) {
      if (n < MIN_ENTRIES) continue;
      for (const list of await this.#listsOf(counter, scope)) {
        if (!(await isRanked(this.#tx, list))) lists.push({ counter, scope, list: list.list });
      }
    }
    const last = totals.at(-1);
    const isLast = last === undefined || (last.counter === from.counter && last.scope === from.scope);
    return { lists, next: isLast ? undefined : { counter: last.counter, scope: last.scope } };
  }

  async build({ counter, scope, list }: UnrankedList): Promise<boolean> {
    const found = (await this.#listsOf(counter, scope)).find((one) => one.list === list);
    return found === undefined || buildRanks(this.#tx, found, BUCKETS);
  }

  // The lists whose lengths a total tells.
  async #listsOf(counter: number, scope: number): Promise<RankedList[]> {
    const kind = resourceIndexes.find((one) => one.counter === counter - (counter % 2));
    const [row] = await this.#tx.rows(scopeUid, { scope });
    // The ancestor may have been deleted since.
    if (kind === undefined || row === undefined) return [];
    return counter % 2 === 0 ? findDescendantLists(kind, scope, row.uid) : findChildLists(kind, scope);
  }
}

function findDescendantLists(kind: ResourceIndex, scope: number, uid: string): RankedList[] {
  const sorted = Object.values(kind.sorts).map(({ type, list }): RankedList => ({ type, list, scope }));
  return [...sorted, { type: "text", list: kind.descendantsByUid, scope, rows: { kind, scopeUid: uid } }];
}

function findChildLists(kind: ResourceIndex, scope: number): RankedList[] {
  if (!kind.childLists) return [];
  const sorted = Object.values(kind.sorts).map(
    (sort): RankedList => ({ type: sort.type, list: childListOf(sort), scope }),
  );
  return [...sorted, { type: "text", list: kind.childrenByUid, scope }];
}

/**
 * Counts all long lists that are not completely counted, in short units of work one after another. It may run at any
 * time and beside other writers, and continues what an earlier run did not finish.
 *
 * @param isStopped asked before each unit of work: true ends the run
 * @returns how many lists were completed
 */
export async function completeRanks(
  store: Pick<Store, "read" | "write">,
  isStopped: () => boolean = () => false,
): Promise<number> {
  let completed = 0;
  let from: RankSearch["next"];
  do {
    const search = await store.read((tx) => tx.ranks.findUnranked(from));
    for (const list of search.lists) {
      let isComplete = false;
      while (!isComplete && !isStopped()) isComplete = await store.write((tx) => tx.ranks.build(list));
      if (isComplete) completed++;
    }
    from = search.next;
  } while (from !== undefined && !isStopped());
  return completed;
}
