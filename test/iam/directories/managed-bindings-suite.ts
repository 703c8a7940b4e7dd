// Role bindings that directories manage: who may change them, how the API shows them, and how answers about rights explain them. Run
// on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { signIn } from "../../../src/iam/people/sign-in.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { keptByDirectory, precondition } from "../../contract/expectations.js";
import { type Rest, restAs } from "../../contract/rest.js";
import { directoryContext } from "../../support/directory-context.js";
import { insertProvider, insertScimGroup, insertScimUser } from "../../support/scim-people.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam-world.js";

const issuer = "https://login.example";
const [viewer, editor, owner] = ["viewer", "editor", "owner"].map(builtinRoleUid) as [string, string, string];

type Json = Readonly<Record<string, unknown>>;

/** Registers the suite under `name`. */
export function managedBindingsSuite(name: string): void {
  describe(name, () => {
    let world: IamWorld;
    before(async () => {
      world = await startIamWorld();
    });
    after(() => world.stop());

    const by = (who: { readonly token: string }, base: string) => restAs(world.url, who.token, base);
    const ok = async (answer: ReturnType<Rest>): Promise<Json> => {
      const { status, json, text } = await answer;
      assert.equal(status, 200, text);
      return json as Json;
    };

    /** A person who is in a group of a directory, which is mapped to a role at a new group. */
    async function createMember(roleUid = viewer, parent = world.child) {
      const scope = await world.group(parent);
      const provider = await world.write((tx) => insertProvider(tx, world.root, { issuer }));
      const subject = randomIds.newId();
      const user = await world.write((tx) => insertScimUser(tx, provider, { externalId: subject }));
      const group = await world.write((tx) =>
        insertScimGroup(tx, provider, { displayName: "Operations", externalId: "ops" }, [user.uid]),
      );
      const mapping = await map(provider, "ops", roleUid, scope);
      const login = { issuer, subject, claims: {}, providerUid: provider, register: false };
      const { identityUid: uid } = await world.write((tx) => signIn(tx, login, directoryContext()));
      const person = { uid, token: await world.harness.token(uid) };
      const binding = await findManaged(scope, uid);
      return { scope, provider, user, group, mapping, person, binding };
    }

    async function map(provider: string, externalGroupId: string, roleUid: string, scope: string): Promise<string> {
      const body = { externalGroupId, roleUid, scope };
      return String((await ok(world.owner.rest("POST", `/externalGroupRoleMappings/${provider}`, body))).uid);
    }

    async function listBindings(group: string): Promise<Json[]> {
      return ((await ok(world.owner.rest("GET", `/roleBindings?group=${group}`))).roleBindings ?? []) as Json[];
    }

    async function findManaged(scope: string, identity: string): Promise<string> {
      const found = (await listBindings(scope)).filter(
        (one) => (one.identity as Json).uid === identity && one.managedBy === "MANAGED_BY_SCIM",
      );
      assert.equal(found.length, 1);
      return String(found[0]?.uid);
    }

    describe("a binding that a directory manages", () => {
      const managed = (binding: string, provider: string) =>
        precondition(
          "BINDING_MANAGED",
          `cannot change role binding ${binding}: the directory of identity provider ${provider} manages it: change it there`,
        );

      const changes: readonly {
        readonly name: string;
        readonly send: (rest: (base: string) => Rest, uid: string, to: string) => ReturnType<Rest>;
        /** Whether the person of the binding sends it. */
        readonly byPerson?: true;
      }[] = [
        ...["v2beta1", "v2"].flatMap((version) => [
          {
            name: `UpdateRoleBinding of ${version}, of the role`,
            send: (rest: (base: string) => Rest, uid: string) =>
              rest(`/iam/${version}`)("PATCH", `/roleBindings/${uid}?updateMask=roleUid`, { roleUid: editor }),
          },
          {
            name: `UpdateRoleBinding of ${version}, of the identity`,
            send: (rest: (base: string) => Rest, uid: string, to: string) =>
              rest(`/iam/${version}`)("PATCH", `/roleBindings/${uid}?updateMask=identityUid`, { identityUid: to }),
          },
          {
            name: `DeleteRoleBinding of ${version}`,
            send: (rest: (base: string) => Rest, uid: string) =>
              rest(`/iam/${version}`)("DELETE", `/roleBindings/${uid}`),
          },
        ]),
        {
          name: "RoleBindings.Update",
          send: (rest, uid, to) => rest("/iam/v1")("PUT", `/rolebindings/${uid}`, { identity: to, role: editor }),
        },
        { name: "RoleBindings.Delete", send: (rest, uid) => rest("/iam/v1")("DELETE", `/rolebindings/${uid}`) },
        {
          name: "SetBindingEnd",
          send: (rest, uid) =>
            rest("/bindings/v1")("POST", `/temporaryBindings/${uid}:setEnd`, { endTime: "2999-01-01T00:00:00Z" }),
        },
        {
          name: "DropBinding of its person",
          byPerson: true,
          send: (rest, uid) => rest("/bindings/v1")("DELETE", `/bindings/${uid}`),
        },
      ];
      for (const { name: change, send, byPerson } of changes) {
        it(`is not changed by ${change}, whose error names the provider`, async () => {
          const { person, binding, provider } = await createMember();
          const sender = byPerson ? person : world.owner;
          const { outcome } = await send((base) => by(sender, base), binding, world.owner.uid);
          assert.deepEqual(outcome, managed(binding, provider));
          // The control: a binding by hand.
          const { uid } = (await ok(
            world.owner.rest("POST", `/roleBindings/${world.child}`, { identityUid: person.uid, roleUid: editor }),
          )) as { uid: string };
          const { status, text } = await send((base) => by(sender, base), uid, await world.identity());
          assert.ok(status === 200 || status === 409, text);
        });
      }

      it("is not changed where its person owns the organisation, nor by itself leaving", async () => {
        const { person, binding, provider } = await createMember();
        await world.harness.bind(person.uid, "owner", world.root);
        const { outcome } = await by(person, "/iam/v2")("DELETE", `/roleBindings/${binding}`);
        assert.deepEqual(outcome, managed(binding, provider));
        const left = await by(person, "/auth/v1")("DELETE", `/delete/${person.uid}`);
        assert.equal(left.status, 400, left.text);
        assert.match(left.text, /FAILED_PRECONDITION/);
      });

      it("leaves room for one by hand, in each version, which the directory never removes", async () => {
        const ways: readonly ((scope: string, identity: string) => ReturnType<Rest>)[] = [
          (scope, identityUid) => world.owner.rest("POST", `/roleBindings/${scope}`, { identityUid, roleUid: viewer }),
          (scope, identityUid) =>
            by(world.owner, "/iam/v2")("POST", "/roleBindings:batchCreate", {
              parent: scope,
              requests: [{ roleBinding: { identityUid, roleUid: viewer } }],
            }),
          (scope, identity) => by(world.owner, "/iam/v1")("POST", `/rolebindings/${scope}`, { identity, role: viewer }),
          (parent, identityUid) =>
            by(world.owner, "/bindings/v1")("POST", `/temporaryBindings/${parent}`, {
              ...{ identityUid, roleUid: viewer, endTime: "2999-01-01T00:00:00Z" },
            }),
        ];
        for (const create of ways) {
          const { scope, person, mapping } = await createMember();
          await ok(create(scope, person.uid));
          await ok(create(scope, person.uid));
          const managers = async () => (await listBindings(scope)).map(({ managedBy }) => managedBy).toSorted();
          assert.deepEqual(await managers(), ["MANAGED_BY_MANUAL", "MANAGED_BY_SCIM"]);
          assert.equal((await world.owner.rest("DELETE", `/externalGroupRoleMappings/${mapping}`)).status, 200);
          assert.deepEqual(await managers(), ["MANAGED_BY_MANUAL"]);
        }
      });

      it("makes no owner", async () => {
        const { person, scope } = await createMember(owner, world.root);
        assert.ok(scope.startsWith(world.root));
        const provider = await world.write((tx) => insertProvider(tx, world.foreign, { issuer }));
        const subject = randomIds.newId();
        const user = await world.write((tx) => insertScimUser(tx, provider, { externalId: subject }));
        await world.write((tx) => insertScimGroup(tx, provider, { externalId: "own" }, [user.uid]));
        const body = { externalGroupId: "own", roleUid: owner, scope: world.foreign };
        await ok(world.foreignOwner.rest("POST", `/externalGroupRoleMappings/${provider}`, body));
        const login = { issuer, subject, claims: {}, providerUid: provider, register: false };
        const { identityUid } = await world.write((tx) => signIn(tx, login, directoryContext()));
        const second = { token: await world.harness.token(identityUid) };
        // It has the rights of one.
        const { roleBindings } = await ok(by(second, "/iam/v2")("GET", `/roleBindings?group=${world.foreign}`));
        const only = (roleBindings as Json[]).find((one) => one.managedBy === "MANAGED_BY_MANUAL");
        const { outcome } = await by(second, "/iam/v2")("DELETE", `/roleBindings/${only?.uid}`);
        assert.deepEqual(outcome, precondition("OWNER_REQUIRED", "a root group must keep an owner"));
        assert.ok(person.uid);
      });

      it("keeps its group through its mapping alone", async () => {
        const { scope, mapping } = await createMember();
        const { outcome } = await world.owner.rest("DELETE", `/groups/${scope}`);
        assert.deepEqual(outcome, keptByDirectory);
        assert.equal((await world.owner.rest("DELETE", `/externalGroupRoleMappings/${mapping}`)).status, 200);
        assert.equal((await world.owner.rest("DELETE", `/groups/${scope}`)).status, 200);
      });

      it("that its directory grants no more does not keep its group", async () => {
        const { scope, mapping } = await createMember();
        // As a change does whose work is not done.
        await world.write((tx) => tx.table(groupMappingKind).delete(mapping));
        const { status, text } = await world.owner.rest("DELETE", `/groups/${scope}`);
        assert.equal(status, 200, text);
      });

      it("is listed with its manager, by version 2 and by version 1 as one of all", async () => {
        const { scope, provider, binding, person } = await createMember();
        for (const version of ["v2beta1", "v2"]) {
          const { roleBindings } = await ok(by(world.owner, `/iam/${version}`)("GET", `/roleBindings?group=${scope}`));
          const [one] = roleBindings as Json[];
          assert.deepEqual(
            [one?.uid, one?.managedBy, one?.managedByUidp],
            [binding, "MANAGED_BY_SCIM", provider],
            version,
          );
        }
        const { items } = await ok(by(world.owner, "/iam/v1")("GET", `/rolebindings?uidp.childrenOf=${scope}`));
        assert.deepEqual(
          (items as Json[]).map(({ id, identity }) => [id, identity]),
          [[binding, person.uid]],
        );
      });
    });

    describe("answers about rights", () => {
      const question = (scope: string) => `resource=${scope}&actions=groups.list`;
      const grantsOf = async (who: { readonly token: string }, path: string): Promise<Json[]> =>
        ((await ok(by(who, "/access/v1")("GET", path))).grants ?? []) as Json[];

      it("say by which group of the directory and which mapping a person has a binding", async () => {
        const { scope, provider, group, mapping, person, binding } = await createMember();
        const source = {
          directoryGroup: group.uid,
          directoryGroupName: "Operations",
          ...{ externalGroupId: "ops", mapping },
        };
        const why = async (who: { readonly token: string }, path: string) =>
          (await grantsOf(who, path))
            .filter(({ roleBinding }) => roleBinding === binding)
            .map(({ origin, managedBy, sources, effect }) => ({ origin, managedBy, sources, effect }));
        const expected = [
          { origin: "ORIGIN_DIRECTORY", managedBy: provider, sources: [source], effect: "EFFECT_COUNTS" },
        ];
        const other = `identity=${person.uid}`;
        assert.deepEqual(await why(person, `/explanation?${question(scope)}`), expected);
        assert.deepEqual(await why(person, "/grants"), expected);
        assert.deepEqual(await why(world.owner, `/explanation?${question(scope)}&${other}`), expected);
        assert.deepEqual(await why(world.owner, `/grants?${other}`), expected);
        // Who lists bindings and not the directory sees who manages it, and not why.
        const lister = await world.caller(["role_bindings.list", "identity_providers.list"]);
        assert.deepEqual(await why(lister, `/explanation?${question(scope)}&${other}`), [
          { ...expected[0], sources: [] },
        ]);
      });

      it("name each group and mapping that grants it, and no other", async () => {
        const { scope, provider, user, person, binding, group } = await createMember();
        const second = await world.write((tx) => insertScimGroup(tx, provider, { displayName: "Second" }, [user.uid]));
        await world.write(async (tx) => {
          await insertScimGroup(tx, provider, { displayName: "Not a member", externalId: "other" });
          await insertScimGroup(tx, provider, { displayName: "Not mapped", externalId: "unmapped" }, [user.uid]);
        });
        await map(provider, second.mappedId, viewer, scope);
        await map(provider, "other", viewer, scope);
        // To another role, and at another group.
        await map(provider, second.mappedId, editor, scope);
        await map(provider, second.mappedId, viewer, world.child);
        const grants = await grantsOf(person, `/explanation?${question(scope)}`);
        const sources = grants.find(({ roleBinding }) => roleBinding === binding)?.sources as Json[];
        assert.deepEqual(
          new Set(sources.map(({ directoryGroup }) => directoryGroup)),
          new Set([group.uid, second.uid]),
        );
        assert.equal(sources.length, 2);
      });

      it("list the people of a directory's group beside its mapping", async () => {
        const { scope, group, mapping, person } = await createMember();
        const subjectsFor = async (who: Somebody) =>
          ((await ok(by(who, "/access/v1")("GET", `/subjects?${question(scope)}&pageSize=200`))).subjects ??
            []) as Json[];
        const found = await subjectsFor(world.owner);
        assert.ok(found.some(({ identity }) => (identity as Json | undefined)?.uid === person.uid));
        const ofMapping = found.map((one) => one.mapping as Json | undefined).find((one) => one?.uid === mapping);
        assert.deepEqual(
          [ofMapping?.directoryGroup, ofMapping?.directoryGroupName, ofMapping?.externalGroupId],
          [group.uid, "Operations", "ops"],
        );
        const lister = await world.caller(["role_bindings.list", "identity_providers.list"]);
        const seen = (await subjectsFor(lister)).map((one) => one.mapping as Json | undefined);
        assert.equal(seen.find((one) => one?.uid === mapping)?.directoryGroup, "");
      });

      it("list a role once for each manager, also where a page ends between them", async () => {
        const { scope, person } = await createMember();
        await ok(world.owner.rest("POST", `/roleBindings/${scope}`, { identityUid: person.uid, roleUid: viewer }));
        const expected = (await listBindings(scope)).map(({ uid }) => uid).toSorted();
        assert.equal(expected.length, 2);
        for (const pageSize of [1, 2, 50]) {
          const uids: unknown[] = [];
          let pageToken = "";
          do {
            const query = `/grants?group=${scope}&pageSize=${pageSize}&pageToken=${pageToken}`;
            const page = await ok(by(person, "/access/v1")("GET", query));
            uids.push(...((page.grants ?? []) as Json[]).map(({ roleBinding }) => roleBinding));
            pageToken = String(page.nextPageToken ?? "");
          } while (pageToken !== "");
          assert.deepEqual(uids.toSorted(), expected, `pages of ${pageSize}`);
        }
      });
    });
  });
}
