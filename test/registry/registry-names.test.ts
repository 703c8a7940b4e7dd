// The names of organisations in paths of the registry: one per organisation, never another's, and never a new one.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type RegistryNameOptions, verifyGroup } from "../../src/iam/operator/operate.js";
import { randomIds } from "../../src/kernel/ids.js";
import { applyEvents } from "../../src/registry/oci/apply-event.js";
import { listRepoPaths, locateRepo, parseRepoPath, type RepoLocation } from "../../src/registry/oci/repo-path.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { RegistryNameRow, UidPath } from "../../src/store/tables/registry.js";
import { childUid, groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const store = openSqlite({ directory: tempDir(), clock: () => NOW, exclusive: true });
after(() => store.close());

let count = 0;
/** A new root group; returns its uid. */
async function createRoot(name: string): Promise<string> {
  const uid = rootUid(++count);
  await store.write((tx) => tx.table(groupKind).insert(groupRow(uid, { name })));
  return uid;
}

const verify = (uid: string, options?: RegistryNameOptions) =>
  store.write((tx) => verifyGroup(tx, uid, undefined, { ids: randomIds, nowMs: NOW }, options));
const rename = (uid: string, name: string) => store.write((tx) => tx.table(groupKind).update(uid, { name }, NOW));
const remove = (uid: string) =>
  store.write(async (tx) => {
    const row = await tx.table(groupKind).find(uid);
    if (row) await tx.table(groupKind).delete(row.uid);
  });
const nameOf = (uid: string) => store.read((tx) => tx.registry.findName(uid));
const locate = async (path: string): Promise<RepoLocation | undefined> => {
  const parsed = parseRepoPath(path) ?? assert.fail(path);
  return store.read((tx) => locateRepo(tx, parsed));
};
const rejects = (work: Promise<unknown>, message: RegExp) =>
  assert.rejects(work, { reason: "FAILED_PRECONDITION", message });

test("verification records the name, once", async () => {
  const uid = await createRoot("first.example");
  assert.equal(await nameOf(uid), undefined);
  assert.equal(await verify(uid), "first.example");
  const row: RegistryNameRow = { name: "first.example", groupUid: uid, uidPath: "closed" };
  assert.deepEqual(await nameOf(uid), row);
  await store.write((tx) => tx.registry.putName({ ...row, uidPath: "moved" }));
  assert.equal(await verify(uid, { keepUidPulls: true }), undefined);
  assert.deepEqual(await nameOf(uid), { ...row, uidPath: "moved" });
});

test("pulls by the uid are kept where verification says so", async () => {
  const uid = await createRoot("kept.example");
  await verify(uid, { keepUidPulls: true });
  assert.equal((await nameOf(uid))?.uidPath, "pulls");
});

test("a group that was verified without a name gets it by a second verification", async () => {
  const uid = await createRoot("older.example");
  await store.write((tx) => tx.table(groupKind).update(uid, { verified: true }, NOW));
  assert.equal(await locate("older.example/app"), undefined);
  assert.equal(await verify(uid), "older.example");
});

test("a new name of the group leaves the recorded one, and the old name is nobody else's", async () => {
  const uid = await createRoot("before.example");
  await verify(uid);
  await rename(uid, "after.example");
  assert.deepEqual(await locate("before.example/app"), { groupUid: uid, path: "before.example/app" });
  assert.equal(await locate("after.example/app"), undefined);
  await verify(uid);
  assert.equal((await nameOf(uid))?.name, "before.example");
  const other = await createRoot("before.example");
  const inUse = new RegExp(`before\\.example is the name of the group ${uid} in the registry`);
  await rejects(verify(other), inUse);
  await rejects(verify(other, { reuseRegistryName: true }), inUse);
  assert.equal((await store.read((tx) => tx.table(groupKind).find(other)))?.verified, false);
  assert.deepEqual(await locate(`${other}/app`), { groupUid: other, path: `${other}/app` });
});

test("the name of a deleted organisation leads nowhere, and is given again only on purpose", async () => {
  const uid = await createRoot("gone.example");
  await verify(uid);
  await remove(uid);
  assert.equal(await locate("gone.example/app"), undefined);
  assert.equal(await locate(`${uid}/app`), undefined);
  const next = await createRoot("gone.example");
  await rejects(verify(next), /gone\.example was the name of a deleted group in the registry: .*--reuse-registry-name/);
  assert.equal(await locate("gone.example/app"), undefined);
  assert.equal(await verify(next, { reuseRegistryName: true }), "gone.example");
  assert.deepEqual(await locate("gone.example/app"), { groupUid: next, path: "gone.example/app" });
  assert.deepEqual(
    (await store.read((tx) => tx.registry.listNames())).filter(({ name }) => name === "gone.example"),
    [{ name: "gone.example", groupUid: next, uidPath: "closed" }],
  );
});

test("a repo whose path would be too long with the name keeps the uid", async () => {
  const name = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.example`;
  const uid = await createRoot(name);
  await verify(uid);
  const long = "r".repeat(128);
  assert.deepEqual(await locate(`${uid}/${long}`), { groupUid: uid, path: `${uid}/${long}` });
  assert.deepEqual(await locate(`${uid}/short`), { groupUid: uid, path: `${name}/short`, uidPath: "closed" });
});

const paths: readonly (readonly [UidPath, both: boolean])[] = [
  ["pulls", true],
  ["closed", true],
  ["moved", false],
];

for (const [uidPath, both] of paths) {
  test(`events by the uid ${both ? "count" : "are dropped"} where it is ${uidPath}`, async () => {
    const uid = await createRoot(`${uidPath}.events.example`);
    const named = `${uidPath}.events.example/app`;
    await verify(uid);
    await store.write((tx) => tx.registry.putName({ name: `${uidPath}.events.example`, groupUid: uid, uidPath }));
    const digest = `sha256:${"a".repeat(64)}`;
    const send = (id: string, action: "push" | "delete", path: string, tag: string) => {
      const request = { method: "PUT", remoteAddress: "", userAgent: "" };
      const event = {
        id: `${uidPath} ${id}`,
        action,
        path,
        tag,
        digest,
        actor: "",
        timeMs: NOW - 10 + Number(id),
        request,
      };
      const source = { method: "test", remoteAddress: "" };
      return store.write((tx) => applyEvents(tx, [event], { ids: randomIds, nowMs: NOW, source }));
    };
    assert.equal((await send("1", "push", named, "a")).dropped, 0);
    assert.equal((await send("2", "push", `${uid}/app`, "b")).dropped, both ? 0 : 1);
    // A moved repo is deleted under the uid; its tags stay.
    assert.equal((await send("3", "delete", `${uid}/app`, "")).dropped, both ? 0 : 1);
    const child = childUid(uid, 1);
    await store.write((tx) => tx.table(groupKind).insert(groupRow(child, { name: "x" })));
    assert.equal((await send("4", "push", `${child}/app`, "c")).dropped, 0);
    const lists = await store.read(async (tx) => {
      const [repo, below] = [
        await tx.table(repoKind).findByName(uid, "app"),
        await tx.table(repoKind).findByName(child, "app"),
      ];
      if (repo === undefined || below === undefined) throw new Error("there are no repos");
      return [await listRepoPaths(tx, repo), await listRepoPaths(tx, below)];
    });
    assert.deepEqual(lists, [both ? [named, `${uid}/app`] : [named], [`${child}/app`]]);
    const kept = await store.read(async (tx) => {
      const repo = await tx.table(repoKind).findByName(uid, "app");
      return (await tx.table(tagKind).findByName(repo?.uid ?? "", "a")) !== undefined;
    });
    assert.equal(kept, !both);
  });
}
