// What quotas cost: one read for a call that creates something, nothing for all
// others.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { type InProcess, inProcess } from "../support/in-process.js";
import { identityRow } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

describe("a call", () => {
  let store: Store;
  let call: InProcess;
  let units = { reads: 0, writes: 0 };
  const owner = randomIds.newUid();
  let root: string;

  before(async () => {
    store = openSqlite({ directory: tempDir() });
    const counting: Store = {
      lateCommitMs: store.lateCommitMs,
      stats: () => store.stats(),
      read: (...args) => {
        units.reads++;
        return store.read(...args);
      },
      write: (...args) => {
        units.writes++;
        return store.write(...args);
      },
      check: () => store.check(),
      close: () => store.close(),
    };
    call = await inProcess(counting, randomIds, Date.now);
    await store.write((tx) => tx.table(identityKind).insert(identityRow(owner)));
    root = (await unitsOf("iam.v2beta1.GroupsService/CreateGroup", { group: { name: "root" } })).uid;
  });
  after(() => store.close());

  async function unitsOf(method: string, request: object) {
    units = { reads: 0, writes: 0 };
    const response = await call(`/chainguard.platform.${method}`, owner, request);
    const { uid = "", id = uid } = response as { uid?: string; id?: string };
    return { ...units, uid: id };
  }

  const cases: readonly { method: string; request: () => object; reads: number; writes: number }[] = [
    { method: "iam.v2beta1.GroupsService/GetGroup", request: () => ({ uid: root }), reads: 1, writes: 0 },
    { method: "iam.v2beta1.GroupsService/ListGroups", request: () => ({}), reads: 1, writes: 0 },
    { method: "iam.Groups/List", request: () => ({}), reads: 1, writes: 0 },
    {
      method: "iam.v2beta1.GroupsService/UpdateGroup",
      request: () => ({ group: { uid: root, name: "new" } }),
      reads: 0,
      writes: 1,
    },
    {
      method: "iam.v2beta1.GroupsService/CreateGroup",
      request: () => ({ parent: root, group: { name: "a" } }),
      reads: 1,
      writes: 1,
    },
    {
      method: "iam.Groups/Create",
      request: () => ({ parent: root, group: { name: "a" } }),
      reads: 1,
      writes: 1,
    },
  ];
  for (const { method, request, reads, writes } of cases) {
    test(`of ${method} takes ${reads} reads and ${writes} writes`, async () => {
      const { uid: _, ...taken } = await unitsOf(method, request());
      assert.deepEqual(taken, { reads, writes });
    });
  }
});
