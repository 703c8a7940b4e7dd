// A list shows exactly what its caller may get, and its totals and its order depend on that alone.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoles } from "../../src/iam/roles/builtin-roles.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { type Rest, restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { createRandom } from "../support/openapi/random.js";
import { chooseScale, isCampaign, sample } from "../support/scale.js";
import { insertGroup, type Placed, populate } from "./populate.js";

const SEED = 77;
const GROUPS = chooseScale(40, 24);

interface Kind {
  /** The key of lists, which is the path as well. */
  readonly list: string;
  readonly key: keyof Placed;
  readonly orders: readonly string[];
}

const common = ["uid", "name", "created_at", "updated_at"];
const kinds: readonly Kind[] = [
  { list: "groups", key: "group", orders: common },
  { list: "identities", key: "identity", orders: common },
  { list: "roles", key: "role", orders: common },
  { list: "roleBindings", key: "roleBinding", orders: ["uid", "created_at"] },
  { list: "identityProviders", key: "identityProvider", orders: common },
  { list: "externalGroupRoleMappings", key: "externalGroupRoleMapping", orders: ["uid", "created_at"] },
  { list: "accountAssociations", key: "accountAssociation", orders: ["group", ...common] },
  { list: "groupInvites", key: "groupInvite", orders: ["uid", "created_at"] },
];

/** Who sees what: the roles held, by which group of the tree they are held at. */
const callers: Readonly<Record<string, readonly (readonly [role: string, group: number])[]>> = {
  "an owner of a root": [["owner", 0]],
  "a viewer of another root": [["viewer", 1]],
  "a viewer of a group": [["viewer", 5]],
  "a viewer of two groups, one perhaps within the other": [
    ["viewer", 7],
    ["viewer", 20],
  ],
  "one who may read groups alone": [["apk.pull", 0]],
  "one who may read groups here and everything there": [
    ["apk.pull", 1],
    ["viewer", 9],
  ],
  "an editor in three roots": [
    ["editor", 0],
    ["editor", 1],
    ["viewer", 2],
  ],
  nobody: [],
};

let harness: Harness;
const placed: Placed[] = [];
const rests = new Map<string, Rest>();
const everyUid = new Map<Kind, string[]>();

before(async () => {
  harness = await startHarness();
  const random = createRandom(SEED);
  for (const name of ["one", "two", "three"]) {
    const { group } = await harness.organisation(name);
    placed.push(
      await harness.app.installation.store.write((tx) =>
        populate(tx, group, { name: random.text("abc", 3, 1), text: name, timeMs: random.int(20) }),
      ),
    );
  }
  await harness.app.installation.store.write(async (tx) => {
    for (let i = placed.length; i < GROUPS; i++) {
      const uid = randomIds.newUid(random.pick(placed).group);
      placed.push(
        await insertGroup(tx, uid, { name: random.text("abc", 3, 1), text: `text ${i}`, timeMs: random.int(20) }),
      );
    }
  });
  for (const [name, grants] of Object.entries(callers)) {
    const { uid, token } = await harness.identity();
    for (const [role, at] of grants) await harness.bind(uid, role, placed[at]?.group ?? "");
    rests.set(name, restAs(harness.url, token));
  }
  for (const kind of kinds)
    everyUid.set(
      kind,
      placed.map((one) => one[kind.key]),
    );
});

after(() => harness.stop());

const restOf = (name: string): Rest => {
  const rest = rests.get(name);
  assert.ok(rest);
  return rest;
};

interface Row {
  readonly uid: string;
  readonly name?: string;
  readonly createTime?: string;
  readonly updateTime?: string;
}

async function page(rest: Rest, kind: Kind, query: string) {
  const { status, json, text } = await rest("GET", `/${kind.list}?${query}`);
  assert.equal(status, 200, text);
  const { [kind.list]: rows = [], nextPageToken = "", totalCount } = json as { [key: string]: unknown };
  return { rows: rows as Row[], token: String(nextPageToken), total: Number(totalCount) };
}

// All pages of a list; every page must have the same total.
async function walk(rest: Rest, kind: Kind, query: string): Promise<Row[]> {
  const rows: Row[] = [];
  let token = "";
  do {
    const one = await page(rest, kind, `${query}&page_size=17&page_token=${token}`);
    rows.push(...one.rows);
    token = one.token;
    assert.ok(one.rows.length === 17 || token === "", "only the last page is short");
    if (token === "") assert.equal(one.total, rows.length, "the total is what was shown");
  } while (token !== "");
  return rows;
}

for (const [column, caller] of Object.keys(callers).entries()) {
  describe(`${caller} sees in lists what it may get`, () => {
    for (const [row, kind] of kinds.entries()) {
      it(kind.list, async () => {
        const rest = restOf(caller);
        const gettable: string[] = [];
        for (const uid of everyUid.get(kind) ?? []) {
          const { status, text } = await rest("GET", `/${kind.list}/${uid}`);
          assert.ok(status === 200 || status === 403, text);
          if (status === 200) gettable.push(uid);
        }
        const expected = new Set(gettable);
        // Bindings of the callers themselves, and of the owners of the roots, are there besides.
        const known = new Set(everyUid.get(kind));
        const builtin = kind.list === "roles" ? Object.keys(builtinRoles).map(builtinRoleUid) : [];
        for (const uid of builtin) assert.equal((await rest("GET", `/roles/${uid}`)).status, 200);

        for (const [i, field] of kind.orders.entries()) {
          for (const direction of sample(["", "%20desc"], column + row + i)) {
            const rows = await walk(rest, kind, `order_by=${field}${direction}`);
            const uids = rows.map(({ uid }) => uid);
            assert.equal(new Set(uids).size, uids.length, "nothing twice");
            const others = uids.filter((uid) => !known.has(uid) && !builtin.includes(uid));
            for (const uid of others) assert.equal((await rest("GET", `/${kind.list}/${uid}`)).status, 200);
            assert.ok(kind.list === "roleBindings" || others.length === 0, "nothing unknown");
            assert.deepEqual(new Set(uids.filter((uid) => known.has(uid))), expected, `${field}${direction}`);
            assert.deepEqual(uids.filter((uid) => builtin.includes(uid)).length, builtin.length);
            assert.deepEqual(
              uids,
              sortRows(rows, field, direction !== "").map(({ uid }) => uid),
              `${field}${direction}`,
            );
          }
        }
      });
    }
  });
}

function sortRows(rows: readonly Row[], field: string, descending: boolean): Row[] {
  const keyOf = (row: Row): string => {
    if (field === "name") return row.name ?? "";
    if (field === "created_at") return row.createTime ?? "";
    return field === "updated_at" ? (row.updateTime ?? "") : "";
  };
  const sign = descending ? -1 : 1;
  return [...rows].sort((x, y) => {
    const [one, other] = [`${keyOf(x)}\u0000${x.uid}`, `${keyOf(y)}\u0000${y.uid}`];
    return one < other ? -sign : sign;
  });
}

describe("what is hidden leaves no trace", () => {
  const names = Object.keys(callers);

  for (const [row, kind] of kinds.entries()) {
    it(`in the skips and totals of ${kind.list}`, async () => {
      const rest = restOf("a viewer of a group");
      const all = await walk(rest, kind, "order_by=created_at");
      for (const skip of [0, 1, 2, all.length - 1, all.length, all.length + 1]) {
        const { rows, total } = await page(rest, kind, `order_by=created_at&page_size=200&skip=${Math.max(0, skip)}`);
        assert.deepEqual(
          rows.map(({ uid }) => uid),
          all.slice(Math.max(0, skip)).map(({ uid }) => uid),
          `skip ${skip}`,
        );
        assert.equal(total, all.length);
      }
    });

    it(`when the page token of ${kind.list} is another caller's`, async () => {
      const owned = new Map<string, ReadonlySet<string>>();
      for (const taker of names) owned.set(taker, new Set((await walk(restOf(taker), kind, "")).map(({ uid }) => uid)));
      for (const [i, giver] of names.entries()) {
        const { token } = await page(restOf(giver), kind, "page_size=2");
        if (token === "") continue;
        // In a campaign all take it with each kind, otherwise some in turn.
        for (const [taker, own] of [...owned].filter((_, j) => isCampaign || (row + i + j) % 3 === 0)) {
          const { status, json } = await restOf(taker)("GET", `/${kind.list}?page_size=200&page_token=${token}`);
          if (status === 400) continue;
          assert.equal(status, 200);
          const rows = (json?.[kind.list] ?? []) as Row[];
          assert.deepEqual(
            rows.filter(({ uid }) => !own.has(uid)),
            [],
            `${giver} to ${taker}`,
          );
          assert.equal(Number(json?.totalCount), own.size);
        }
      }
    });
  }
});
