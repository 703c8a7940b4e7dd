// Tags over REST: what they may be, that creating one again moves it, and which
// of them lists show.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { kinds } from "../../src/store/kinds.js";
import { counterOf, familiesOf } from "../../src/store/lists/resource.js";
import { classifyTag, formatIncluded, selectFamilies, tagFamilies } from "../../src/store/registry/tag-families.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { invalid } from "../contract/expectations.js";
import { digestOf, type RegistryWorld, startRegistryWorld } from "./registry-world.js";

let world: RegistryWorld;
before(async () => {
  world = await startRegistryWorld();
});
after(() => world.stop());

let made = 0;
const newRepo = () => world.repo({ name: `tags-${made++}` }, world.child);
const list = async (query: string) => {
  const { json, status, text } = await world.call("GET", `/tags?${query}`);
  assert.equal(status, 200, text);
  const tags = (json?.tags ?? []) as { uid: string; name: string; updateTime: string }[];
  return { json, tags, names: tags.map(({ name }) => name) };
};

describe("the family of a tag", () => {
  const families: readonly (readonly [name: string, family: number])[] = [
    ["latest", 0],
    ["1.2.3", 0],
    ["sha256", 0],
    ["my-sha256-x", 0],
    [`sha256-${"a".repeat(64)}.sig`, 1],
    ["sha256-20250131", 259],
    ["latest-20250131", 2],
    ["1.2-r3-20251231", 2],
    ["latest-20251331", 0],
    ["latest-20250132", 0],
    ["latest-19991231", 0],
    ["latest-202501311", 0],
    ["20250131", 0],
    ["1.2.3-r0", 3],
    ["latest-20250131-r2", 3],
    ["1.2.3-r", 0],
    ["1.2.3-r0-dev", 0],
    ["3.14.7_git20260914", 264],
    ["3.14.7_git20260914-dev", 264],
    ["3.14.7_git", 264],
    ["1.2b_cvs1", 264],
    ["1.2_svn-dev", 264],
    ["1_hg2_p3", 264],
    ["1.0_rc1_git20260914", 264],
    ["1.0_rc_git20260914", 264],
    ["openjdk-21.0.4_git20260914-jre", 264],
    ["3.14.7_git20260914-r0", 268],
    ["3.14.7_git20260914-20260915", 266],
    [`sha256-${"a".repeat(64)}-r1`, 261],
    [`sha256-${"a".repeat(64)}_git1`, 265],
    [`sha256-${"a".repeat(64)}_git1-r1`, 269],
    [`sha256-${"a".repeat(64)}_git1-20260914`, 267],
    ["feature_git", 0],
    ["_git20260914", 0],
    ["1.2_github", 0],
    ["1.2_git3f2a9c1", 0],
    ["1.2_git1.2", 0],
    ["1.2_GIT1", 0],
    ["1.2-git1", 0],
    ["1.2_p3", 0],
  ];
  for (const [name, family] of families) it(`${name}: ${family}`, () => assert.equal(classifyTag(name), family));

  it("is one of those that have counters", () => {
    const found = new Set(families.map(([, family]) => family));
    assert.deepEqual(
      [...found].sort((a, b) => a - b),
      tagFamilies,
    );
  });

  it("has counters of its own, which servers that know the families 0 to 3 alone compute in the same way", () => {
    const counters = kinds.flatMap((kind) =>
      familiesOf(kind).flatMap((family) => [counterOf(kind, "below", family), counterOf(kind, "children", family)]),
    );
    assert.equal(new Set(counters).size, counters.length);
    assert.equal(counterOf(tagKind, "children", 268), 80 + 2 * 268 + 1);
  });

  it("is named in page tokens as in those of older versions, where a list does not include snapshots", () => {
    const old = { referrers: true, dates: false, epochs: true, vcsSnapshots: false };
    assert.equal(formatIncluded(old), "0 1 3");
    assert.equal(formatIncluded({ ...old, vcsSnapshots: true }), "0 1 3 4");
    assert.deepEqual(selectFamilies({ referrers: true, dates: true, epochs: true, vcsSnapshots: true }).length, 12);
  });
});

describe("a tag", () => {
  it("is shown as it was created", async () => {
    const repo = await newRepo();
    const body = { name: "1.0", digest: digestOf("a"), deprecated: true, bundles: ["z", "a"] };
    const { json, status } = await world.call("POST", `/tags/${repo}`, body);
    assert.equal(status, 200);
    const { uid, updateTime, ...rest } = json ?? {};
    assert.match(String(uid), new RegExp(`^${repo}/[0-9a-f]{16}$`));
    assert.match(String(updateTime), /^\d{4}-\d\d-\d\dT/);
    assert.deepEqual(rest, body);
    assert.deepEqual((await world.call("GET", `/tags/${uid}`)).json, json);
  });

  it("that exists is moved, with a history and a new time; a repeated request changes nothing", async () => {
    const repo = await newRepo();
    const uid = await world.tag(repo, "latest", "a");
    const first = (await world.call("GET", `/tags/${uid}`)).json;
    world.harness.skewMs += 1_000;
    assert.equal(await world.tag(repo, "latest", "a"), uid);
    assert.deepEqual((await world.call("GET", `/tags/${uid}`)).json, first);
    assert.equal(await world.tag(repo, "latest", "b"), uid);
    const second = (await world.call("GET", `/tags/${uid}`)).json;
    assert.equal(second?.digest, digestOf("b"));
    assert.notEqual(second?.updateTime, first?.updateTime);
    world.harness.skewMs += 1_000;
    await world.tag(repo, "latest", "a");
    const moves = await world.write((tx) => tx.table(tagKind).listMoves(uid, 0, Number.MAX_SAFE_INTEGER, 10));
    assert.deepEqual(
      moves.map(({ digest }) => digest),
      ["a", "b", "a"].map(digestOf),
    );
    assert.ok(moves.every(({ timeMs }, i) => i === 0 || timeMs > (moves[i - 1]?.timeMs ?? 0)));
    assert.equal((await list(`uidp.childrenOf=${repo}`)).json?.totalCount, "1");
  });

  it("can be marked as deprecated without being moved", async () => {
    const repo = await newRepo();
    const uid = await world.tag(repo, "old");
    const body = { name: "old", digest: digestOf("a"), deprecated: true };
    assert.equal((await world.call("POST", `/tags/${repo}`, body)).json?.deprecated, true);
    assert.equal(
      (await world.write((tx) => tx.table(tagKind).listMoves(uid, 0, Number.MAX_SAFE_INTEGER, 10))).length,
      1,
    );
  });

  it("is deleted with its history", async () => {
    const repo = await newRepo();
    const uid = await world.tag(repo, "short-lived");
    const gone = await world.call("DELETE", `/tags/${uid}`);
    assert.deepEqual([gone.status, gone.json ?? {}], [200, {}]);
    for (const method of ["GET", "DELETE"]) {
      const { status, json } = await world.call(method, `/tags/${uid}`);
      assert.deepEqual([status, json?.message], [404, `Not found: tag: there is no tag ${uid}`]);
    }
    assert.deepEqual(await world.write((tx) => tx.table(tagKind).listMoves(uid, 0, Number.MAX_SAFE_INTEGER, 10)), []);
    assert.notEqual(await world.tag(repo, "short-lived"), uid);
  });

  it("needs a repo that exists", async () => {
    const missing = `${world.root}/${"0".repeat(16)}`;
    const body = { name: "a", digest: digestOf("a") };
    const { status, json } = await world.call("POST", `/tags/${missing}`, body);
    assert.deepEqual([status, json?.message], [404, `Not found: repo: there is no repo ${missing}`]);
  });
});

describe("a list of tags", () => {
  const usual = ["latest", "1.2", "1.2.3", "edge"];
  const switches = ["includeReferrers", "includeDates", "includeEpochs", "includeVcsSnapshots"] as const;
  const [referrers, dates, epochs, snapshots] = switches;
  /** The other tags, with the switches that each of them needs. */
  const hidden: Readonly<Record<string, readonly (typeof switches)[number][]>> = {
    "sha256-aa.sig": [referrers],
    "sha256-bb.att": [referrers],
    "latest-20250131": [dates],
    "edge-20260228": [dates],
    "1.2.3-r0": [epochs],
    "1.2.3-r1": [epochs],
    "3.14.7_git20260914": [snapshots],
    "3.14.7_git20260914-dev": [snapshots],
    "3.14.7_git20260914-r0": [epochs, snapshots],
    "3.14.7_svn1-20260914": [dates, snapshots],
    "sha256-cc-r1": [referrers, epochs],
    "sha256-cc-20260914": [referrers, dates],
    "sha256-cc_hg1": [referrers, snapshots],
    "sha256-cc_hg1-r1": [referrers, epochs, snapshots],
    "sha256-cc_hg1-20260914": [referrers, dates, snapshots],
  };
  const hiddenNames = Object.keys(hidden);
  let group: string;
  let repo: string;
  let uids: Readonly<Record<string, string>>;
  const sortBy = (names: readonly string[], key: (name: string) => string) =>
    [...names].sort((a, b) => (key(a) < key(b) ? -1 : 1));

  before(async () => {
    group = await world.group();
    repo = await world.repo({ name: "families" }, group);
    const entries: [string, string][] = [];
    const mixed = hiddenNames.flatMap((name, i) => [name, usual[i] ?? ""]);
    for (const name of mixed.filter((one) => one !== "")) {
      world.harness.skewMs += 10;
      entries.push([name, await world.tag(repo, name, name.startsWith("1.2.3") ? "c" : "a")]);
    }
    uids = Object.fromEntries(entries);
  });

  for (let bits = 0; bits < 16; bits++) {
    const on = switches.filter((_, i) => bits & (1 << i));
    const listExpected = () => [
      ...usual,
      ...hiddenNames.filter((name) => hidden[name]?.every((needed) => on.includes(needed))),
    ];
    const parents = () => [
      `uidp.descendantsOf=${group}`,
      `uidp.childrenOf=${repo}`,
      Object.values(uids)
        .map((uid) => `uidp.ids=${uid}`)
        .join("&"),
    ];
    it(`with ${on.join(", ") || "no switch"}: in every order, from every parent, by pages of 3`, async () => {
      for (const parent of parents()) {
        for (const [order, key] of [
          ["", (name: string) => uids[name] ?? ""],
          ["name", (name: string) => name],
          ["updated_at", (name: string) => String(Object.keys(uids).indexOf(name)).padStart(2, "0")],
        ] as const) {
          const query = [parent, ...on.map((one) => `${one}=true`), "page_size=3", order && `order_by=${order}`];
          const seen: string[] = [];
          let token = "";
          do {
            const { names, json } = await list(`${query.filter(Boolean).join("&")}&page_token=${token}`);
            assert.equal(json?.totalCount, String(listExpected().length), query.join("&"));
            seen.push(...names);
            token = encodeURIComponent(String(json?.nextPageToken ?? ""));
          } while (token !== "");
          assert.deepEqual(seen, sortBy(listExpected(), key), query.join("&"));
        }
      }
    });
  }

  it("of a name or a digest shows those alone, of hidden families only where included", async () => {
    const parent = `uidp.childrenOf=${repo}`;
    const below = `uidp.descendantsOf=${group}`;
    for (const at of [parent, below]) {
      assert.deepEqual((await list(`${at}&name=latest`)).names, ["latest"]);
      assert.deepEqual((await list(`${at}&name=1.2.3-r0`)).names, []);
      assert.deepEqual((await list(`${at}&name=1.2.3-r0&includeEpochs=true`)).names, ["1.2.3-r0"]);
      const digest = `digest=${digestOf("c")}&order_by=name`;
      assert.deepEqual((await list(`${at}&${digest}`)).names, ["1.2.3"]);
      assert.deepEqual((await list(`${at}&${digest}&includeEpochs=true`)).names, ["1.2.3", "1.2.3-r0", "1.2.3-r1"]);
      assert.equal((await list(`${at}&${digest}&includeEpochs=true`)).json?.totalCount, "3");
    }
  });

  it("since a time shows later changes", async () => {
    const all = await list(`uidp.childrenOf=${repo}&order_by=updated_at`);
    const [, second] = all.tags;
    const since = encodeURIComponent(String(second?.updateTime));
    const query = `uidp.descendantsOf=${group}&order_by=updated_at&updated_since=${since}`;
    assert.deepEqual((await list(query)).names, all.names.slice(2));
    assert.equal((await list(query)).json?.totalCount, String(all.names.length - 2));
  });

  it("since the last moments of the year 9999 shows nothing, and a later time is refused", async () => {
    const at = `uidp.childrenOf=${repo}`;
    for (const since of ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999999Z"])
      assert.deepEqual((await list(`${at}&updatedSince=${since}`)).names, [], since);
    assert.deepEqual((await list(`${at}&updatedSince.seconds=253402300799&updated_since.nanos=999999999`)).names, []);
    assert.equal((await list(`${at}&updatedSince.seconds=0`)).names.length, usual.length);
    const rule = "updatedSince must be a time of RFC 3339 such as 2026-01-31T09:30:00Z";
    const later = await world.call("GET", `/tags?${at}&updatedSince.seconds=253402300800`);
    assert.deepEqual(later.outcome, invalid(["updatedSince", rule]));
  });

  const refused: readonly { query: string; broken: readonly [string, string] }[] = [
    {
      query: "order_by=created_at",
      broken: ["orderBy", 'orderBy must be one of uid, name, updated_at, optionally followed by " asc" or " desc"'],
    },
    { query: "digest=abc", broken: ["digest", "digest must be a digest, such as sha256: and 64 hexadecimal digits"] },
    { query: "page_size=-1", broken: ["pageSize", "pageSize must not be negative"] },
  ];
  for (const { query, broken } of refused) {
    it(`with ${query} is rejected`, async () => {
      assert.deepEqual((await world.call("GET", `/tags?${query}`)).outcome, invalid(broken));
    });
  }

  it("is not continued by the token of a list of other families", async () => {
    const { json } = await list(`uidp.childrenOf=${repo}&page_size=1`);
    const token = encodeURIComponent(String(json?.nextPageToken));
    const other = `/tags?uidp.childrenOf=${repo}&page_size=1&includeDates=true&page_token=${token}`;
    assert.equal((await world.call("GET", other)).status, 400);
  });
});
