// Lists of every kind on random data, compared with what a naive filter and sort of all rows gives. Each page is compared
// with the rows as they are when it is read, because rows are created, changed and deleted between pages.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { getTableName } from "drizzle-orm";
import { isBelow, isWithin, parentOf } from "../../src/kernel/uidp.js";
import { kinds } from "../../src/store/kinds.js";
import type { ListFilter, ListPosition, ListQuery, Page } from "../../src/store/lists/query.js";
import { selectFamilies, type TagFamily } from "../../src/store/registry/tag-families.js";
import type { Store } from "../../src/store/store.js";
import { schema as tables } from "../../src/store/tables/schema-sqlite.js";
import { createRandom, type Random } from "../support/openapi/random.js";
import { isCampaign } from "../support/scale.js";
import { type KindName, kindNames, OracleWorld, type Row } from "./list-oracle-world.js";

/** How many lists are read in one world of rows. */
const LISTS_PER_WORLD = 40;
/** How many worlds share a database: what is not visible is in the database as well. */
const WORLDS_PER_STORE = 25;
const MAX_PAGES = 4;

/** One list: what a caller sees and asks for. */
interface Case extends Pick<ListQuery, "visible" | "also" | "filter" | "order" | "limit"> {
  readonly kind: KindName;
  /** Of tags: the families to list. */
  readonly families?: readonly TagFamily[];
}

/** Compares two rows in the ascending order of a field. */
export type Compare = (a: Row, b: Row, field: string) => number;

const columns: Readonly<Record<string, string>> = {
  uid: "uid",
  name: "name",
  created_at: "createTimeMs",
  updated_at: "updateTimeMs",
};

function keyOf(row: Row, field: string): string | number {
  return row[columns[field] ?? field] as string | number;
}

/** By the bytes of the key, then by the uid. Names and uids are ASCII here. */
export const byKeyAndUid: Compare = (a, b, field) => {
  const [x, y] = [keyOf(a, field), keyOf(b, field)];
  if (x !== y) return x < y ? -1 : 1;
  return a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0;
};

/** Registers the suite for stores that `open` opens empty. */
export function listOracleSuite(name: string, open: () => Promise<Store>, lists: number): void {
  describe(name, () => {
    test("the oracle knows every kind of rows that is listed", () => {
      const listed = new Set(kinds.map((kind) => getTableName(kind.table(tables))));
      assert.deepEqual(kindNames.map((kind) => getTableName(tables[kind])).sort(), [...listed].sort());
    });

    test(`${lists} random lists are those of a naive filter and sort`, async () => {
      const { compared, differences } = await compareLists(open, lists, byKeyAndUid);
      assert.deepEqual(differences.slice(0, 3), [], `${differences.length} differences`);
      assert.ok(compared.pages > lists && compared.rows > lists, JSON.stringify(compared));
    });

    test("control: orders that differ by the case of letters, or in rows of equal keys alone, are found", async () => {
      const wrong: Record<string, Compare> = {
        "by the case of letters": (a, b, field) => byKeyAndUid(lower(a), lower(b), field),
        "in rows of equal keys": (a, b, field) =>
          keyOf(a, field) === keyOf(b, field) ? byKeyAndUid(b, a, field) : byKeyAndUid(a, b, field),
      };
      for (const [what, compare] of Object.entries(wrong)) {
        const { differences } = await compareLists(open, 2 * LISTS_PER_WORLD, compare);
        assert.ok(differences.length > 0, what);
      }
    });
  });
}

function lower(row: Row): Row {
  return "name" in row ? { ...row, name: String(row.name).toLowerCase() } : row;
}

async function compareLists(open: () => Promise<Store>, lists: number, compare: Compare) {
  const compared = { lists: 0, pages: 0, rows: 0 };
  const differences: string[] = [];
  for (let n = 0; compared.lists < lists; n += WORLDS_PER_STORE) {
    const store = await open();
    try {
      for (let seed = n + 1; seed <= n + WORLDS_PER_STORE && compared.lists < lists; seed++) {
        const random = createRandom(seed);
        const world = new OracleWorld(store, random);
        await world.fill();
        for (let i = 0; i < LISTS_PER_WORLD && compared.lists < lists; i++) {
          compared.lists++;
          for (const difference of await compareList(world, random, compare, compared))
            differences.push(`world ${seed}, list ${i}: ${difference}`);
        }
      }
    } finally {
      await store.close();
    }
  }
  return { compared, differences };
}

// Reads some pages of one list. A difference ends it.
async function compareList(
  world: OracleWorld,
  random: Random,
  compare: Compare,
  compared: { pages: number; rows: number },
): Promise<string[]> {
  const list = chooseCase(world, random);
  const { kind, order } = list;
  let after: ListPosition | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    if (pages > 0 && random.chance(0.4)) await world.change(kind);
    const matching = world.rows(kind).filter((row) => isListed(row, list, world));
    const sign = order.descending ? -1 : 1;
    matching.sort((a, b) => sign * compare(a, b, order.field));
    const skip = random.chance(pages === 0 ? 0.5 : 0.15) ? random.int(matching.length + 3) : 0;
    const uncounted = random.chance(0.15);
    const query: ListQuery = { ...list, skip, ...(after && { after }), ...(uncounted && { uncounted }) };
    const rest = matching.filter((row) => after === undefined || sign * compareToPosition(row, after, order.field) > 0);
    const expected = rest.slice(skip, skip + list.limit);
    const last = expected.at(-1);
    const next = last && rest.length > skip + list.limit ? { key: keyOf(last, order.field), uid: last.uid } : undefined;

    const page = await world.list(kind, query, list.families);
    compared.pages++;
    compared.rows += expected.length;
    const difference = findDifference(page, { rows: expected, next, total: uncounted ? 0 : matching.length });
    if (difference)
      return [`${difference}: ${JSON.stringify({ page: pages, ...query, kind, families: list.families })}`];
    if (page.next === undefined) return [];
    after = page.next;
  }
  return [];
}

function compareToPosition(row: Row, { key, uid }: ListPosition, field: string): number {
  return byKeyAndUid(row, { uid, [columns[field] ?? ""]: key }, field);
}

function findDifference(found: Page<object>, expected: Page<Row>): string | undefined {
  const uids = (rows: readonly object[]) => rows.map((row) => (row as Row).uid);
  if (!isDeepStrictEqual(uids(found.rows), uids(expected.rows))) {
    return `the rows are ${uids(found.rows).join()}, not ${uids(expected.rows).join()}`;
  }
  for (const [i, row] of expected.rows.entries()) {
    // Rows of role bindings have columns of other tables besides.
    const own = Object.fromEntries(Object.keys(row).map((name) => [name, (found.rows[i] as Row)[name]]));
    if (!isDeepStrictEqual(own, row)) return `a row is ${JSON.stringify(own)}, not ${JSON.stringify(row)}`;
  }
  if (!isDeepStrictEqual(found.next && { ...found.next }, expected.next)) {
    return `the next position is ${JSON.stringify(found.next)}, not ${JSON.stringify(expected.next)}`;
  }
  return found.total === expected.total ? undefined : `the total is ${found.total}, not ${expected.total}`;
}

function isListed(row: Row, { kind, visible, also = [], filter, families }: Case, world: OracleWorld): boolean {
  const { uid } = row;
  return (
    (visible.some((top) => isWithin(uid, top)) || also.includes(uid)) &&
    (filter.name === undefined || row.name === filter.name) &&
    (filter.uids === undefined || filter.uids.includes(uid)) &&
    (filter.ancestorsOf === undefined || isBelow(filter.ancestorsOf, uid)) &&
    (filter.descendantsOf === undefined || isBelow(uid, filter.descendantsOf)) &&
    (filter.childrenOf === undefined || (parentOf(uid) ?? "/") === filter.childrenOf) &&
    (!filter.inRoot || parentOf(uid) === undefined) &&
    Object.entries(filter.equals ?? {}).every(([name, value]) => world.passes(kind, row, name, value)) &&
    (kind !== "tags" || (families ?? [0]).includes(Number(row.family)))
  );
}

const limits = [1, 2, 3, 7, 50, 200];

/** Chooses what a caller sees and asks for. */
export function chooseCase(world: OracleWorld, random: Random): Case {
  const kind = random.pick(kindNames);
  const families = kind === "tags" && random.chance(0.3) ? chooseFamilies(random) : [0];
  return {
    kind,
    visible: world.chooseVisible(),
    ...(kind === "roles" && random.chance(0.7) && { also: world.builtInRoles }),
    filter: chooseFilter(world, random, kind),
    order: { field: random.pick(world.sorts(kind)), descending: random.chance(0.5) },
    limit: random.pick(limits),
    ...(kind === "tags" && { families }),
  };
}

function chooseFamilies(random: Random): TagFamily[] {
  const includes = () => random.chance(0.6);
  return selectFamilies({ referrers: includes(), dates: includes(), epochs: includes(), vcsSnapshots: includes() });
}

function chooseFilter(world: OracleWorld, random: Random, kind: KindName): ListFilter {
  const filter: { -readonly [K in keyof ListFilter]: ListFilter[K] } = {};
  if (random.chance(0.35)) return filter;
  if (world.hasName(kind) && random.chance(0.3)) filter.name = world.chooseName(kind);
  if (random.chance(0.25)) filter.descendantsOf = world.chooseUid();
  if (random.chance(0.25)) filter.childrenOf = random.chance(0.1) ? "/" : world.chooseParent(kind);
  if (random.chance(0.06)) filter.ancestorsOf = world.chooseRowUid(kind);
  if (random.chance(0.06)) filter.inRoot = true;
  if (random.chance(0.1)) filter.uids = Array.from({ length: 1 + random.int(6) }, () => world.chooseRowUid(kind));
  const equals = random.chance(0.3) ? world.chooseEquals(kind) : undefined;
  if (equals) filter.equals = equals;
  return filter;
}

/** How many lists a run compares: TEST_ARBOR_LISTS, or one of these numbers. */
export function chooseListCount(campaign: number, everyday: number): number {
  return Number(process.env.TEST_ARBOR_LISTS ?? (isCampaign ? campaign : everyday));
}
