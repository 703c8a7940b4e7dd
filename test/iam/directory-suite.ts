// Role bindings that the directory of an identity provider manages, and providers without a default role. Nothing but the
// store creates such bindings here. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { unbindIdentity } from "../../src/iam/operator/operate.js";
import { dropBinding } from "../../src/iam/people/pending-bindings.js";
import { signIn } from "../../src/iam/people/sign-in.js";
import { ApiError } from "../../src/kernel/errors.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { keptByDirectory, precondition } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { directoryContext } from "../support/directory-context.js";
import { bindingRow, childUid, groupRow } from "../support/rows.js";
import { insertScimToken } from "../support/scim.js";
import { insertScimUser, justifyBinding } from "../support/scim-people.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const [viewer, editor, owner] = ["viewer", "editor", "owner"].map(builtinRoleUid) as [string, string, string];
const issuer = "https://login.example";
/** More than three units of work delete. */
const BINDINGS = 170;

/** Registers the suite under `name`. */
export function directorySuite(name: string): void {
  describe(name, () => {
    let world: IamWorld;
    before(async () => {
      world = await startIamWorld();
    });
    after(() => world.stop());

    let count = 0;
    const newPerson = () => personUid(issuer, `${count++}`);

    async function createProvider(): Promise<string> {
      const body = { name: "directory", defaultRole: viewer, oidc: { issuer, clientId: "id", pkceEnabled: true } };
      const { status, json, text } = await world.owner.rest("POST", `/identityProviders/${world.root}`, body);
      assert.equal(status, 200, text);
      const uid = String(json?.uid);
      await world.write((tx) => insertScimToken(tx, uid, { enabled: true }));
      return uid;
    }

    async function manage(provider: string, identity = newPerson(), role = viewer, group = world.child) {
      const uid = randomIds.newUid(group);
      const row = bindingRow(uid, identity, role, { accepted: true, managedByUid: provider });
      await world.write(async (tx) => {
        await tx.table(roleBindingKind).insert(row);
        await justifyBinding(tx, provider, row);
      });
      return uid;
    }

    // Those whose people get the right to read the organisation at their first login.
    async function providersWithAccess() {
      const rest = restAs(world.url, world.owner.token, "/access/v1");
      const action = "chainguard.platform.iam.v2.GroupsService.GetGroup";
      const { json, text } = await rest("GET", `/subjects?resource=${world.root}&actions=${action}`);
      const subjects = json?.subjects as readonly { readonly provider?: { readonly uid: string } }[] | undefined;
      assert.ok(subjects, text);
      return subjects.map((one) => one.provider?.uid);
    }

    const isStored = (uid: string) =>
      world.write(async (tx) => (await tx.table(roleBindingKind).find(uid)) !== undefined);
    const signInAt = (provider: string, subject: string) =>
      world.write((tx) =>
        signIn(
          tx,
          { issuer, subject, claims: { name: subject }, providerUid: provider, register: false },
          directoryContext(),
        ),
      );
    const managedError = (uid: string, provider: string) =>
      precondition(
        "BINDING_MANAGED",
        `cannot change role binding ${uid}: the directory of identity provider ${provider} manages it: change it there`,
      );

    it("are shown with their provider wherever a binding is", async () => {
      const provider = await createProvider();
      const identity = newPerson();
      const uid = await manage(provider, identity);
      const shown = { managedBy: "MANAGED_BY_SCIM", managedByUidp: provider };
      const pick = (json: object | undefined) => {
        const { managedBy, managedByUidp } = (json ?? {}) as Record<string, unknown>;
        return { managedBy, managedByUidp };
      };
      const get = await world.owner.rest("GET", `/roleBindings/${uid}`);
      assert.deepEqual(pick(get.json), shown);
      const { json } = await world.owner.rest("GET", `/roleBindings?identity=${identity}`);
      assert.deepEqual(((json?.roleBindings ?? []) as object[]).map(pick), [shown]);
      const created = await world.owner.rest("POST", `/roleBindings/${world.child}`, {
        identityUid: identity,
        roleUid: viewer,
      });
      assert.notEqual(created.json?.uid, uid);
      assert.deepEqual(pick(created.json), { managedBy: "MANAGED_BY_MANUAL", managedByUidp: undefined });
    });

    it("are neither changed nor deleted by callers, but by the operator", async () => {
      const provider = await createProvider();
      const person = await world.harness.identity();
      const uid = await manage(provider, person.uid);
      const expected = managedError(uid, provider);
      for (const version of ["v2beta1", "v2"]) {
        const rest = restAs(world.url, world.owner.token, `/iam/${version}`);
        assert.deepEqual((await rest("PATCH", `/roleBindings/${uid}`, { roleUid: editor })).outcome, expected);
        assert.deepEqual((await rest("DELETE", `/roleBindings/${uid}`)).outcome, expected);
      }
      const v1 = restAs(world.url, world.owner.token, "/iam/v1");
      const sent = { identity: person.uid, role: editor };
      assert.deepEqual((await v1("PUT", `/rolebindings/${uid}`, sent)).outcome, expected);
      assert.deepEqual((await v1("DELETE", `/rolebindings/${uid}`)).outcome, expected);
      await assert.rejects(
        world.write((tx) => dropBinding(tx, person.uid, uid)),
        (error) => error instanceof ApiError && /cannot change role binding/.test(error.message),
      );
      assert.equal(
        (await world.owner.rest("PATCH", `/roleBindings/${uid}`, { roleUid: viewer })).status,
        200,
        "no change",
      );
      assert.ok(await isStored(uid));
      await world.write((tx) => unbindIdentity(tx, uid, directoryContext()));
      assert.ok(!(await isStored(uid)));
    });

    it("are deleted with their identity, and keep their group from being deleted", async () => {
      const provider = await createProvider();
      const [identity, group] = [await world.identity(), await world.group()];
      const uid = await manage(provider, identity, viewer, group);
      const { outcome } = await world.owner.rest("DELETE", `/groups/${group}`);
      assert.deepEqual(outcome, keptByDirectory);
      assert.equal((await world.owner.rest("DELETE", `/identities/${identity}`)).status, 200);
      assert.ok(!(await isStored(uid)));
      const mappings = await world.write((tx) => tx.table(groupMappingKind).findUidsWhere("scope", group));
      for (const mapping of mappings) await world.owner.rest("DELETE", `/externalGroupRoleMappings/${mapping}`);
      assert.equal((await world.owner.rest("DELETE", `/groups/${group}`)).status, 200);
    });

    it("are deleted with their provider, however many there are, and no others", async () => {
      const [provider, another] = [await createProvider(), await createProvider()];
      const top = await world.group();
      await world.write(async (tx) => {
        for (let n = 1; n <= BINDINGS; n++) {
          const group = childUid(top, n);
          await tx.table(groupKind).insert(groupRow(group));
          const origin = { managedByUid: provider };
          await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(group), newPerson(), viewer, origin));
        }
      });
      const kept = [
        await manage(another, newPerson(), viewer, top),
        await world.harness.bind(newPerson(), "viewer", top),
      ];
      assert.equal((await world.owner.rest("DELETE", `/identityProviders/${provider}`)).status, 200);
      const { json } = await world.owner.rest("GET", `/roleBindings?uidp.descendants_of=${top}`);
      const left = ((json?.roleBindings ?? []) as { uid: string }[]).map(({ uid }) => uid);
      assert.deepEqual(left.sort(), kept.sort());
    });

    it("make no owner", async () => {
      const { group, token, roleBinding } = await world.harness.organisation("managed owner");
      const rest = restAs(world.url, token, "/iam/v2beta1");
      const body = { name: "p", defaultRole: viewer, oidc: { issuer, clientId: "id", pkceEnabled: true } };
      const provider = String((await rest("POST", `/identityProviders/${group}`, body)).json?.uid);
      const second = await world.harness.identity();
      await manage(provider, second.uid, owner, group);
      const { outcome } = await rest("DELETE", `/roleBindings/${roleBinding}`);
      assert.deepEqual(outcome, precondition("OWNER_REQUIRED", "a root group must keep an owner"));
    });

    it("and people without a default role get none, and are known where they are bound", async () => {
      const provider = await createProvider();
      assert.ok((await providersWithAccess()).includes(provider), "control: with a default role");
      await world.write(async (tx) => {
        const row = await tx.table(identityProviderKind).find(provider);
        assert.ok(row);
        await tx.table(identityProviderKind).replace({ ...row, lacksDefaultRole: true });
      });
      assert.ok(!(await providersWithAccess()).includes(provider));
      await world.write((tx) => insertScimUser(tx, provider, { externalId: "ann" }));
      const { identityUid } = await signInAt(provider, "ann");
      assert.deepEqual(await world.write((tx) => tx.table(roleBindingKind).findByIdentity(identityUid)), []);
      const { json } = await world.owner.rest("POST", `/roleBindings/${world.child}`, { identityUid, roleUid: viewer });
      assert.equal((json?.identity as { name?: string } | undefined)?.name, "ann");
      const row = await world.write((tx) => tx.table(roleBindingKind).find(String(json?.uid)));
      assert.equal(row?.pending, false, "they signed in through the organisation, so nothing waits for them");
    });
  });
}
