// Who sees which advisories, and which requests are rejected.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ConnectError } from "@connectrpc/connect";
import { ApiError } from "../../src/kernel/errors.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { childUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { type ModelAdvisory, randomAdvisories, storeModel } from "./advisory-model.js";
import { type AdvisoryWorld, advisoryWorld, child, type ListRequest, ours, sibling, theirs } from "./advisory-world.js";

let store: Store;
let world: AdvisoryWorld;
let model: readonly ModelAdvisory[];
before(async () => {
  store = openSqlite({ directory: tempDir() });
  world = await advisoryWorld(store);
  model = randomAdvisories(40, 7);
  for (const [i, one] of model.entries()) await store.write((tx) => storeModel(tx, one, i));
});
after(() => store.close());

const within = (...groups: readonly string[]) =>
  model
    .filter(({ groupUid }) => groups.includes(groupUid))
    .map(({ uid }) => uid)
    .sort();
const visible = async (identity: string, request: ListRequest = {}) =>
  (await world.list(identity, { pageSize: 200, ...request })).advisories.map(({ uid }) => uid);
const messageOf = (error: unknown) =>
  error instanceof ApiError || error instanceof ConnectError ? error.message : String(error);
const assertRejected = async (work: Promise<unknown>, text: RegExp) => {
  await assert.rejects(work, (error) => {
    assert.match(messageOf(error), text);
    return true;
  });
};

describe("a caller sees the advisories", () => {
  const cases: readonly { name: string; at: readonly string[]; sees: readonly string[] }[] = [
    { name: "of its organisation", at: [ours], sees: [ours, child, sibling] },
    { name: "of a group", at: [child], sees: [child] },
    { name: "of two groups", at: [child, theirs], sees: [child, theirs] },
  ];
  for (const { name, at, sees } of cases) {
    it(name, async () => {
      const identity = await world.reader(...at);
      assert.deepEqual(await visible(identity), within(...sees));
      for (const { uid, groupUid, advisoryId } of model) {
        if (sees.includes(groupUid)) assert.equal((await world.get(identity, uid)).advisoryId, advisoryId);
        else await assertRejected(world.get(identity, uid), /permission_denied|Permission denied/);
      }
    });
  }

  it("only with advisories.list, whatever else it holds", async () => {
    const identity = await world.holder(ours, "groups.list", "repo.list", "advisories.create");
    assert.deepEqual(await visible(identity), []);
    await assertRejected(world.get(identity, model[0]?.uid ?? ""), /Permission denied/);
  });

  it("and not those another organisation has, by any filter", async () => {
    const identity = await world.reader(theirs);
    const strangers = within(ours, child, sibling);
    assert.ok(strangers.length > 5);
    assert.deepEqual(await visible(identity, { uidp: { ids: strangers } }), []);
    assert.deepEqual(await visible(identity, { uidp: { descendantsOf: ours } }), []);
    const advisoryIds = model.map(({ advisoryId }) => advisoryId);
    assert.deepEqual(await visible(identity, { advisoryIds }), within(theirs));
  });

  it("and gets NOT_FOUND only where it may read the group", async () => {
    const reader = await world.reader(ours);
    await assertRejected(world.get(reader, childUid(child, 0xffff)), /Permission denied/);
    const insider = await world.holder(ours, "advisories.list", "groups.list");
    await assertRejected(world.get(insider, childUid(child, 0xffff)), /[Nn]ot found: advisory/);
  });
});

describe("a list is rejected", () => {
  const many = Array.from({ length: 1_001 }, (_, i) => `n${i}`);
  const cases: readonly { name: string; request: ListRequest; text: RegExp }[] = [
    {
      name: "with a control character in a name",
      request: { artifactNames: ["a\u0001b"] },
      text: /artifactNames must not/,
    },
    { name: "with a line break in its query", request: { query: "a\nb" }, text: /query must not contain control/ },
    { name: "with a long query", request: { query: "x".repeat(257) }, text: /query must be at most 256 characters/ },
    { name: "with a control character in its origin", request: { origin: "\u0007" }, text: /origin must not/ },
    { name: "with too many aliases", request: { aliases: many }, text: /aliases must be at most 1000/ },
    {
      name: "in the order of names",
      request: { orderBy: "name" },
      text: /orderBy must be one of uid, created_at, updated_at/,
    },
    { name: "with a page token of no list", request: { pageToken: "x" }, text: /page_?[tT]oken/ },
  ];
  for (const { name, request, text } of cases) {
    it(name, async () => assertRejected(world.list(await world.reader(ours), request), text));
  }

  it("with the page token of a list with other filters", async () => {
    const identity = await world.reader(ours);
    const { nextPageToken } = await world.list(identity, { pageSize: 1, query: "u" });
    assert.notEqual(nextPageToken, "");
    await assertRejected(world.list(identity, { pageSize: 1, query: "c", pageToken: nextPageToken }), /page_?[tT]oken/);
  });
});
