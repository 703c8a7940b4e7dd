// ListCatalogImages: the repos of the one group that the operator has chosen, for every caller who may list repos anywhere.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { restAs } from "../contract/rest.js";
import type { Somebody } from "../iam/iam-world.js";
import { groupRow } from "../support/rows.js";
import { type RegistryWorld, startRegistryWorld } from "./registry-world.js";

interface Entry {
  readonly uid: string;
  readonly name: string;
}

async function list(world: RegistryWorld, by: Somebody, query = "") {
  const { status, json, text } = await world.call("GET", `/catalogImages${query}`, undefined, by);
  assert.equal(status, 200, text);
  const { repos = [], nextPageToken = "", totalCount, skipped } = json ?? {};
  return {
    entries: repos as Entry[],
    names: (repos as Entry[]).map(({ name }) => name),
    token: encodeURIComponent(String(nextPageToken)),
    total: Number(totalCount),
    skipped,
  };
}

const nothing = { entries: [], names: [], token: "", total: 0, skipped: 0 };

describe("the catalogue", () => {
  const group = randomIds.newUid();
  const inner = randomIds.newUid(group);
  let world: RegistryWorld;
  let publisher: Somebody;
  before(async () => {
    world = await startRegistryWorld({ catalogGroup: group });
    await world.write(async (tx) => {
      for (const uid of [group, inner]) await tx.table(groupKind).insert(groupRow(uid));
    });
    publisher = await world.createBound("owner", group);
    const create = async (name: string, at: string, fields: object = {}) => {
      const { status, text, json } = await world.call("POST", `/repos/${at}`, { name, ...fields }, publisher);
      assert.equal(status, 200, text);
      return String(json?.uid);
    };
    const overlay = { customOverlay: { environment: { A: "secret of the publisher" } } };
    const source = await create("nginx", group, { description: "a server", catalogTier: "CATALOG_TIER_BASE" });
    await create("go", group, overlay);
    await create("zlib", group, { sync_config: { source } });
    await create("abc", group);
    await create("below", inner);
    await world.repo({ name: "ours" });
    await world.repo({ name: "theirs" }, world.foreign);
  });
  after(() => world.stop());

  it("has the repos of the group itself, in the order of their names, for every organisation alike", async () => {
    const mine = await list(world, world.owner);
    assert.deepEqual(mine.names, ["abc", "go", "nginx", "zlib"]);
    assert.equal(mine.total, 4);
    for (const by of [world.foreignOwner, publisher]) assert.deepEqual(await list(world, by), mine);
  });

  it("says what a repo is, without how it is copied and what is added to it", async () => {
    const { entries } = await list(world, world.owner);
    const keys = [
      "uid",
      "name",
      "description",
      "catalogTier",
      "bundles",
      "aliases",
      "activeTags",
      "createTime",
      "updateTime",
    ];
    for (const entry of entries) {
      assert.deepEqual(
        Object.keys(entry).filter((key) => !keys.includes(key)),
        [],
      );
    }
    const nginx = entries.find(({ name }) => name === "nginx");
    assert.ok(nginx);
    const { description, catalogTier } = nginx as unknown as Record<string, unknown>;
    assert.deepEqual([description, catalogTier], ["a server", "CATALOG_TIER_BASE"]);
    const own = (await world.call("GET", "/repos?name=zlib", undefined, publisher)).json?.repos as object[];
    assert.ok("sync_config" in (own[0] ?? {}), "which its owner sees");
  });

  it("gives no right over what it shows", async () => {
    const [first] = (await list(world, world.owner)).entries;
    for (const path of [`/repos/${first?.uid}`, `/repos/${first?.uid}/readme`]) {
      assert.equal((await world.call("GET", path)).status, 403);
    }
    const { json } = await world.call("GET", "/repos");
    assert.deepEqual(
      ((json?.repos ?? []) as Entry[]).map(({ name }) => name),
      ["ours"],
    );
  });

  it("is shown to callers who may list repos somewhere, and is empty for others", async () => {
    const inChild = await world.caller(["repo.list"], world.child);
    assert.equal((await list(world, inChild)).total, 4);
    const without = await world.caller(["groups.list", "repo.create"]);
    assert.deepEqual(await list(world, without), nothing);
    const stranger = await world.harness.identity();
    assert.deepEqual(await list(world, { ...stranger, rest: restAs(world.url, stranger.token) }), nothing);
    assert.equal((await fetch(`${world.url}/registry/v2beta1/catalogImages`)).status, 401);
  });

  it("is the same list in version 2", async () => {
    const { json } = await world.owner.rest("GET", "/../../registry/v2/catalogImages");
    assert.deepEqual(json?.repos, (await list(world, world.owner)).entries);
  });

  it("is filtered by name, ordered and read in pages", async () => {
    assert.deepEqual((await list(world, world.owner, "?name=go")).names, ["go"]);
    assert.deepEqual((await list(world, world.owner, "?name=ours")).names, []);
    assert.deepEqual((await list(world, world.owner, "?name=below")).names, []);
    assert.deepEqual((await list(world, world.owner, "?order_by=name%20desc")).names, ["zlib", "nginx", "go", "abc"]);
    assert.deepEqual((await list(world, world.owner, "?order_by=created_at")).names, ["nginx", "go", "zlib", "abc"]);
    const names: string[] = [];
    let token = "";
    do {
      const page = await list(world, world.owner, `?page_size=3&page_token=${token}`);
      assert.equal(page.total, 4);
      names.push(...page.names);
      ({ token } = page);
    } while (token !== "");
    assert.deepEqual(names, ["abc", "go", "nginx", "zlib"]);
    const skipped = await list(world, world.owner, "?skip=3");
    assert.deepEqual([skipped.names, skipped.total, skipped.skipped], [["zlib"], 4, 3]);
    for (const query of ["?order_by=description", "?page_size=-1", "?skip=-1", "?page_token=x"]) {
      assert.equal((await world.call("GET", `/catalogImages${query}`)).status, 400, query);
    }
  });

  it("has page tokens of its own", async () => {
    const own = await list(world, publisher, "?page_size=1");
    const { json } = await world.call("GET", "/repos?page_size=1&order_by=name", undefined, publisher);
    const others = encodeURIComponent(String(json?.nextPageToken));
    const filter = `uidp.children_of=${group}`;
    const filtered = await world.call("GET", `/repos?page_size=1&order_by=name&${filter}`, undefined, publisher);
    for (const path of [
      `/repos?page_size=1&order_by=name&page_token=${own.token}`,
      `/repos?page_size=1&order_by=name&${filter}&page_token=${own.token}`,
      `/catalogImages?page_size=1&page_token=${others}`,
      `/catalogImages?page_size=1&page_token=${encodeURIComponent(String(filtered.json?.nextPageToken))}`,
    ]) {
      assert.equal((await world.call("GET", path, undefined, publisher)).status, 400, path);
    }
  });
});

for (const [what, settings] of [
  ["no group is set", {}],
  ["the group does not exist", { catalogGroup: randomIds.newUid() }],
  ["the group is below one that does not exist", { catalogGroup: randomIds.newUid(randomIds.newUid()) }],
] as const) {
  describe(`the catalogue, where ${what}`, () => {
    let world: RegistryWorld;
    before(async () => {
      world = await startRegistryWorld(settings);
      await world.repo({ name: "ours" });
      await world.repo({ name: "theirs" }, world.foreign);
    });
    after(() => world.stop());

    it("is empty for everybody", async () => {
      for (const by of [world.owner, world.foreignOwner]) {
        assert.deepEqual(await list(world, by), nothing);
        assert.deepEqual(await list(world, by, "?name=ours"), nothing);
      }
      assert.equal((await world.call("GET", "/catalogImages?order_by=x")).status, 400);
    });
  });
}

it("the catalogue is empty once its group is deleted", async () => {
  const group = randomIds.newUid();
  const world = await startRegistryWorld({ catalogGroup: group });
  await world.repo({ name: "ours" });
  await world.write((tx) => tx.table(groupKind).insert(groupRow(group)));
  const publisher = await world.createBound("owner", group);
  const { json } = await world.call("POST", `/repos/${group}`, { name: "shown" }, publisher);
  assert.deepEqual((await list(world, world.owner)).names, ["shown"]);
  assert.equal((await world.call("DELETE", `/repos/${json?.uid}`, undefined, publisher)).status, 200);
  assert.equal((await publisher.rest("DELETE", `/groups/${group}`)).status, 200);
  assert.deepEqual(await list(world, world.owner), nothing);
  await world.stop();
});
