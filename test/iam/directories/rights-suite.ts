// What people get by the groups of a directory and lose with them, one change after another. Run on both databases.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { DirectoryContext } from "../../../src/iam/directories/rights.js";
import {
  addMembers,
  continueWork,
  deleteGroup,
  deleteSomeGroups,
  followLink,
  followMapping,
  leaveGroups,
  MembersReplacedError,
  removeMembers,
  switchMembers,
  UnknownMemberError,
  writeMembers,
} from "../../../src/iam/directories/work.js";
import { requireNotSoleOwner, requireOwner } from "../../../src/iam/rights.js";
import { ensureAccepted } from "../../../src/iam/role-bindings/create-binding.js";
import { seedRoles } from "../../../src/iam/roles/builtin-roles.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { defaultLimits } from "../../../src/kernel/quotas.js";
import { createQuotas } from "../../../src/pipeline/resource/quota.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { type ScimGroupRow, scimGroupKind } from "../../../src/store/iam/scim-groups.js";
import { type ScimUserRow, scimUserKind } from "../../../src/store/iam/scim-users.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { bindingRow, groupRow, identityRow, scimGroupRow, scimUserRow } from "../../support/rows.js";
import { insertProvider } from "../../support/scim-people.js";

const [owner, viewer, editor] = ["owner", "viewer", "editor"].map(builtinRoleUid) as [string, string, string];
const CREATED = "dev.chainguard.api.iam.rolebindings.created.v1";
const DELETED = "dev.chainguard.api.iam.rolebindings.deleted.v1";

/** Registers the suite under `name`. */
export function rightsSuite(name: string, open: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store;
    let root: string;
    let team: string;
    let provider: string;
    let mapper: string;
    const context: DirectoryContext = { ids: randomIds, quotas: createQuotas(defaultLimits), nowMs: 5_000 };
    const full = { ...context, quotas: createQuotas({ ...defaultLimits, bindings: 1 }) };
    const newRoot = () => randomIds.newUid();

    before(async () => {
      store = await open();
      await store.write((tx) => seedRoles(tx, 1_000));
    });
    after(() => store.close());
    beforeEach(async () => {
      [root, mapper] = [newRoot(), newRoot()];
      team = randomIds.newUid(root);
      provider = await store.write(async (tx) => {
        for (const uid of [root, team]) await tx.table(groupKind).insert(groupRow(uid));
        await tx.table(identityKind).insert(identityRow(mapper));
        await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(root), mapper, owner));
        return insertProvider(tx, root, { issuer: "https://login.example" });
      });
    });

    /** Stores somebody who has signed in, unless `linked` is false. */
    async function person(linked = true): Promise<ScimUserRow> {
      const identity = identityRow(newRoot(), { providerUid: provider });
      const row = scimUserRow(randomIds.newUid(provider), { identityUid: linked ? identity.uid : null });
      await store.write(async (tx) => {
        await tx.table(identityKind).insert(identity);
        await tx.table(scimUserKind).insert(row);
      });
      return row;
    }
    /** Several, in the order of uids. */
    async function persons(n: number): Promise<ScimUserRow[]> {
      const users: ScimUserRow[] = [];
      while (users.length < n) users.push(await person());
      return users.sort((a, b) => (a.uid < b.uid ? -1 : 1));
    }
    async function group(externalId: string, users: readonly ScimUserRow[] = []): Promise<ScimGroupRow> {
      const row = scimGroupRow(randomIds.newUid(provider), { externalId });
      await store.write(async (tx) => {
        await tx.table(scimGroupKind).insert(row);
        for (const { uid } of users) await tx.scimMembers.add({ groupUid: row.uid, memberSet: 1, userUid: uid });
        await addMembers(tx, row, users.slice(0, 50), context);
      });
      return row;
    }
    async function map(externalGroupId: string, roleUid: string, scope = team, createdBy: string | null = mapper) {
      const row = {
        uid: randomIds.newUid(provider),
        providerUid: provider,
        externalGroupId,
        roleUid,
        scope,
        createdBy,
      };
      await store.write(async (tx) => {
        await tx.table(groupMappingKind).insert({ ...row, createTimeMs: 1_000 });
        await followMapping(tx, row, "created", context);
      });
      return row;
    }
    const unmap = (row: Awaited<ReturnType<typeof map>>, by = context) =>
      store.write(async (tx) => {
        await tx.table(groupMappingKind).delete(row.uid);
        await followMapping(tx, row, "deleted", by);
      });
    const identityOf = ({ identityUid }: ScimUserRow) => identityUid ?? "";
    const stored = (user: ScimUserRow) =>
      store.read((tx) => tx.table(roleBindingKind).findByIdentity(identityOf(user)));
    const rolesOf = async (user: ScimUserRow) => {
      const rows = await store.read((tx) => tx.access.findGrantsAt(identityOf(user), [root, team]));
      return rows.flatMap(({ roleUid }) => roleUid ?? []).sort();
    };
    const workOf = () => store.read((tx) => tx.scimWork.list(100, provider));
    const run = (by = context, units = Number.POSITIVE_INFINITY) => {
      let left = units;
      return continueWork(store, {
        ...{ providerUid: provider, context: () => by, nowMs: () => 5_000 },
        isStopped: () => left-- <= 0,
      });
    };
    const inTx = <T>(unit: (tx: Tx) => Promise<T>) => store.write(unit);

    it("gives a member the role of a mapping, and takes it with the membership, the mapping and the group", async () => {
      const user = await person();
      const staff = await group("staff", [user]);
      const mapping = await map("staff", viewer);
      assert.deepEqual(await rolesOf(user), [viewer]);
      const [binding] = await stored(user);
      assert.deepEqual([binding?.managedByUid, binding?.accepted, binding?.pending], [provider, true, false]);

      await inTx((tx) => removeMembers(tx, staff, [user], context));
      assert.deepEqual([await rolesOf(user), await stored(user)], [[], []]);
      await inTx((tx) => addMembers(tx, staff, [user], context));
      assert.deepEqual(await rolesOf(user), [viewer]);
      await unmap(mapping);
      assert.deepEqual([await rolesOf(user), await stored(user)], [[], []]);
      await map("staff", editor);
      assert.deepEqual(await rolesOf(user), [editor]);
      await inTx((tx) => deleteGroup(tx, staff, context));
      assert.deepEqual([await rolesOf(user), await stored(user), await workOf()], [[], [], []]);
    });

    it("records each binding with the provider as the actor", async () => {
      const user = await person();
      const staff = await group("staff", [user]);
      await map("staff", viewer);
      const [binding] = await stored(user);
      await inTx((tx) => removeMembers(tx, staff, [user], context));
      const rows = (await store.read((tx) => tx.audit.listNewest(10))).filter(
        ({ subjectUid }) => subjectUid === binding?.uid,
      );
      assert.deepEqual(rows.map(({ type }) => type).sort(), [CREATED, DELETED]);
      for (const { actorUid, actorName } of rows) assert.deepEqual([actorUid, actorName], [provider, "directory"]);
    });

    it("keeps a role that two groups give until the last one is gone, and one that is bound by hand", async () => {
      const user = await person();
      const [one, two] = [await group("one", [user]), await group("two", [user])];
      await map("one", viewer);
      await map("two", viewer);
      assert.equal((await stored(user)).length, 1);
      const grant = { identityUid: identityOf(user), roleUid: viewer };
      await inTx((tx) => ensureAccepted(tx, team, grant, context));
      assert.deepEqual((await stored(user)).map(({ managedByUid }) => managedByUid).sort(), [provider, null].sort());
      await inTx((tx) => deleteGroup(tx, one, context));
      assert.equal((await stored(user)).length, 2);
      await inTx((tx) => deleteGroup(tx, two, context));
      assert.deepEqual(
        (await stored(user)).map(({ managedByUid }) => managedByUid),
        [null],
      );
      assert.deepEqual(await rolesOf(user), [viewer]);
    });

    it("takes at once what it deletes later, and nothing more than that remains readable", async () => {
      const users = await persons(5);
      const [first, last] = [users[0] as ScimUserRow, users.at(-1) as ScimUserRow];
      await group("staff", users);
      const mapping = await map("staff", viewer);
      await unmap(mapping, { ...context, maxUnit: 2 });
      const [left] = await stored(last);
      assert.deepEqual([(await stored(first)).length, left === undefined], [0, false]);
      assert.deepEqual(await rolesOf(last), []);
      const uid = left?.uid ?? "";
      const seen = await store.read(async (tx) => [
        await tx.table(roleBindingKind).find(uid),
        await tx.table(roleBindingKind).findHydrated([uid]),
        await tx.accessQuestions.findBindingsAt(identityOf(last), [team]),
        await tx.table(roleBindingKind).findGrantsWithin(identityOf(last), root, 10),
        await tx.table(roleBindingKind).findHolders(team, viewer, 10),
      ]);
      assert.deepEqual(seen, [undefined, [], [], [], []]);
      assert.equal((await workOf()).length, 1);
      await run();
      assert.deepEqual([await stored(last), await workOf()], [[], []]);
    });

    it("lets a group be deleted whose bindings are still to be deleted", async () => {
      const users = await persons(3);
      await group("staff", users);
      const mapping = await map("staff", viewer);
      const findEnded = () => store.read((tx) => tx.table(roleBindingKind).findEnded(5_000, 10, team));
      assert.deepEqual(await findEnded(), []);
      await unmap(mapping, { ...context, maxUnit: 1 });
      assert.equal((await findEnded()).length, 2);
      await inTx((tx) => tx.table(roleBindingKind).deleteEndedIn(team));
      await inTx((tx) => tx.table(groupKind).delete(team));
      await run();
      assert.deepEqual(await workOf(), []);
    });

    it("does in one run also what its own units leave to do", async () => {
      const user = await person();
      const scopes = [root, team];
      for (let n = 0; n < 3; n++) {
        const scope = randomIds.newUid(team);
        await inTx((tx) => tx.table(groupKind).insert(groupRow(scope)));
        scopes.push(scope);
      }
      const small = { ...context, maxUnit: 2 };
      for (const scope of scopes) await map("staff", viewer, scope);
      const staff = await group("other", [user]);
      const renamed = { ...staff, externalId: "staff", mappedId: "staff" };
      await inTx(async (tx) => {
        await tx.table(scimGroupKind).replace(renamed);
        await tx.scimWork.add(provider, "group", staff.uid);
      });
      await run(small);
      assert.deepEqual([(await stored(user)).length, await workOf()], [scopes.length, []]);
    });

    it("replaces members in units, of which the switch alone has an effect", async () => {
      const users = await persons(5);
      const [kept, gone, fresh] = [users[0], users[1], users[2]] as [ScimUserRow, ScimUserRow, ScimUserRow];
      const staff = await group("staff", [kept, gone]);
      await map("staff", viewer);
      const small = { ...context, maxUnit: 2 };
      const next = users.filter((user) => user !== gone).map(({ uid }) => uid);
      const memberSet = await writeMembers(store, staff, next, small);
      assert.deepEqual([await rolesOf(gone), await rolesOf(fresh)], [[viewer], []]);
      const after = await inTx((tx) => switchMembers(tx, staff, memberSet, small));
      assert.deepEqual([await rolesOf(kept), await rolesOf(gone)], [[viewer], []]);
      await run(small);
      for (const user of users) assert.deepEqual(await rolesOf(user), user === gone ? [] : [viewer]);
      const members = await store.read((tx) =>
        tx.scimMembers.list({ groupUid: staff.uid, memberSet: after.memberSet }, "", 10),
      );
      assert.deepEqual(
        members.map(({ uid }) => uid),
        next.toSorted(),
      );
      assert.deepEqual(await store.read((tx) => tx.scimMembers.findStale(staff.uid, after.memberSet, 10)), []);

      // Without members, and by a call that another one has overtaken.
      const late = await writeMembers(store, after, next, small);
      const empty = await inTx((tx) => switchMembers(tx, after, undefined, small));
      await run(small);
      assert.equal(await store.read((tx) => tx.scimMembers.count({ groupUid: staff.uid, ...empty })), 0);
      await assert.rejects(
        inTx((tx) => switchMembers(tx, empty, late, small)),
        MembersReplacedError,
      );
      for (const user of users) assert.deepEqual(await stored(user), []);
      const nobody = randomIds.newUid(provider);
      await assert.rejects(writeMembers(store, empty, [nobody]), UnknownMemberError);
    });

    it("gives nothing that the mapper may not grant when it would be given", async () => {
      const [first, second] = [await person(), await person()];
      const staff = await group("staff", [first]);
      await map("staff", viewer);
      const binding = await store.read((tx) => tx.table(roleBindingKind).findSame(root, mapper, owner));
      await inTx((tx) => tx.table(roleBindingKind).delete(binding?.uid ?? ""));
      await inTx((tx) => addMembers(tx, staff, [second], context));
      assert.deepEqual([await rolesOf(first), await rolesOf(second)], [[viewer], []]);
      // Of one from before it is not known who made it.
      await map("staff", editor, team, null);
      assert.deepEqual(await rolesOf(second), [editor]);
    });

    it("makes no owner", async () => {
      const user = await person();
      await group("staff", [user]);
      await map("staff", owner, root);
      assert.deepEqual(await rolesOf(user), [owner]);
      const counts = await store.read(async (tx) => [
        await tx.table(roleBindingKind).countHolders(root, owner),
        await tx.table(roleBindingKind).hasRoleAtRoot(identityOf(user), owner),
      ]);
      assert.deepEqual(counts, [1, false]);
      await assert.rejects(
        store.read((tx) => requireNotSoleOwner(tx, mapper)),
        /must keep an owner/,
      );
      const binding = await store.read((tx) => tx.table(roleBindingKind).findSame(root, mapper, owner));
      await inTx((tx) => tx.table(roleBindingKind).delete(binding?.uid ?? ""));
      await assert.rejects(
        store.read((tx) => requireOwner(tx, root)),
        /must keep an owner/,
      );
    });

    it("names the quota that is full, creates nothing then, and still takes what is gone", async () => {
      const [first, second] = [await person(), await person()];
      const staff = await group("staff", [first]);
      const mapping = await map("staff", viewer);
      await assert.rejects(
        inTx((tx) => addMembers(tx, staff, [second], full)),
        (error: unknown) => error instanceof ApiError && /bindings/.test(error.message),
      );
      assert.equal(
        await store.read((tx) => tx.scimMembers.isMember({ groupUid: staff.uid, memberSet: 1, userUid: second.uid })),
        false,
      );
      await unmap(mapping, full);
      assert.deepEqual(await stored(first), []);

      // Work goes on beyond what does not fit, and says so at the end.
      await map("staff", editor);
      await inTx(async (tx) => {
        await tx.scimMembers.add({ groupUid: staff.uid, memberSet: 1, userUid: second.uid });
        await tx.scimWork.add(provider, "person", identityOf(second));
        await tx.scimWork.add(provider, "members", randomIds.newUid(provider));
      });
      await assert.rejects(run(full), (error: unknown) => error instanceof ApiError && /bindings/.test(error.message));
      assert.deepEqual(
        (await workOf()).map(({ kind }) => kind),
        ["person"],
      );
      await run();
      assert.deepEqual([await rolesOf(second), await workOf()], [[editor], []]);
    });

    it("gives somebody who signs in what the groups grant, and lets them in where a quota is full", async () => {
      const users = [await person(false), await person(false)] as const;
      await group("staff", [...users]);
      await map("staff", viewer);
      const linked: ScimUserRow[] = [];
      for (const [n, user] of users.entries()) {
        const identity = identityRow(newRoot(), { providerUid: provider });
        const row = { ...user, identityUid: identity.uid };
        linked.push(row);
        await inTx(async (tx) => {
          await tx.table(identityKind).insert(identity);
          await tx.table(scimUserKind).replace(row);
          await followLink(tx, provider, identity.uid, n === 0 ? context : full);
        });
      }
      assert.deepEqual(await Promise.all(linked.map(rolesOf)), [[viewer], []]);
      await run();
      assert.deepEqual(await Promise.all(linked.map(rolesOf)), [[viewer], [viewer]]);
    });

    it("takes somebody who leaves out of all groups in units", async () => {
      const user = await person();
      for (const id of ["a", "b", "c"]) {
        await group(id, [user]);
        await map(id, viewer);
      }
      const small = { ...context, maxUnit: 2 };
      assert.equal(await inTx((tx) => leaveGroups(tx, user, small)), false);
      assert.deepEqual(await rolesOf(user), [viewer]);
      assert.equal(await inTx((tx) => leaveGroups(tx, user, small)), true);
      assert.deepEqual(await stored(user), []);
    });

    it("stops between units, and goes on where it was", async () => {
      const users = await persons(6);
      const staff = await group("staff", users);
      const row = { uid: randomIds.newUid(provider), providerUid: provider, externalGroupId: "staff", createTimeMs: 1 };
      await inTx((tx) =>
        tx.table(groupMappingKind).insert({ ...row, roleUid: viewer, scope: team, createdBy: mapper }),
      );
      await inTx((tx) => tx.scimWork.add(provider, "group", staff.uid));
      const small = { ...context, maxUnit: 2 };
      const countGiven = async () => (await Promise.all(users.map(rolesOf))).filter(({ length }) => length > 0).length;
      for (const expected of [2, 4, 6]) {
        assert.equal(await run(small, 1), 1);
        assert.equal(await countGiven(), expected);
      }
      await run(small);
      assert.deepEqual(await workOf(), []);
    });

    it("is deleted with its provider in parts", async () => {
      const users = [await person(), await person(), await person()];
      const staff = await group("staff", users);
      await group("other", users);
      await inTx((tx) => deleteGroup(tx, staff, { ...context, maxUnit: 1 }));
      assert.equal((await workOf()).length, 1);
      let parts = 0;
      while ((await inTx((tx) => deleteSomeGroups(tx, provider, 2))) > 0) parts++;
      assert.ok(parts > 3, `${parts}`);
      const rest = await store.read(async (tx) => [
        await tx.table(scimGroupKind).findAfter(provider, "", 10),
        await tx.scimWork.list(10, provider),
        ...(await Promise.all(users.map(({ uid }) => tx.scimMembers.findRowsOf(uid, 10)))).flat(),
      ]);
      assert.deepEqual(rest, [[], []]);
    });
  });
}
