// The deletion of an identity with more bindings than one unit of work deletes: nothing is left of its rights after the
// first unit, and nothing of it at all after the last. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { beginDeletion, deleteMarked } from "../../src/iam/identities/deletion.js";
import { register } from "../../src/iam/people/registration.js";
import { ApiError } from "../../src/kernel/errors.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import type { Store } from "../../src/store/store.js";
import { newDataDir } from "../support/data-dir.js";
import { startHarness } from "../support/harness.js";
import { bindingRow, childUid, groupRow, identityRow } from "../support/rows.js";
import { waitUntil } from "../support/wait-until.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

/** More than three units of work delete. */
const BINDINGS = 350;
const MAPPINGS = 120;
const owner = builtinRoleUid("owner");
const viewer = builtinRoleUid("viewer");

/** Registers the suite under `name`. */
export function identityDeletionSuite(name: string): void {
  describe(name, () => {
    let world: IamWorld;
    let store: Store;
    before(async () => {
      world = await startIamWorld();
      ({ store } = world.harness.app.installation);
    });
    after(() => world.stop());

    /** Binds an identity at many groups of its own below one of the organisation. */
    async function bindOften(identity: string, role = viewer): Promise<string> {
      const top = await world.group();
      await world.write(async (tx) => {
        for (let n = 1; n <= BINDINGS; n++) {
          const group = childUid(top, n);
          await tx.table(groupKind).insert(groupRow(group));
          await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(group), identity, role));
        }
      });
      return top;
    }

    const countBindings = async (identity: string) =>
      (await store.read((tx) => tx.table(roleBindingKind).findByIdentity(identity))).length;
    const isStored = (uid: string) =>
      store.read(
        async (tx) => (await tx.table(identityKind).find(uid)) !== undefined || tx.table(identityKind).isMarked(uid),
      );
    const begin = (uid: string) => world.write((tx) => beginDeletion(tx, uid, Date.now()));
    const complete = () => deleteMarked(store, () => false);
    const listedBy = async (path: string) => {
      const { json } = await world.owner.rest("GET", path);
      return (json as Record<string, readonly { uid: string }[]>)[path.replace(/^\/|\?.*/g, "")] ?? [];
    };

    it("is complete with its answer, and is one row of the audit log", async () => {
      const uid = await world.identity();
      await bindOften(uid);
      assert.equal((await world.owner.rest("DELETE", `/identities/${uid}`)).status, 200);
      assert.deepEqual([await countBindings(uid), await isStored(uid)], [0, false]);
      const rows = await store.read((tx) => tx.audit.listNewest(5));
      assert.equal(rows.filter(({ subjectUid }) => subjectUid === uid).length, 1);
      assert.equal((await world.owner.rest("GET", `/identities/${uid}`)).status, 404);
    });

    it("is not seen any more once it has begun, although its process has ended", async () => {
      const uid = await world.identity();
      const token = await world.harness.token(uid);
      const top = await bindOften(uid);
      const ownGroup = `/iam/v2beta1/groups/${childUid(top, BINDINGS)}`;
      const [binding] = await store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid, 1));
      const asIdentity = () =>
        fetch(world.url + ownGroup, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);
      assert.equal(await asIdentity(), 200);
      assert.equal(await begin(uid), false);
      const left = await countBindings(uid);
      assert.ok(left > 0 && left < BINDINGS, `${left} bindings`);
      assert.equal(await asIdentity(), 401);
      const { rest } = world.owner;
      assert.equal((await rest("GET", `/identities/${uid}`)).status, 404);
      assert.equal((await rest("DELETE", `/identities/${uid}`)).status, 404);
      const renamed = await rest("PATCH", `/identities/${uid}`, { name: "again" });
      assert.equal(renamed.status, 404);
      const again = await rest("POST", `/roleBindings/${world.root}`, {
        identityUid: uid,
        roleUid: viewer,
      });
      assert.equal(again.status, 400);
      assert.equal(
        (await listedBy(`/identities?page_size=1000`)).some((one) => one.uid === uid),
        false,
      );
      assert.deepEqual(await listedBy(`/roleBindings?identity=${uid}`), []);
      const hidden = (await store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid, 1)))[0] ?? binding;
      assert.equal((await rest("GET", `/roleBindings/${hidden?.uid}`)).status, 404);
      // The job of the service may have begun as well.
      await complete();
      await waitUntil(async () => !(await isStored(uid)));
      assert.equal(await countBindings(uid), 0);
    });

    it("leaves no rights and no owner, although bindings are there", async () => {
      const uid = await world.identity();
      await bindOften(uid, owner);
      const [binding] = await store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid, 1));
      const group = binding?.groupUid ?? "";
      const read = () =>
        store.read(async (tx) => [
          await tx.access.findGrantsAt(uid, [world.root, group]),
          await tx.access.findGrantsIn(uid, world.root, [group]),
          await tx.access.findAllGrants(uid),
          await tx.access.findIdentity(uid),
        ]);
      const countHolders = () => store.read((tx) => tx.table(roleBindingKind).countHolders(group, owner));
      assert.ok((await read()).every(({ length }) => length > 0) && (await countHolders()) > 0, "control");
      await begin(uid);
      assert.ok((await store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid, 1))).length > 0);
      assert.deepEqual([await read(), await countHolders()], [[[], [], [], []], 0]);
      await complete();
    });

    it("does not begin where an organisation would lose its only owner", async () => {
      const { uid } = world.owner;
      await bindOften(uid);
      await assert.rejects(
        begin(uid),
        (error) => error instanceof ApiError && /must keep an owner/.test(error.message),
      );
      const other = await world.createBound("owner");
      assert.equal(await begin(other.uid), true);
      await assert.rejects(begin(uid));
    });

    it("ends before the person can register again, with nothing of the rights from before", async () => {
      const person = { issuer: "https://login.example", subject: randomIds.newId(), claims: {} };
      const uid = personUid(person.issuer, person.subject);
      await world.write((tx) => tx.table(identityKind).insert(identityRow(uid)));
      await bindOften(uid);
      assert.equal(await begin(uid), false);
      const registerAgain = () => world.write((tx) => register(tx, person, Date.now() + 1_000));
      await assert.rejects(registerAgain(), /is being deleted/);
      await complete();
      await registerAgain();
      assert.deepEqual([await countBindings(uid), await isStored(uid)], [0, true]);
    });

    /** A provider with more mappings than one unit of work deletes. */
    async function createProvider(root: string): Promise<string> {
      const provider = randomIds.newUid(root);
      await world.write(async (tx) => {
        await tx.table(identityProviderKind).insert({
          uid: provider,
          groupUid: root,
          ...{
            name: "login",
            description: "",
            defaultRole: viewer,
            lacksDefaultRole: false,
            sealedSecret: "",
            oidc: {},
          },
          scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "e" },
          ...{ createTimeMs: 1, updateTimeMs: 1 },
        });
        for (let n = 1; n <= MAPPINGS; n++) {
          const mapping = { uid: childUid(provider, n), providerUid: provider, externalGroupId: `team ${n}` };
          await tx
            .table(groupMappingKind)
            .insert({ ...mapping, roleUid: viewer, scope: root, createdBy: null, createTimeMs: 1 });
        }
      });
      return provider;
    }

    const countMappings = async (provider: string) =>
      (await store.read((tx) => tx.table(groupMappingKind).findUidsWhere("providerUid", provider))).length;

    it("does not take anything of a provider whose people have the only owner among them", async () => {
      const { group } = await world.harness.organisation("provided");
      const provider = await createProvider(group);
      const person = await world.harness.identity({ providerUid: provider });
      await world.harness.bind(person.uid, "owner", group);
      const order = { field: "uid", descending: false };
      const query = { visible: [group], filter: {}, order, skip: 0, limit: 10 };
      const { rows } = await store.read((tx) => tx.table(roleBindingKind).list(query));
      const first = rows.find(({ identityUid }) => identityUid !== person.uid);
      await world.write((tx) => tx.table(roleBindingKind).delete(first?.uid ?? ""));
      const headers = { authorization: `Bearer ${person.token}` };
      for (const path of [`/iam/v1/identityProviders/${provider}`, `/iam/v2beta1/identityProviders/${provider}`]) {
        const response = await fetch(world.url + path, { method: "DELETE", headers });
        assert.equal(response.status, 400, await response.text());
        assert.equal(await countMappings(provider), MAPPINGS);
      }
    });

    it("of all people of a provider takes their rights with the provider", async () => {
      const { rest } = world.owner;
      const provider = await createProvider(world.root);
      const people = await Promise.all(
        [1, 2, 3].map(async () => {
          const one = await world.harness.identity({ providerUid: provider });
          await bindOften(one.uid);
          return one.uid;
        }),
      );
      assert.equal((await rest("DELETE", `/identityProviders/${provider}`)).status, 200);
      for (const uid of people) assert.deepEqual([await countBindings(uid), await isStored(uid)], [0, false]);
      assert.equal(await countMappings(provider), 0);
    });

    it("is completed by a service that starts", async () => {
      const data = newDataDir();
      const service = await startHarness({ data });
      const { group } = await service.organisation("deleting");
      const { uid } = await service.identity({}, group);
      await service.app.installation.store.write(async (tx) => {
        for (let n = 1; n <= BINDINGS; n++) {
          await tx.table(groupKind).insert(groupRow(childUid(group, n)));
          await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(childUid(group, n)), uid, viewer));
        }
        await beginDeletion(tx, uid, Date.now());
      });
      await service.stop();
      const again = await startHarness({ data });
      try {
        const started = again.app.installation.store;
        await waitUntil(async () => !(await started.read((tx) => tx.table(identityKind).isMarked(uid))));
        assert.deepEqual(await started.read((tx) => tx.table(roleBindingKind).findByIdentity(uid)), []);
      } finally {
        await again.stop();
      }
    });
  });
}
