// The groups of a directory over HTTP, and the rights that follow. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { linkPerson } from "../../src/iam/people/directory-person.js";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { scimUserKind } from "../../src/store/iam/scim-users.js";
import { restAs } from "../contract/rest.js";
import { directoryContext } from "../support/directory-context.js";
import { newUser, patch, startDirectory, type World } from "./world.js";

const viewer = builtinRoleUid("viewer");

/** Registers the suite under `name`. */
export function groupsSuite(name: string): void {
  describe(name, () => {
    let world: World;
    before(async () => {
      world = await startDirectory();
    });
    after(() => world.stop());

    let count = 0;
    const createUser = async () => String((await world.send("POST", "/Users", newUser())).json.id);
    // Fewer at a time than may wait.
    const createUsers = async (many: number) => {
      const ids: string[] = [];
      while (ids.length < many)
        ids.push(...(await Promise.all(Array.from({ length: Math.min(20, many - ids.length) }, createUser))));
      return ids;
    };
    const createGroup = async (fields: object = {}) => {
      const answer = await world.send("POST", "/Groups", { displayName: `group ${count++}`, ...fields });
      assert.equal(answer.status, 201, answer.text);
      return answer.json;
    };
    const values = (ids: readonly string[]) => ids.map((value) => ({ value }));
    const membersOf = async (id: string): Promise<string[]> => {
      const { json } = await world.send("GET", `/Groups/${id}`);
      return (json.members ?? []).map(({ value }: { value: string }) => value).sort();
    };
    const change = async (id: string, ...operations: readonly object[]) => {
      const answer = await world.send("PATCH", `/Groups/${id}`, patch(...operations));
      assert.equal(answer.status, 200, answer.text);
      return answer;
    };
    const rest = (token = world.owner) => restAs(world.harness.url, token, "/iam/v2");
    const map = async (externalGroupId: string, scope = world.group, roleUid = viewer) => {
      const body = { externalGroupId, roleUid, scope };
      const path = `/externalGroupRoleMappings/${world.provider}`;
      const { status, json, text } = await rest()("POST", path, body);
      assert.equal(status, 200, text);
      return String(json?.uid);
    };
    /** A person of the directory who has signed in. */
    const createPerson = async () => {
      const id = await createUser();
      const identity = await world.harness.identity({ providerUid: world.provider, issuer: "https://login.example" });
      await world.harness.app.installation.store.write(async (tx) => {
        const row = await tx.table(scimUserKind).find(`${world.provider}/${id}`);
        assert.ok(row);
        await linkPerson(tx, row, identity.uid, directoryContext());
      });
      return { id, ...identity };
    };
    const mayRead = async (token: string) => {
      const { status } = await rest(token)("GET", `/groups/${world.group}`);
      assert.ok(status === 200 || status === 403, String(status));
      return status === 200;
    };

    it("are created, read, renamed, replaced and deleted", async () => {
      const [a = "", b = "", c = ""] = await createUsers(3);
      const made = await createGroup({ displayName: "Engineers", externalId: "eng", members: values([a, b]) });
      assert.equal(made.meta.location, `${world.endpointUrl}/Groups/${made.id}`);
      assert.deepEqual(await membersOf(made.id), [a, b].sort());
      const [member] = (await world.send("GET", `/Groups/${made.id}`)).json.members;
      assert.equal(member.$ref, `${world.endpointUrl}/Users/${member.value}`);
      const { json: user } = await world.send("GET", `/Users/${a}`);
      assert.deepEqual(
        user.groups.map(({ value }: { value: string }) => value),
        [made.id],
      );
      const renamed = await change(made.id, { op: "replace", value: { id: made.id, displayName: "Builders" } });
      assert.equal(renamed.json.displayName, "Builders");
      await world.send("PUT", `/Groups/${made.id}`, {
        displayName: "Builders",
        externalId: "eng",
        members: values([c]),
      });
      assert.deepEqual(await membersOf(made.id), [c]);
      const bare = await world.send("GET", `/Groups/${made.id}?excludedAttributes=members`);
      assert.equal(bare.json.members, undefined);
      assert.equal((await world.send("DELETE", `/Groups/${made.id}`)).status, 204);
      assert.equal((await world.send("GET", `/Groups/${made.id}`)).status, 404);
      const rows = await world.harness.app.installation.store.read((tx) => tx.audit.listNewest(100, world.group));
      const types = rows.filter(({ subjectUid }) => subjectUid.endsWith(made.id)).map(({ type }) => type);
      assert.deepEqual(
        types.reverse(),
        ["created", "updated", "updated", "deleted"].map((verb) => `arbor.scim.group.${verb}.v1`),
      );
    });

    it("take and lose members as directories send them", async () => {
      const [a = "", b = "", c = "", d = ""] = await createUsers(4);
      const { id } = await createGroup({ members: values([a]) });
      await change(id, { op: "Add", path: "members", value: values([b, c]) });
      assert.deepEqual(await membersOf(id), [a, b, c].sort());
      await change(id, { op: "remove", path: `members[value eq "${a}"]` });
      await change(id, { op: "Remove", path: "members", value: values([b]) });
      assert.deepEqual(await membersOf(id), [c]);
      await change(
        id,
        { op: "add", value: { members: values([d]) } },
        { op: "remove", path: `members[value eq "${c}"]` },
      );
      assert.deepEqual(await membersOf(id), [d]);
      await change(id, { op: "replace", path: "members", value: values([a, b]) });
      assert.deepEqual(await membersOf(id), [a, b].sort());
      await change(id, { op: "remove", path: "members" });
      assert.deepEqual(await membersOf(id), []);
      const unknown = await world.send(
        "PATCH",
        `/Groups/${id}`,
        patch({ op: "add", path: "members", value: values(["f".repeat(16)]) }),
      );
      assert.equal(unknown.status, 400, unknown.text);
      const part = await world.send(
        "PATCH",
        `/Groups/${id}`,
        patch({ op: "replace", path: `members[value eq "${a}"].type`, value: "x" }),
      );
      assert.equal(part.status, 400, part.text);
    });

    it("that are sent again are not changed", async () => {
      const [a = ""] = await createUsers(1);
      const sent = { displayName: "same", externalId: "same", members: values([a]) };
      const made = await createGroup(sent);
      for (const [method, body] of [
        ["PUT", sent],
        ["PATCH", patch({ op: "add", path: "members", value: values([a]) })],
        ["PATCH", patch({ op: "remove", path: `members[value eq "${"e".repeat(16)}"]` })],
      ] as const) {
        const { json, text } = await world.send(method, `/Groups/${made.id}`, body);
        assert.equal(json.meta.version, made.meta.version, text);
      }
    });

    it("lose no member to those who change them at the same time", async () => {
      const people = await createUsers(12);
      const { id } = await createGroup();
      await Promise.all(people.map((value) => change(id, { op: "add", path: "members", value: [{ value }] })));
      assert.deepEqual(await membersOf(id), [...people].sort());
      await Promise.all(
        people.slice(0, 6).map((value) => change(id, { op: "remove", path: `members[value eq "${value}"]` })),
      );
      assert.deepEqual(await membersOf(id), people.slice(6).sort());
    });

    it("may have more members than one unit of work changes", async () => {
      const people = (await createUsers(230)).sort();
      const { id } = await createGroup({ members: values(people.slice(0, 120)) });
      assert.deepEqual(await membersOf(id), people.slice(0, 120));
      await change(id, { op: "add", path: "members", value: values(people.slice(100)) });
      assert.deepEqual(await membersOf(id), people);
      await world.send("PUT", `/Groups/${id}`, { displayName: "many", members: values(people.slice(0, 3)) });
      assert.deepEqual(await membersOf(id), people.slice(0, 3));
      const answer = await world.send("PUT", `/Groups/${id}`, {
        displayName: "many",
        members: values([...people, "f".repeat(16)]),
      });
      assert.equal(answer.status, 400, answer.text);
      assert.deepEqual(await membersOf(id), people.slice(0, 3));
    });

    it("are found by id, name, external id and member", async () => {
      const [a = "", b = ""] = await createUsers(2);
      const one = await createGroup({ displayName: "Found", externalId: "found-1", members: values([a]) });
      const two = await createGroup({ displayName: "found", members: values([a, b]) });
      const find = async (filter: string) => {
        const { json, text } = await world.send(
          "GET",
          `/Groups?excludedAttributes=members&filter=${encodeURIComponent(filter)}`,
        );
        assert.ok(json.Resources, text);
        return json.Resources.map(({ id }: { id: string }) => id).sort();
      };
      assert.deepEqual(await find('displayName eq "FOUND"'), [one.id, two.id].sort());
      assert.deepEqual(await find('externalId eq "found-1"'), [one.id]);
      assert.deepEqual(await find(`id eq "${two.id}" and members eq "${b}"`), [two.id]);
      assert.deepEqual(await find(`id eq "${one.id}" and members eq "${b}"`), []);
      assert.deepEqual(await find(`members.value eq "${b}"`), [two.id]);
      assert.deepEqual(await find(`members[value eq "${a}"]`), [one.id, two.id].sort());
      const { status } = await world.send("GET", `/Groups?filter=${encodeURIComponent('members.type co "x"')}`);
      assert.equal(status, 400);
    });

    it("give and take a right within the call", async () => {
      const person = await createPerson();
      const { id } = await createGroup({ externalId: "rights" });
      await map("rights");
      assert.equal(await mayRead(person.token), false);
      await change(id, { op: "add", path: "members", value: values([person.id]) });
      assert.equal(await mayRead(person.token), true);
      await change(id, { op: "remove", path: `members[value eq "${person.id}"]` });
      assert.equal(await mayRead(person.token), false);
      await world.send("PUT", `/Groups/${id}`, {
        displayName: "r",
        externalId: "rights",
        members: values([person.id]),
      });
      assert.equal(await mayRead(person.token), true);
      await change(id, { op: "replace", path: "externalId", value: "other" });
      assert.equal(await mayRead(person.token), false);
      const byOther = await map("other");
      assert.equal(await mayRead(person.token), true);
      assert.equal((await rest()("DELETE", `/externalGroupRoleMappings/${byOther}`)).status, 200);
      assert.equal(await mayRead(person.token), false);
      await map("other");
      assert.equal(await mayRead(person.token), true);
      await world.send("DELETE", `/Groups/${id}`);
      assert.equal(await mayRead(person.token), false);
    });

    it("are named by their id in mappings where they have no external id", async () => {
      const person = await createPerson();
      const { id } = await createGroup({ members: values([person.id]) });
      await map(id);
      assert.equal(await mayRead(person.token), true);
      await world.send("DELETE", `/Groups/${id}`);
      assert.equal(await mayRead(person.token), false);
    });

    it("keep a role while one of two groups grants it", async () => {
      const person = await createPerson();
      const groups = [await createGroup({ externalId: "two-a" }), await createGroup({ externalId: "two-b" })];
      for (const { externalId, id } of groups) {
        await map(externalId);
        await change(id, { op: "add", path: "members", value: values([person.id]) });
      }
      assert.equal(await mayRead(person.token), true);
      await world.send("DELETE", `/Groups/${groups[0].id}`);
      assert.equal(await mayRead(person.token), true);
      await world.send("DELETE", `/Groups/${groups[1].id}`);
      assert.equal(await mayRead(person.token), false);
    });

    it("give rights as bindings that the directory manages, beside those by hand", async () => {
      const person = await createPerson();
      const { id } = await createGroup({ externalId: "managed", members: values([person.id]) });
      await map("managed");
      const list = async () => {
        const { json } = await rest()("GET", `/roleBindings?identity=${person.uid}`);
        return json?.roleBindings as { uid: string; managedBy: string; managedByUidp: string }[];
      };
      const [managed] = await list();
      assert.deepEqual([managed?.managedBy, managed?.managedByUidp], ["MANAGED_BY_SCIM", world.provider]);
      const { status, text } = await rest()("DELETE", `/roleBindings/${managed?.uid}`);
      assert.equal(status, 400, text);
      const manual = await rest()("POST", `/roleBindings/${world.group}`, { identityUid: person.uid, roleUid: viewer });
      assert.equal(manual.status, 200, manual.text);
      assert.equal((await list()).length, 2);
      await world.send("DELETE", `/Groups/${id}`);
      assert.deepEqual(
        (await list()).map(({ uid }) => uid),
        [manual.json?.uid],
      );
      assert.equal(await mayRead(person.token), true);
    });
  });
}
