// Random lists of advisories with several filters, read page by page, compared with what a naive filter and sort of all
// advisories gives. Advisories are created, changed and deleted between pages.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import {
  type ListAdvisoriesRequest,
  ListAdvisoriesRequestSchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { isBelow, isWithin } from "../../src/kernel/uidp.js";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { groupKind } from "../../src/store/iam/groups.js";
import type { ListFilter, ListPosition, ListQuery } from "../../src/store/lists/query.js";
import type { Store } from "../../src/store/store.js";
import { buildAdvisoryFilters } from "../../src/vulnerabilities/advisories/advisory-v2beta1.js";
import { createRandom, type Random } from "../support/openapi/random.js";
import { childUid, groupRow } from "../support/rows.js";
import {
  aliases,
  changeModel,
  lets,
  type ModelAdvisory,
  names,
  people,
  randomAdvisories,
  sorts,
  storeModel,
} from "./advisory-model.js";
import { child, ours, sibling, theirs } from "./advisory-world.js";

/** How many advisories a world has at first, and at most. */
const FIRST = 60;
const MOST = 400;
/** How many lists are read in one world. */
const LISTS_PER_WORLD = 250;
const MAX_PAGES = 4;

/** Whether an advisory passes the filters of a request. */
type Lets = (request: ListAdvisoriesRequest, it: ModelAdvisory) => boolean;

/** Registers the suite for stores that `open` opens empty. */
export function advisoryOracleSuite(name: string, open: () => Promise<Store>, lists: number): void {
  describe(name, () => {
    test(`${lists} random lists are those of a naive filter and sort`, async () => {
      const { compared, differences } = await compareLists(open, lists, lets);
      assert.deepEqual(differences.slice(0, 3), [], `${differences.length} differences`);
      // Enough lists had several pages, and enough of the filters let some advisories pass.
      assert.ok(compared.pages > 1.5 * lists && compared.rows > 2 * lists, JSON.stringify(compared));
    });

    test("control: filters that compare without regard to case, or ignore an exclusion, are found", async () => {
      const wrong: Readonly<Record<string, Lets>> = {
        "regardless of case": (request, it) =>
          lets({ ...request, artifactNames: request.artifactNames.map((one) => one.toLowerCase()) }, it),
        "without exclusions": (request, it) => lets({ ...request, excludeEventAuthors: [] }, it),
      };
      for (const [what, letsWrong] of Object.entries(wrong)) {
        const { differences } = await compareLists(open, 100, letsWrong);
        assert.ok(differences.length > 0, what);
      }
    });
  });
}

async function compareLists(open: () => Promise<Store>, lists: number, letsPass: Lets) {
  const compared = { lists: 0, pages: 0, rows: 0 };
  const differences: string[] = [];
  for (let seed = 1; compared.lists < lists; seed++) {
    const store = await open();
    const random = createRandom(seed);
    const world = await createWorld(store, random, seed);
    try {
      for (let i = 0; i < LISTS_PER_WORLD && compared.lists < lists; i++) {
        compared.lists++;
        for (const difference of await compareList(store, world, random, letsPass, compared))
          differences.push(`world ${seed}, list ${i}: ${difference}`);
      }
    } finally {
      await store.close();
    }
  }
  return { compared, differences };
}

interface World {
  readonly model: ModelAdvisory[];
  /** Advisories that are created later, or whose values others take over. */
  readonly others: ModelAdvisory[];
}

async function createWorld(store: Store, random: Random, seed: number): Promise<World> {
  const others = randomAdvisories(MOST, seed);
  const model = others.splice(0, FIRST);
  await store.write(async (tx) => {
    for (const uid of [ours, theirs, child, sibling]) await tx.table(groupKind).insert(groupRow(uid));
    for (const one of model) await storeModel(tx, one, random.int(3));
  });
  return { model, others };
}

async function changeWorld(store: Store, { model, others }: World, random: Random): Promise<void> {
  await store.write(async (tx) => {
    for (let i = 1 + random.int(4); i > 0; i--) {
      const at = random.int(model.length);
      const before = model[at] ?? assert.fail();
      const other = random.chance(0.4) ? others.pop() : undefined;
      if (other) {
        await storeModel(tx, other, random.int(3));
        model.push(other);
      } else if (random.chance(0.7) || model.length < FIRST / 2) {
        const { uid, groupUid, advisoryId, createTimeMs } = before;
        const source = random.pick([...model, ...others]);
        const events = source.events.map((one, n) => ({ ...one, uid: childUid(uid, n) }));
        const after = { ...source, uid, groupUid, advisoryId, createTimeMs, events };
        await changeModel(tx, after);
        model[at] = after;
      } else {
        await tx.table(advisoryKind).delete(before.uid);
        model.splice(at, 1);
      }
    }
  });
}

// Reads some pages of one list. A difference ends it.
async function compareList(
  store: Store,
  world: World,
  random: Random,
  letsPass: Lets,
  compared: { pages: number; rows: number },
): Promise<string[]> {
  const request = chooseRequest(world, random);
  const equals = buildAdvisoryFilters(request);
  const filter: ListFilter = { ...chooseFilter(world, random), ...(Object.keys(equals).length > 0 && { equals }) };
  const order = { field: random.pick(["uid", "created_at", "updated_at"]), descending: random.chance(0.5) };
  const list = { visible: chooseVisible(random), filter, order, limit: random.pick([1, 2, 3, 7, 20, 200]) };
  const sign = order.descending ? -1 : 1;
  const compare = (a: ListPosition, b: ListPosition) =>
    sign * (a.key === b.key ? (a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0) : a.key < b.key ? -1 : 1);
  let after: ListPosition | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    if (random.chance(0.4)) await changeWorld(store, world, random);
    const matching = world.model
      .filter((one) => isListed(one.uid, list) && letsPass(request, one))
      .map((one) => ({ uid: one.uid, key: keyOf(one, order.field) }))
      .sort(compare);
    const skip = random.chance(pages === 0 ? 0.4 : 0.15) ? random.int(matching.length + 3) : 0;
    const uncounted = random.chance(0.15);
    const query: ListQuery = { ...list, skip, ...(after && { after }), ...(uncounted && { uncounted }) };
    const from = after;
    const rest = matching.filter((one) => from === undefined || compare(one, from) > 0).slice(skip);
    const rows = rest.slice(0, list.limit);
    const expected = {
      uids: rows.map(({ uid }) => uid),
      next: rest.length > list.limit ? rows.at(-1) : undefined,
      total: uncounted ? 0 : matching.length,
    };
    const limits = random.chance(0.5) ? chooseLimits(random) : undefined;
    const page = await store.read((tx) => tx.table(advisoryKind).list(query, limits));
    const found = {
      uids: page.rows.map(({ uid }) => uid),
      next: page.next && { uid: page.next.uid, key: page.next.key },
      total: page.total,
    };
    compared.pages++;
    compared.rows += rows.length;
    if (!isDeepStrictEqual(found, expected))
      return [`${JSON.stringify(query)}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`];
    if (page.next === undefined) return [];
    after = page.next;
  }
  return [];
}

// With these bounds a few advisories are many.
function chooseLimits(random: Random) {
  const few = () => 2 + random.int(9);
  return {
    lists: { step: few(), slice: few() },
    search: { examined: few(), compared: 10 + random.int(50), texts: 20 + random.int(100), candidates: few() },
  };
}

function keyOf(one: ModelAdvisory, field: string): string | number {
  return { created_at: one.createTimeMs, updated_at: one.updateTimeMs }[field] ?? one.uid;
}

function isListed(uid: string, { visible, filter }: Pick<ListQuery, "visible" | "filter">): boolean {
  const group = uid.slice(0, -17);
  return (
    visible.some((top) => isWithin(uid, top)) &&
    (filter.uids === undefined || filter.uids.includes(uid)) &&
    (filter.descendantsOf === undefined || isBelow(uid, filter.descendantsOf)) &&
    (filter.childrenOf === undefined || group === filter.childrenOf)
  );
}

function chooseVisible(random: Random): string[] {
  return random.pick([
    [ours, theirs],
    [ours, theirs],
    [theirs, ours],
    [ours],
    [child],
    [sibling, theirs],
    [child, sibling],
  ]);
}

function chooseFilter({ model }: World, random: Random): ListFilter {
  const group = random.pick([ours, child, sibling, theirs]);
  if (random.chance(0.12)) return { childrenOf: group };
  if (random.chance(0.15)) return { descendantsOf: group };
  if (random.chance(0.05)) return { uids: Array.from({ length: 1 + random.int(9) }, () => random.pick(model).uid) };
  return {};
}

const queries = ["%", "_", "\\", "a_b", "A%B", "CVE", "cve-2024-1", "É", "rl", "xb", "'", '"', "nowhere", "ghsa-aaaa"];

function chooseRequest({ model }: World, random: Random): ListAdvisoriesRequest {
  const some = (values: readonly string[]) =>
    Array.from({ length: 1 + random.int(3) }, () => random.pick([...values, "nobody"]));
  const numbers = (least: number, most: number) =>
    Array.from({ length: 1 + random.int(2) }, () => least + random.int(most - least + 1));
  const ids = () => Array.from({ length: 1 + random.int(4) }, () => random.pick(model).advisoryId);
  const text = () => {
    const name = random.pick([...names, ...aliases]);
    const start = random.int(name.length);
    return name.slice(start, start + 1 + random.int(5));
  };
  const choices: Readonly<Record<string, () => unknown>> = {
    advisoryIds: ids,
    legacyAdvisoryIds: () => some(["OLD-1", "OLD-2"]),
    artifactNames: () => some(names),
    artifactTypes: () => some(sorts),
    artifactArchitectures: () => some(["x86_64", "aarch64", ""]),
    componentNames: () => some(names),
    componentTypes: () => some(sorts),
    componentLocations: () => some(["/usr/lib", "/usr/lib/"]),
    aliases: () => some([...aliases, "B-1"]),
    origin: () => random.pick([...names, "nobody"]),
    eventReviewStates: () => numbers(0, 5),
    eventAuthors: () => some(people),
    excludeEventAuthors: () => some(people),
    eventReviewers: () => some(people),
    eventTypes: () => numbers(0, 9),
    latestEventType: () => random.int(10),
    query: () => (random.chance(0.5) ? random.pick(queries) : text()),
  };
  const request: Record<string, unknown> = {};
  for (let i = random.int(5); i > 0; i--) {
    const field = random.pick(Object.keys(choices));
    request[field] = choices[field]?.();
  }
  return create(ListAdvisoriesRequestSchema, request);
}
