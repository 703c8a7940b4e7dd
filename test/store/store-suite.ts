// What every store must do; runs on SQLite and on PostgreSQL.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Code } from "@connectrpc/connect";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { ApiError, invalidArgument } from "../../src/kernel/errors.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import type { Store } from "../../src/store/store.js";
import type { TicketKind } from "../../src/store/tables/tokens.js";
import type { Tx } from "../../src/store/transaction.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import { auditChainSuite } from "./audit-chain-suite.js";
import { listSuite } from "./list-suite.js";
import { manySubtreesSuite } from "./many-subtrees-suite.js";
import { registrySuite } from "./registry-suite.js";

/** Registers the suite under `name` for the store that `open` opens empty. */
export function storeSuite(name: string, open: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store;
    before(async () => {
      store = await open();
    });
    after(() => store.close());

    test("check() resolves when the store is ready", async () => {
      assert.equal(await store.check(), "ok");
    });

    test("rows are read exactly as they were written, with milliseconds and maps", async () => {
      const row = groupRow(rootUid(1), {
        name: "a name_with.all-kinds 0",
        description: "Zürich 🌳 'quoted' \"twice\" \\ % _ ; --",
        verified: true,
        kind: 3,
        resourceLimits: { idps: 2, repositories: -1 },
        createTimeMs: 1_763_675_334_123,
        updateTimeMs: 4_102_444_800_999,
      });
      await store.write((tx) => tx.table(groupKind).insert(row));
      assert.deepEqual({ ...(await store.read((tx) => tx.table(groupKind).find(row.uid))) }, row);
    });

    test("a read sees every write that was acknowledged before, hundreds of times", async () => {
      const root = rootUid(2);
      await store.write((tx) => tx.table(groupKind).insert(groupRow(root)));
      for (let i = 0; i < chooseScale(1_000, 300); i += 50) {
        await Promise.all(
          Array.from({ length: 50 }, async (_, k) => {
            const uid = childUid(root, i + k);
            await store.write((tx) => tx.table(groupKind).insert(groupRow(uid)));
            assert.ok(await store.read((tx) => tx.table(groupKind).find(uid)), uid);
          }),
        );
      }
    });

    test("the writes of a failing unit are rolled back, those of concurrent units are not", async () => {
      const root = rootUid(3);
      await store.write((tx) => tx.table(groupKind).insert(groupRow(root)));
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          store.write(async (tx) => {
            await tx.table(groupKind).insert(groupRow(childUid(root, i)));
            if (i % 3 === 0) throw invalidArgument({ field: "i", subject: "", rule: String(i) });
            return i;
          }),
        ),
      );
      for (const [i, outcome] of outcomes.entries()) {
        const stored = await store.read((tx) => tx.table(groupKind).find(childUid(root, i)));
        assert.equal(outcome.status, i % 3 === 0 ? "rejected" : "fulfilled", `outcome of ${i}`);
        assert.equal(stored !== undefined, i % 3 !== 0, `row of ${i}`);
        if (outcome.status === "rejected") assert.equal(outcome.reason.message, `Invalid argument: i: ${i}`);
        else assert.equal(outcome.value, i);
      }
      const { total } = await store.read((tx) => tx.table(groupKind).list(allIn(root)));
      assert.equal(total, 1 + outcomes.filter(({ status }) => status === "fulfilled").length);
    });

    test("a violated constraint fails the unit and no other", async () => {
      const root = rootUid(4);
      await store.write((tx) => tx.table(groupKind).insert(groupRow(root)));
      await assert.rejects(
        async () =>
          store.write((tx) => tx.table(roleKind).insert(roleRow(childUid(rootUid(99), 1), { groupUid: rootUid(99) })), {
            deadlineMs: Date.now() + 300,
          }),
        "a role without its group",
      );
      assert.ok(await store.read((tx) => tx.table(groupKind).find(root)));
    });

    test("a transaction cannot be used after its unit has settled", async () => {
      let escaped: Tx | undefined;
      await store.write(async (tx) => {
        escaped = tx;
        await tx.settings.put("alive", "yes");
      });
      const isEnded = /after its unit of work had settled/;
      await assert.rejects(async () => escaped?.settings.put("alive", "no"), isEnded);
      await assert.rejects(async () => escaped?.jobs.nowMs(), isEnded);
      assert.equal(await store.read((tx) => tx.settings.find("alive")), "yes");
    });

    test("all statements of a read see one state, whatever is written meanwhile", async () => {
      const pair = ["left", "right"];
      const write = (n: number) =>
        store.write(async (tx) => {
          for (const name of pair) await tx.settings.put(name, String(n));
        });
      await write(0);
      const seen = new Set<string>();
      let isDone = false;
      const writing = (async () => {
        for (let n = 1; !isDone; n++) await write(n);
      })();
      for (let i = 0; i < 60; i++) {
        const [left, right] = await store.read(async (tx) => {
          const first = await tx.settings.find("left");
          for (let k = 0; k < 20; k++) await tx.settings.find("other");
          return [first, await tx.settings.find("right")];
        });
        assert.equal(left, right);
        seen.add(String(left));
        // SQLite reads without waiting: the writer continues in between.
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      isDone = true;
      await writing;
      assert.ok(seen.size > 10, `only ${seen.size} states were read`);
    });

    test("a unit whose deadline has passed does not start", async () => {
      let started = false;
      const late = store.write(
        async () => {
          started = true;
        },
        { deadlineMs: Date.now() - 1 },
      );
      await assert.rejects(late, (error) => error instanceof ApiError && error.code === Code.DeadlineExceeded);
      assert.equal(started, false);
    });

    test("concurrent changes of one row are all applied", async () => {
      const uid = rootUid(5);
      await store.write((tx) => tx.table(groupKind).insert(groupRow(uid, { kind: 0 })));
      await Promise.all(
        Array.from({ length: 30 }, () =>
          store.write(async (tx) => {
            const row = await tx.table(groupKind).find(uid);
            await tx.table(groupKind).update(uid, { kind: (row?.kind ?? 0) + 1 }, 2_000);
          }),
        ),
      );
      assert.equal((await store.read((tx) => tx.table(groupKind).find(uid)))?.kind, 30);
    });

    test("of creating a child and deleting its parent at once exactly one succeeds, and no orphan remains", async () => {
      for (let i = 0; i < 40; i++) {
        const parent = rootUid(1_000 + i);
        const row = groupRow(parent);
        await store.write((tx) => tx.table(groupKind).insert(row));
        const [created, deleted] = await Promise.allSettled([
          store.write(async (tx) => {
            if (!(await tx.table(groupKind).find(parent)))
              throw invalidArgument({ field: "parent", subject: "", rule: "gone" });
            await tx.table(groupKind).insert(groupRow(childUid(parent, 1)));
          }),
          store.write(async (tx) => {
            if ((await tx.table(groupKind).findUidsWhere("parentUid", parent, 1)).length > 0)
              throw invalidArgument({ field: "uid", subject: "", rule: "not empty" });
            await tx.table(groupKind).delete(row.uid);
          }),
        ]);
        assert.notEqual(created.status, deleted.status, `race ${i}: ${created.status} and ${deleted.status}`);
        const [above, below] = await store.read(async (tx) => [
          await tx.table(groupKind).find(parent),
          await tx.table(groupKind).find(childUid(parent, 1)),
        ]);
        assert.equal(below === undefined, above === undefined, `race ${i}`);
      }
    });

    test("one query returns the caller and the grants at given groups", async () => {
      const [root, other] = [rootUid(6), rootUid(7)];
      const child = childUid(root, 1);
      const [caller, ungranted, viewer] = [rootUid(60), rootUid(61), rootUid(62)];
      const capabilities = toCapabilitySet([3]);
      await store.write(async (tx) => {
        for (const uid of [root, other, child]) await tx.table(groupKind).insert(groupRow(uid));
        for (const uid of [caller, ungranted]) await tx.table(identityKind).insert(identityRow(uid, { notBefore: 7 }));
        await tx.table(roleKind).insert(roleRow(viewer, { capabilities }));
        await tx.table(roleBindingKind).insert(bindingRow(childUid(child, 9), caller, viewer));
        await tx.table(roleBindingKind).insert(bindingRow(childUid(other, 9), caller, viewer));
      });
      await store.read(async (tx) => {
        const grant = {
          identityUid: caller,
          notBefore: 7,
          revokeTimeMs: 0,
          revokedTokenId: null,
          keyId: null,
          providerUid: null,
          groupUid: child,
          roleUid: viewer,
          capabilities,
          pending: false,
          endTimeMs: null,
        };
        assert.deepEqual((await tx.access.findGrantsAt(caller, [root, child])).map(plain), [grant]);
        const none = { ...grant, groupUid: null, roleUid: null, capabilities: null, pending: null };
        assert.deepEqual((await tx.access.findGrantsAt(caller, [root])).map(plain), [none]);
        assert.deepEqual((await tx.access.findGrantsAt(ungranted, [root, child])).map(plain), [
          { ...none, identityUid: ungranted },
        ]);
        assert.deepEqual(await tx.access.findGrantsAt(rootUid(63), [root]), []);
        assert.deepEqual((await tx.access.findAllGrants(caller)).map((row) => row.groupUid).sort(), [child, other]);
        assert.deepEqual((await tx.access.findIdentity(caller)).map(plain), [none]);
        const boundAt = (await tx.table(roleBindingKind).findByRole(viewer)).map(({ groupUid }) => groupUid);
        assert.deepEqual(boundAt, [child, other]);
        assert.ok((await tx.table(roleKind).listOutsideGroups()).some(({ uid }) => uid === viewer));
        assert.equal(await tx.table(roleBindingKind).countGranted(child, 2), 1);
        assert.equal(await tx.table(roleBindingKind).countGranted(root, 2), 0);
      });
    });

    test("grants at siblings of a group are not grants at the group, however many there are", async () => {
      const root = rootUid(8);
      const [few, many, viewer] = [rootUid(64), rootUid(65), rootUid(66)];
      const siblings = Array.from({ length: 40 }, (_, i) => childUid(root, i));
      const deep = Array.from({ length: 39 }, (_, i) => `${root}${"/ffffffffffffffff".repeat(i + 1)}`);
      await store.write(async (tx) => {
        for (const uid of [root, ...siblings, ...deep]) await tx.table(groupKind).insert(groupRow(uid));
        for (const uid of [few, many]) await tx.table(identityKind).insert(identityRow(uid));
        await tx.table(roleKind).insert(roleRow(viewer));
        const bind = (identity: string, group: string) =>
          tx.table(roleBindingKind).insert(bindingRow(childUid(group, identity === few ? 1 : 2), identity, viewer));
        for (const uid of [...siblings.slice(0, 5), deep[3] ?? ""]) await bind(few, uid);
        for (const uid of [...siblings, deep[3] ?? ""]) await bind(many, uid);
      });
      for (const identity of [few, many]) {
        const grantsAt = async (...lineage: string[]) =>
          (await store.read((tx) => tx.access.findGrantsAt(identity, lineage))).map((row) => row.groupUid);
        assert.deepEqual(await grantsAt(root), [null]);
        assert.deepEqual(await grantsAt(root, childUid(root, 3)), [childUid(root, 3)]);
        assert.deepEqual(await grantsAt(root, childUid(root, 99)), [null]);
        assert.deepEqual(await grantsAt(root, ...deep.slice(0, 3)), [null]);
        assert.deepEqual(await grantsAt(root, ...deep), [deep[3]]);
      }
    });

    test("the root groups of pending bindings, however many bindings each has", async () => {
      const [person, other, viewer] = [rootUid(70), rootUid(71), rootUid(72)];
      const roots = Array.from({ length: 12 }, (_, i) => rootUid(700 + i));
      await store.write(async (tx) => {
        await tx.table(roleKind).insert(roleRow(viewer));
        for (const [i, root] of roots.entries()) {
          await tx.table(groupKind).insert(groupRow(root));
          await tx.table(groupKind).insert(groupRow(childUid(root, 1)));
          const bind = (group: string, n: number, identity: string, pending: boolean) =>
            tx.table(roleBindingKind).insert(bindingRow(childUid(group, n), identity, viewer, { pending }));
          // The third root has no pending binding, and that of the last is for the other person.
          await bind(root, 2, i === 11 ? other : person, i !== 2);
          await bind(childUid(root, 1), 3, i === 11 ? other : person, i !== 2);
        }
      });
      const expected = roots.filter((_, i) => i !== 2 && i !== 11);
      await store.read(async (tx) => {
        assert.deepEqual(await tx.table(roleBindingKind).findPendingRoots(person, 100), expected);
        assert.deepEqual(await tx.table(roleBindingKind).findPendingRoots(person, 10), expected);
        assert.deepEqual(await tx.table(roleBindingKind).findPendingRoots(person, 1), expected.slice(0, 1));
        assert.deepEqual(await tx.table(roleBindingKind).findPendingRoots(person, 4), expected.slice(0, 4));
        assert.deepEqual(await tx.table(roleBindingKind).findPendingRoots(other, 4), [roots[11]]);
        assert.deepEqual(await tx.table(roleBindingKind).findPendingRoots(rootUid(73), 4), []);
      });
    });

    test("audit rows are in order and separate per organisation", async () => {
      const row = (i: number, root: string) => ({
        rootUid: root,
        timeMs: 1_000 + i,
        type: `test.${i}`,
        method: "/test",
        subjectUid: root,
        actorUid: "",
        tokenId: "",
        requestId: "",
        remoteAddress: "",
      });
      const [mine, theirs] = [rootUid(80), rootUid(81)];
      for (let i = 0; i < 6; i++) await store.write((tx) => tx.audit.append(row(i, i % 2 ? mine : theirs)));
      const types = async (root?: string) =>
        (await store.read((tx) => tx.audit.listNewest(3, root))).map(({ type }) => type);
      assert.deepEqual(await types(mine), ["test.5", "test.3", "test.1"]);
      assert.deepEqual(await types(), ["test.5", "test.4", "test.3"]);
    });

    test("sweeping deletes expired rows up to a limit, and no others", async () => {
      const hashes = Array.from({ length: 7 }, (_, i) => String(i).padStart(64, "0"));
      const times = { createTimeMs: 1, expireTimeMs: 1_000 };
      await store.write(async (tx) => {
        for (const [i, hash] of hashes.entries()) {
          const expireTimeMs = i < 5 ? 1_000 : 2_000;
          await tx.tickets.put({ hash, kind: "code", data: {}, expireTimeMs });
          const token = { hash, family: "f", identityUid: rootUid(1), grant: {}, used: false };
          await tx.refreshTokens.insert({ ...token, ...times, expireTimeMs });
        }
      });
      for (const kind of ["tickets", "refreshTokens"] as const) {
        const swept: number[] = [];
        for (let i = 0; i < 3; i++) swept.push(await store.write(async (tx) => tx[kind].sweep(1_001, 3)));
        assert.deepEqual(swept, [3, 2, 0], kind);
      }
      const left = await store.read(async (tx) => {
        const found = [];
        for (const hash of hashes) found.push([await tx.tickets.find("code", hash), await tx.refreshTokens.find(hash)]);
        return found.map((pair) => pair.map((row) => row !== undefined));
      });
      assert.deepEqual(left, [...Array(5).fill([false, false]), [true, true], [true, true]]);
    });

    test("tickets of an origin beyond a limit are found: those that are not kept first, then the oldest", async () => {
      const at = (origin: string, isKept: boolean) => ({ origin, isKept });
      const ticket = (hash: string, expireTimeMs: number, kind: TicketKind = "authorization") => {
        return { hash, kind, data: { hash }, expireTimeMs };
      };
      const excess = (kept: number, nowMs = 0) =>
        store.read((tx) => tx.tickets.findExcess("authorization", "a", kept, nowMs));
      await store.write(async (tx) => {
        await tx.tickets.put(ticket("kept, old", 10), at("a", true));
        await tx.tickets.put(ticket("new", 30), at("a", false));
        await tx.tickets.put(ticket("old", 20), at("a", false));
        await tx.tickets.put(ticket("kept, new", 40), at("a", true));
        await tx.tickets.put(ticket("of another origin", 1), at("b", false));
        await tx.tickets.put(ticket("of another kind", 1, "device"), at("a", false));
        await tx.tickets.put(ticket("of no origin", 1));
      });
      assert.deepEqual(await excess(0), ["kept, new", "kept, old", "new", "old"]);
      assert.deepEqual(await excess(2), ["new", "old"]);
      assert.deepEqual(await excess(3), ["old"]);
      assert.deepEqual(await excess(4), []);
      assert.deepEqual(await excess(1, 20), ["new"], "expired ones do not count");
      // A ticket that is replaced keeps its origin, unless it gets another.
      await store.write((tx) => tx.tickets.put(ticket("old", 50)));
      assert.deepEqual(await excess(2), ["old", "new"]);
      await store.write((tx) => tx.tickets.put(ticket("old", 50), at("a", true)));
      assert.deepEqual(await excess(2), ["kept, old", "new"]);
      const many = Array.from({ length: 50 }, (_, i) => `many ${i}`);
      await store.write(async (tx) => {
        for (const hash of many) await tx.tickets.put(ticket(hash, 60), at("a", false));
      });
      assert.equal((await excess(10)).length, 20);
    });

    test("identity providers that are unchanged since a time are found", async () => {
      const [root, defaultRole] = [rootUid(90), childUid(rootUid(90), 9)];
      await store.write(async (tx) => {
        await tx.table(groupKind).insert(groupRow(root));
        await tx.table(roleKind).insert(roleRow(defaultRole));
        for (const i of [1, 2, 3, 4]) {
          await tx.table(identityProviderKind).insert({
            ...{ uid: childUid(root, i), groupUid: root, name: "", description: "", defaultRole },
            ...{ oidc: {}, lacksDefaultRole: false, sealedSecret: "", createTimeMs: 1, updateTimeMs: i * 10 },
            scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
          });
        }
      });
      const findUids = (timeMs: number, limit: number) =>
        store.read(async (tx) => tx.table(identityProviderKind).findUnchangedSince(timeMs, limit));
      assert.deepEqual(await findUids(30, 10), [childUid(root, 1), childUid(root, 2)]);
      assert.deepEqual(await findUids(50, 3), [childUid(root, 1), childUid(root, 2), childUid(root, 3)]);
      assert.deepEqual(await findUids(10, 3), []);
    });

    listSuite(() => store);
    manySubtreesSuite(() => store);
    registrySuite(() => store);
    auditChainSuite(() => store);
  });
}

function allIn(root: string) {
  return { visible: [root], filter: {}, order: { field: "uid", descending: false }, skip: 0, limit: 1 };
}

function plain<T extends object>(row: T): T {
  return { ...row };
}
