// Lists of more advisories than one statement takes up, compared with a filtered and sorted array.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type AdvisoryRow, advisoryKind } from "../../src/store/advisories/advisories.js";
import { groupKind } from "../../src/store/iam/groups.js";
import type { ListPosition, ListQuery } from "../../src/store/lists/query.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";
import { chooseScale, isCampaign } from "../support/scale.js";
import { memoryDir } from "../support/temp-dir.js";

// More than an organisation may have to be taken up at once, and half of them more than texts are.
const COUNT = chooseScale(5_200, 4_700);
/** The numbers of the second half of the advisories begin here, far from those of the first one. */
const FAR = 150_000;
const [one, two] = [rootUid(0xa1), rootUid(0xb1)];
const groups = [one, childUid(one, 1), childUid(one, 2), two] as const;

function advisory(n: number): AdvisoryRow {
  // Most are in one group, and uids are in another order than times.
  const groupUid = n % 20 === 0 ? two : (groups[n % 3] ?? one);
  const aliases = [`CVE-${n}`, n % 2 === 0 ? "the even ones" : "odd"];
  const names = { artifactName: `a${n % 7}`, componentName: n % 1_000 === 1 ? 'the "rare" 100% ones' : "part" };
  return {
    uid: childUid(groupUid, (n * 7_919) % 100_003),
    groupUid,
    advisoryId: `ID-${n}`,
    legacyAdvisoryId: n % 2 === 0 ? "even" : `old-${n}`,
    author: "",
    ...names,
    artifactType: n % 100 === 3 ? "some" : "most",
    artifactArchitecture: "",
    componentLocation: "",
    componentType: "",
    aliases,
    severities: [],
    searched: [names.artifactName, names.componentName, ...aliases].join("\n").toLowerCase(),
    latestEventType: 0,
    sourceKey: "",
    sourceHash: "",
    deleteTimeMs: null,
    createTimeMs: (n * 31) % 977,
    updateTimeMs: 10_000 - n,
  };
}

const rows = Array.from({ length: COUNT }, (_, n) => advisory(n));
const has = (text: string) => (row: AdvisoryRow) => row.searched.includes(text);

const filters: readonly { equals: Record<string, string>; lets: (row: AdvisoryRow) => boolean }[] = [
  { equals: { artifactTypes: '["most"]' }, lets: (row) => row.artifactType === "most" },
  { equals: { artifactTypes: '["some"]' }, lets: (row) => row.artifactType === "some" },
  { equals: { artifactTypes: '["some", "most"]' }, lets: () => true },
  { equals: { legacyAdvisoryIds: '["even", "old-7"]' }, lets: ({ legacyAdvisoryId: id }) => /^(even|old-7)$/.test(id) },
  { equals: { artifactNames: '["a1", "a2", "a9"]', query: "%" }, lets: (row) => /^a[12]$/.test(row.artifactName) },
  { equals: { query: "%even ones%" }, lets: has("even ones") },
  { equals: { query: "%o%" }, lets: has("o") },
  { equals: { query: '%"rare" 100\\%%' }, lets: has('"rare" 100%') },
  {
    equals: { query: "%cve-1%", artifactTypes: '["most"]' },
    lets: (row) => has("cve-1")(row) && row.artifactType === "most",
  },
  { equals: { query: "%nowhere%" }, lets: () => false },
];

describe("lists of many advisories", () => {
  let store: Store;
  const directory = memoryDir();
  before(async () => {
    store = openSqlite({ directory });
    await store.write(async (tx) => {
      for (const uid of groups) await tx.table(groupKind).insert(groupRow(uid));
    });
    const add = async (some: readonly AdvisoryRow[]) => {
      await store.write(async (tx) => {
        for (const row of some) await tx.table(advisoryKind).insert(row);
      });
    };
    await add(rows.slice(0, COUNT / 2));
    // The numbers of the second half follow that of an advisory that is then removed.
    const between = { ...advisory(COUNT), advisoryId: "between" };
    await store.write((tx) => tx.table(advisoryKind).insert(between));
    const file = openDatabase(join(directory, "arbor.db"));
    file.exec(`UPDATE advisory_values SET number = ${FAR} WHERE number = (SELECT max(number) FROM advisories)`);
    file.exec(`UPDATE advisories SET number = ${FAR} WHERE number = (SELECT max(number) FROM advisories)`);
    file.exec("INSERT INTO advisory_texts (advisory_texts) VALUES ('rebuild')");
    await add(rows.slice(COUNT / 2));
    await store.write((tx) => tx.table(advisoryKind).delete(between.uid));
    const last = file.prepare("SELECT max(number) FROM advisories").pluck().get() as number;
    assert.ok(last > FAR, "the second half did not get the numbers that the test is about");
    file.close();
  });
  after(() => store.close());

  const callers = [
    { name: "everybody", visible: [one, two] },
    { name: "an organisation", visible: [one] },
    { name: "two groups", visible: [childUid(one, 1), childUid(one, 2)] },
  ];
  const orders = (["uid", "created_at", "updated_at"] as const).flatMap((field) =>
    [false, true].map((descending) => ({ field, descending })),
  );
  // Outside of a campaign, each filter meets each caller once and each field once, in one direction.
  const chooseFilters = (caller: number, order: number) =>
    filters.filter((_, filter) => isCampaign || (2 * caller + order + filter) % orders.length === 0);
  for (const [caller, { name, visible }] of callers.entries()) {
    for (const [order, { field, descending }] of orders.entries()) {
      it(`${name} by ${field}${descending ? ", descending" : ""}`, async () => {
        const sign = descending ? -1 : 1;
        const key = (row: AdvisoryRow) =>
          ({ uid: 0, created_at: row.createTimeMs, updated_at: row.updateTimeMs })[field];
        const sorted = rows
          .filter(({ uid }) => visible.some((top) => uid.startsWith(`${top}/`)))
          .sort((a, b) => sign * (key(a) - key(b) || (a.uid < b.uid ? -1 : 1)));
        for (const { equals, lets } of chooseFilters(caller, order)) {
          const expected = sorted.filter(lets).map(({ uid }) => uid);
          const query = { visible, filter: { equals }, order: { field, descending }, limit: 40 };
          const read = (more: Pick<ListQuery, "skip" | "after">) =>
            store.read((tx) => tx.table(advisoryKind).list({ ...query, ...more }));
          let from: ListPosition | undefined;
          // The first pages by token, then others by skip.
          for (const start of [0, 40, 80]) {
            const page = await read({ skip: 0, ...(from && { after: from }) });
            assert.equal(page.total, expected.length);
            assert.deepEqual(
              page.rows.map(({ uid }) => uid),
              expected.slice(start, start + 40),
            );
            from = page.next;
            if (from === undefined) break;
          }
          for (const skip of [1, Math.floor(expected.length / 2), Math.max(0, expected.length - 3), COUNT]) {
            const page = await read({ skip });
            assert.deepEqual(
              page.rows.map(({ uid }) => uid),
              expected.slice(skip, skip + 40),
            );
          }
        }
      });
    }
  }

  it("leave nothing behind", async () => {
    await store.write(async (tx) => {
      for (const { uid } of rows) await tx.table(advisoryKind).delete(uid);
    });
    const file = openDatabase(join(directory, "arbor.db"));
    file.exec("INSERT INTO advisory_texts (advisory_texts, rank) VALUES ('integrity-check', 1)");
    for (const table of ["advisories", "advisory_events", "advisory_values"])
      assert.equal(file.prepare(`SELECT count(*) FROM ${table}`).pluck().get(), 0, table);
    const found = file
      .prepare("SELECT count(*) FROM advisory_texts WHERE advisory_texts MATCH '\"cve\"'")
      .pluck()
      .get();
    assert.equal(found, 0);
    file.close();
  });
});
