// Repos and tags in a store: rows, histories and marks, and lists of the requested families.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { groupKind } from "../../src/store/iam/groups.js";
import type { ListFilter } from "../../src/store/lists/query.js";
import { overlayBindingKind } from "../../src/store/registry/overlay-bindings.js";
import { overlayKind } from "../../src/store/registry/overlays.js";
import { type RepoRow, repoKind } from "../../src/store/registry/repos.js";
import { classifyTag, type TagFamily, tagFamilies } from "../../src/store/registry/tag-families.js";
import { type TagRow, type Tags, tagKind } from "../../src/store/registry/tags.js";
import type { Store } from "../../src/store/store.js";
import { childUid, groupRow, overlayBindingRow, overlayRow, rootUid } from "../support/rows.js";

const root = rootUid(0x20001);
const group = childUid(root, 1);
const [repo, other] = [childUid(group, 1), childUid(root, 2)];

/** A repo with every column filled in. */
export function repoRow(uid: string, values: Partial<RepoRow> = {}): RepoRow {
  return {
    uid,
    groupUid: uid.slice(0, uid.lastIndexOf("/")),
    name: "repo",
    description: "",
    config: {},
    readme: "",
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    ...values,
  };
}

const names: readonly ((n: string) => string)[] = [
  (n) => `tag-${n}`,
  (n) => `sha256-${n}`,
  (n) => `tag-${n}-20260131`,
  (n) => `tag-${n}-r1`,
  (n) => `tag-${n}_git20260131`,
  (n) => `tag-${n}_git20260131-r1`,
];

/** The nth tag of a repo. Six in a row are of six families. */
export function tagRow(n: number, values: Partial<TagRow> = {}): TagRow {
  const name = names[n % names.length]?.(String(n).padStart(2, "0")) ?? "";
  return {
    uid: childUid(values.repoUid ?? repo, n),
    repoUid: repo,
    name,
    digest: n % 3 === 0 ? "sha256:a" : "sha256:b",
    family: classifyTag(name),
    deprecated: n % 2 === 0,
    bundles: [`z${n}`, "a"],
    createTimeMs: 1_000,
    updateTimeMs: 1_000 + n,
    ...values,
  };
}

const rows = [
  ...Array.from({ length: 16 }, (_, n) => tagRow(n)),
  ...Array.from({ length: 8 }, (_, n) => tagRow(n, { repoUid: other })),
];

/** Registers the suite for a store that holds nothing else under the root used here. */
export function registrySuite(store: () => Store): void {
  describe("the registry", () => {
    before(() =>
      store().write(async (tx) => {
        for (const uid of [root, group]) await tx.table(groupKind).insert(groupRow(uid));
        for (const uid of [repo, other]) await tx.table(repoKind).insert(repoRow(uid));
        for (const row of rows) await tx.table(tagKind).insert(row);
      }),
    );

    test("repos and tags are read as they were written, and found by name", async () => {
      const config = { bundles: ["b", "a"], customOverlay: { environment: { Ä: "1\n2" } } };
      const row = repoRow(childUid(group, 9), { name: "full", config, readme: "# 🌳", description: "d" });
      await store().write((tx) => tx.table(repoKind).insert(row));
      await store().read(async (tx) => {
        assert.deepEqual({ ...(await tx.table(repoKind).find(row.uid)) }, row);
        assert.equal((await tx.table(repoKind).findByName(group, "full"))?.uid, row.uid);
        assert.equal(await tx.table(repoKind).findByName(root, "full"), undefined);
        assert.deepEqual(await tx.table(repoKind).findUidsWhere("groupUid", root), [other]);
        const [, tag] = rows;
        assert.deepEqual({ ...(await tx.table(tagKind).findByName(repo, String(tag?.name))) }, tag);
        assert.equal(await tx.table(tagKind).findByName(repo, "tag-99"), undefined);
      });
      await store().write((tx) => tx.table(repoKind).delete(row.uid));
    });

    test("of bindings of a repo that select the same and are made at once, one is made", async () => {
      const overlay = childUid(root, 0x90);
      await store().write((tx) => tx.table(overlayKind).insert(overlayRow(overlay)));
      const make = (n: number, check: boolean, deadlineMs?: number) =>
        store().write(
          async (tx) => {
            const row = overlayBindingRow(childUid(repo, 0x100 + n), overlay, { tags: [`own-${n}`, "shared"] });
            const taken = check ? await tx.table(overlayBindingKind).findConflicting(row) : undefined;
            if (taken === undefined) await tx.table(overlayBindingKind).insert(row);
            return taken;
          },
          deadlineMs === undefined ? {} : { deadlineMs },
        );
      const taken = await Promise.all(Array.from({ length: 6 }, (_, n) => make(n, true)));
      const made = await store().read((tx) => tx.table(overlayBindingKind).findUidsWhere("repoUid", repo));
      assert.equal(made.length, 1);
      assert.deepEqual(new Set(taken), new Set([undefined, made[0]]));
      assert.equal(taken.filter((one) => one === undefined).length, 1);
      // Without the question the key of the table decides.
      await assert.rejects(make(9, false, Date.now() + 300));
      await store().write((tx) => tx.table(overlayBindingKind).deleteOf(repo));
      assert.equal(await make(9, true), undefined);
      await store().write(async (tx) => {
        await tx.table(overlayBindingKind).deleteOf(repo);
        await tx.table(overlayKind).delete(overlay);
      });
    });

    test("two repos of a group, or two tags of a repo, never share a name", async () => {
      const late = { deadlineMs: Date.now() + 300 };
      await assert.rejects(async () =>
        store().write((tx) => tx.table(repoKind).insert(repoRow(childUid(group, 8))), late),
      );
      const twin = tagRow(77, { name: tagRow(1).name });
      await assert.rejects(async () => store().write((tx) => tx.table(tagKind).insert(twin), late));
    });

    const filters: Readonly<Record<string, ListFilter>> = {
      none: {},
      "descendants of a group": { descendantsOf: group },
      "descendants of a repo": { descendantsOf: repo },
      "children of a repo": { childrenOf: repo },
      "a name": { name: tagRow(3).name },
      "some by uid": { uids: [childUid(repo, 1), childUid(repo, 4), childUid(other, 2)] },
      "a digest": { equals: { digest: "sha256:a" } },
      "changed since": { equals: { updatedSince: 1_006 } },
      "a digest since, in a repo": { childrenOf: repo, equals: { digest: "sha256:b", updatedSince: 1_003 } },
      "some by uid since": { uids: [childUid(repo, 1), childUid(repo, 4)], equals: { updatedSince: 1_003 } },
    };
    const requested: readonly (readonly TagFamily[] | undefined)[] = [
      ...[undefined, [0], [1], [0, 2], [0, 1, 2, 3]],
      ...[[0, classifyTag("1_git")], tagFamilies],
    ];
    for (const [name, filter] of Object.entries(filters)) {
      test(`lists of tags, ${name}: every set of families, in every order, in pages of 2`, async () => {
        for (const families of requested) {
          for (const field of ["uid", "name", "updated_at"] as const) {
            const matching = rows.filter(
              (row) => passes(row, filter) && (families ?? [row.family]).includes(row.family),
            );
            const key = (row: TagRow) =>
              field === "uid" ? "" : field === "name" ? row.name : String(row.updateTimeMs).padStart(6, "0");
            const expected = matching.map((row) => `${key(row)} ${row.uid}`).sort();
            const found: string[] = [];
            let after: { key: string | number; uid: string } | undefined;
            do {
              const query = { visible: [root], filter, order: { field, descending: false }, skip: 0, limit: 2 };
              const page = await store().read((tx) =>
                tx.table(tagKind).listAll({ ...query, ...(after && { after }) }, families),
              );
              assert.equal(page.total, expected.length, `${families} by ${field}`);
              found.push(...page.rows.map((row) => `${key(row)} ${row.uid}`));
              after = page.next;
            } while (after !== undefined);
            assert.deepEqual(found, expected, `${families} by ${field}`);
          }
        }
      });
    }

    test("a history holds each move once, oldest first, and is deleted with its tag; marks are not", async () => {
      const row = tagRow(50, { repoUid: other });
      const move = (timeMs: number, digest: string) => ({ tagUid: row.uid, timeMs, digest });
      await store().write(async (tx) => {
        await tx.table(tagKind).insert(row);
        for (const one of [move(30, "c"), move(10, "a"), move(20, "b"), move(10, "a")])
          await tx.table(tagKind).recordMove(one);
        await tx.table(tagKind).putMark(other, row.name, 30);
        await tx.table(tagKind).putMark(other, row.name, 40);
      });
      const history = (from: number, to: number, limit: number) =>
        store().read(async (tx) =>
          (await tx.table(tagKind).listMoves(row.uid, from, to, limit)).map(({ digest }) => digest),
        );
      assert.deepEqual(await history(0, 100, 10), ["a", "b", "c"]);
      assert.deepEqual(await history(10, 30, 10), ["a", "b"]);
      assert.deepEqual(await history(0, 100, 2), ["a", "b"]);
      const digests = (of: string) => store().read(async (tx) => (await tx.table(tagKind).digestsOf(of)).sort());
      assert.deepEqual([await digests(other), await digests(repo)], [["a", "b", "c"], []]);
      await store().write((tx) => tx.table(tagKind).delete(row.uid));
      assert.deepEqual(await history(0, 100, 10), []);
      assert.equal(await store().read((tx) => tx.table(tagKind).findMark(other, row.name)), 40);
      assert.equal(await store().write((tx) => tx.table(tagKind).sweepMarks(41)), undefined);
      assert.equal(await store().read((tx) => tx.table(tagKind).findMark(other, row.name)), undefined);
    });

    test("marks are swept in steps, each of those that have no tag and are old", async () => {
      await store().write(async (tx) => {
        await tx.table(tagKind).insert(tagRow(51, { repoUid: other, name: "kept" }));
        await tx.table(tagKind).putMark(other, "kept", 1);
        for (let n = 0; n < 2_500; n++) await tx.table(tagKind).putMark(other, `gone-${n}`, n % 5 === 0 ? 9 : 1);
      });
      let steps = 1;
      for (let place = await sweep(undefined); place !== undefined; place = await sweep(place)) steps++;
      assert.equal(steps, 3);
      const isMarked = (name: string) =>
        store().read(async (tx) => (await tx.table(tagKind).findMark(other, name)) !== undefined);
      assert.deepEqual(await Promise.all(["kept", "gone-0", "gone-1", "gone-2499"].map(isMarked)), [
        true,
        true,
        false,
        false,
      ]);
      await store().write((tx) => tx.table(tagKind).delete(tagRow(51, { repoUid: other }).uid));

      function sweep(place: Awaited<ReturnType<Tags["sweepMarks"]>>) {
        return store().write((tx) => tx.table(tagKind).sweepMarks(5, place));
      }
    });

    test("an event is recorded once, and old events are deleted a few at a time", async () => {
      const see = (id: string, timeMs: number) => store().write((tx) => tx.registry.recordEvent(id, timeMs));
      const seen = [];
      for (const id of ["e1", "e2", "e3", "e1"]) seen.push(await see(id, 10));
      assert.deepEqual(seen, [true, true, true, false]);
      await see("e4", 11);
      const sweep = () => store().write(async (tx) => tx.registry.sweep(11, 2));
      assert.deepEqual([await sweep(), await sweep(), await sweep()], [2, 1, 0]);
      assert.deepEqual([await see("e1", 12), await see("e4", 12)], [true, false]);
    });

    test("a name in the registry has one group, a group has one name, and names outlive their groups", async () => {
      const [name, twin] = [rootUid(0x20002), rootUid(0x20003)];
      const row = { name: "names.example", groupUid: name, uidPath: "pulls" } as const;
      await store().write((tx) => tx.registry.putName(row));
      const late = { deadlineMs: Date.now() + 300 };
      const second = { ...row, name: "second.example" };
      await assert.rejects(async () => store().write((tx) => tx.registry.putName(second), late));
      const replaced = { ...row, groupUid: twin, uidPath: "moved" } as const;
      await store().write((tx) => tx.registry.putName(replaced));
      await store().read(async (tx) => {
        assert.equal(await tx.registry.findName(name), undefined);
        assert.deepEqual({ ...(await tx.registry.findName(twin)) }, replaced);
        assert.deepEqual({ ...(await tx.registry.findByName("names.example")) }, replaced);
        assert.equal(await tx.registry.findByName("second.example"), undefined);
        assert.deepEqual(
          (await tx.registry.listNames()).filter((one) => one.name.startsWith("names.")).map((one) => ({ ...one })),
          [replaced],
        );
      });
    });

    test("a tag whose new name is of another family is listed and counted there alone", async () => {
      const row = tagRow(0, { uid: childUid(repo, 900), name: "renamed", family: 0 });
      const query = { visible: [root], order: { field: "uid", descending: false }, skip: 0, limit: 1_000 } as const;
      const list = (family: TagFamily) =>
        store().read(async (tx) => {
          const page = await tx.table(tagKind).listAll({ ...query, filter: { childrenOf: repo } }, [family]);
          const below = await tx.table(tagKind).listAll({ ...query, filter: { descendantsOf: group } }, [family]);
          const counted = { total: page.total, below: below.total, rows: page.rows.length };
          return { ...counted, has: page.rows.some(({ uid }) => uid === row.uid) };
        });
      const read = async () => ({ usual: await list(0), dates: await list(2) });
      const before = await read();
      await store().write((tx) => tx.table(tagKind).insert(row));
      await store().write((tx) => tx.table(tagKind).replace({ ...row, name: "renamed-20261127", family: 2 }));
      const { dates } = before;
      const more = { total: dates.total + 1, below: dates.below + 1, rows: dates.rows + 1, has: true };
      assert.deepEqual(await read(), { usual: before.usual, dates: more });
      await store().write((tx) => tx.table(tagKind).delete(row.uid));
      assert.deepEqual(await read(), before);
    });

    test("deleting all tags of a repo removes them from lists and totals", async () => {
      const deleted = childUid(root, 3);
      await store().write(async (tx) => {
        await tx.table(repoKind).insert(repoRow(deleted, { name: "deleted" }));
        for (let n = 0; n < 510; n++) await tx.table(tagKind).insert(tagRow(n, { repoUid: deleted, name: `t${n}` }));
      });
      await store().write(async (tx) => {
        await tx.table(tagKind).recordMove({ tagUid: tagRow(9, { repoUid: deleted }).uid, timeMs: 1, digest: "d" });
        for (let n = 0; n < 300; n++) {
          await tx.table(tagKind).putMark(deleted, `t${n}`, 1);
          await tx.registry.putManifest({ repoUid: deleted, digest: `${n}`, images: {} });
        }
      });
      const parts = [];
      const deleteManifests = () => store().write((tx) => tx.registry.deleteManifests(deleted));
      for (let n = await deleteManifests(); n > 0; n = await deleteManifests()) parts.push(n);
      assert.equal(Math.max(...parts) < 300 && parts.reduce((sum, n) => sum + n, 0), 300);
      await store().write(async (tx) => {
        await tx.table(tagKind).deleteOf(deleted);
        await tx.table(repoKind).delete(deleted);
        assert.deepEqual(await tx.table(tagKind).listMoves(tagRow(9, { repoUid: deleted }).uid, 0, 9, 9), []);
        assert.equal(await tx.table(tagKind).findMark(deleted, "t299"), undefined);
      });
      const query = { visible: [root], filter: {}, order: { field: "name", descending: false }, skip: 0, limit: 1 };
      await store().read(async (tx) => {
        assert.equal((await tx.table(tagKind).listAll(query)).total, rows.length);
        assert.equal((await tx.table(tagKind).list(query)).total, rows.filter(({ family }) => family === 0).length);
        assert.equal((await tx.table(repoKind).list(query)).total, 2);
      });
    });
  });
}

function passes(row: TagRow, { descendantsOf, childrenOf, name, uids, equals = {} }: ListFilter): boolean {
  return (
    (descendantsOf === undefined || row.uid.startsWith(`${descendantsOf}/`)) &&
    (childrenOf === undefined || row.repoUid === childrenOf) &&
    (name === undefined || row.name === name) &&
    (uids === undefined || uids.includes(row.uid)) &&
    (equals.digest === undefined || row.digest === equals.digest) &&
    (equals.updatedSince === undefined || row.updateTimeMs >= Number(equals.updatedSince))
  );
}
