// The endpoint of directories over HTTP. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createCloudEvents } from "../../src/events/cloud-event.js";
import { setIdentityActive } from "../../src/iam/identities/deactivation.js";
import { linkPerson } from "../../src/iam/people/directory-person.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { scimUserKind } from "../../src/store/iam/scim-users.js";
import { restAs } from "../contract/rest.js";
import { directoryContext } from "../support/directory-context.js";
import { createDirectory, type Directory, newUser, patch, scimAs, startDirectory, type World } from "./world.js";

const ERROR = "urn:ietf:params:scim:api:messages:2.0:Error";

/** Registers the suite under `name`. */
export function endpointSuite(name: string): void {
  describe(name, () => {
    let world: World;
    let other: Directory;
    before(async () => {
      world = await startDirectory();
      other = await createDirectory(world.harness, "beta");
    });
    after(() => world.stop());

    const create = async (fields: object = {}) => {
      const { status, json, text } = await world.send("POST", "/Users", newUser(fields));
      assert.equal(status, 201, text);
      return json;
    };
    const expectError = (
      answer: { status: number; json: unknown; text: string },
      status: number,
      scimType?: string,
    ) => {
      const { schemas, ...error } = answer.json as {
        schemas: string[];
        status: string;
        scimType?: string;
        detail: string;
      };
      assert.equal(answer.status, status, answer.text);
      assert.deepEqual([schemas, error.status, error.scimType], [[ERROR], String(status), scimType], answer.text);
      assert.ok(error.detail.length > 0);
    };
    const auditOf = async (subject: string) => {
      const rows = await world.harness.app.installation.store.read((tx) => tx.audit.listNewest(1000, world.group));
      return rows.filter(({ subjectUid }) => subjectUid === subject).reverse();
    };
    /** An identity that has signed in as a person of the directory. */
    const link = async (id: string) => {
      const { store } = world.harness.app.installation;
      const identity = await world.harness.identity({ providerUid: world.provider, issuer: "https://login.example" });
      await store.write(async (tx) => {
        const row = await tx.table(scimUserKind).find(`${world.provider}/${id}`);
        assert.ok(row);
        await linkPerson(tx, row, identity.uid, directoryContext());
      });
      return identity;
    };
    const whoAmI = (token: string) => restAs(world.harness.url, token, "")("GET", "/auth/v1/ok");

    describe("credentials", () => {
      it("rejects requests without a valid token before their bodies are read", async () => {
        const { endpointUrl } = world;
        const good = await world.send("GET", "/Users?count=1");
        assert.equal(good.status, 200, good.text);
        for (const token of ["", "x", `cgscim_${"0".repeat(64)}`, other.token, `${world.token}0`]) {
          const answer = await scimAs(endpointUrl, token)("POST", "/Users", "no JSON");
          expectError(answer, 401);
          assert.equal(answer.headers.get("www-authenticate"), "Bearer");
        }
        const api = await scimAs(endpointUrl, world.owner)("GET", "/Users");
        expectError(api, 401);
      });

      it("follows rotation, revocation and the switch", async () => {
        const one = await createDirectory(world.harness, "rotating");
        const rest = restAs(world.harness.url, one.owner, "/iam/v2");
        const call = async (action: string, body: object) => {
          const { status, json, text } = await rest("POST", `/identityProviders/${one.provider}:${action}`, body);
          assert.equal(status, 200, text);
          return json as { etag: string; token: string };
        };
        const { json } = await rest("GET", `/identityProviders/${one.provider}`);
        const { etag } = (json as { scim: { etag: string } }).scim;
        const next = await call("regenerateScimToken", { etag });
        const isOpen = async (token: string) => (await scimAs(one.endpointUrl, token)("GET", "/Users")).status;
        assert.deepEqual([await isOpen(one.token), await isOpen(next.token)], [200, 200]);
        world.harness.skewMs = 3_600_001;
        assert.deepEqual([await isOpen(one.token), await isOpen(next.token)], [401, 200]);
        world.harness.skewMs = 0;
        const off = await call("setScimEnabled", { enabled: false, etag: next.etag }).catch(() => undefined);
        if (off !== undefined) assert.equal(await isOpen(next.token), 403);
        await call("revokeScimToken", {});
        assert.deepEqual([await isOpen(one.token), await isOpen(next.token)], [401, 401]);
      });
    });

    describe("addresses", () => {
      it("take an escaped slash in the uid, and a slash at the end", async () => {
        const base = `${world.harness.url}/scim/v2`;
        const [root = "", own = ""] = world.provider.split("/");
        for (const uid of [`${root}/${own}`, `${root}%2F${own}`, `${root}%2f${own}`]) {
          for (const end of ["/Users", "/Users/"]) {
            const { status, text } = await scimAs(`${base}/${uid}`, world.token)("GET", end);
            assert.equal(status, 200, text);
          }
        }
        assert.equal(world.endpointUrl, `${base}/${world.provider}`);
      });

      it("that name nothing are answered as SCIM does", async () => {
        for (const path of [
          "",
          "/Nothing",
          "/Users/x/y",
          "/Users/ffffffffffffffff",
          "/Users/..%2f..",
          "/ServiceProviderConfig/x",
        ])
          expectError(await world.send("GET", path), 404);
        expectError(await scimAs(`${world.harness.url}/scim/v2/x`, world.token)("GET", "/Users"), 404);
        expectError(await world.send("DELETE", "/Users"), 405);
        expectError(await world.send("PUT", "/Schemas", {}), 405);
        for (const path of ["/Bulk", "/Me"]) expectError(await world.send("POST", path, {}), 501);
      });

      it("of the service's own description", async () => {
        const { json: config } = await world.send("GET", "/ServiceProviderConfig");
        assert.deepEqual([config.patch.supported, config.bulk.supported, config.etag.supported], [true, false, true]);
        const { json: types } = await world.send("GET", "/ResourceTypes");
        assert.deepEqual(
          types.Resources.map(({ id }: { id: string }) => id),
          ["User", "Group"],
        );
        const { json: schemas } = await world.send("GET", "/Schemas");
        for (const { id } of schemas.Resources) {
          const { json } = await world.send("GET", `/Schemas/${id}`);
          assert.equal(json.id, id);
        }
        const { json: type } = await world.send("GET", "/ResourceTypes/User");
        assert.equal(type.endpoint, "/Users");
      });
    });

    describe("people", () => {
      it("are created, read, replaced, changed and deleted", async () => {
        const sent = newUser({
          name: { givenName: "Ada", familyName: "Lovelace" },
          displayName: "Ada",
          emails: [{ value: "ada@acme.example", type: "work", primary: true }],
          "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { department: "Engines" },
          password: "secret",
        });
        const made = await world.send("POST", "/Users", sent);
        assert.equal(made.status, 201, made.text);
        const { id, meta } = made.json;
        assert.match(id, /^[0-9a-f]{16}$/);
        assert.equal(meta.location, `${world.endpointUrl}/Users/${id}`);
        assert.equal(made.headers.get("location"), meta.location);
        assert.equal(made.headers.get("etag"), meta.version);
        assert.equal(made.headers.get("content-type"), "application/scim+json");
        assert.equal(made.json.active, true);
        assert.doesNotMatch(made.text, /secret/);
        const read = await world.send("GET", `/Users/${id}`);
        assert.deepEqual(read.json, made.json);
        const put = await world.send("PUT", `/Users/${id}`, { ...sent, displayName: "Countess", active: undefined });
        assert.equal(put.json.displayName, "Countess");
        assert.notEqual(put.json.meta.version, meta.version);
        const changed = await world.send(
          "PATCH",
          `/Users/${id}`,
          patch({ op: "replace", path: "name.givenName", value: "A" }),
        );
        assert.equal(changed.status, 200, changed.text);
        assert.deepEqual(changed.json.name, { givenName: "A", familyName: "Lovelace" });
        const some = await world.send("GET", `/Users/${id}?attributes=userName,emails.value`);
        assert.deepEqual(Object.keys(some.json).sort(), ["emails", "id", "schemas", "userName"]);
        const gone = await world.send("DELETE", `/Users/${id}`);
        assert.deepEqual([gone.status, gone.text], [204, ""]);
        expectError(await world.send("GET", `/Users/${id}`), 404);
        const types = (await auditOf(`${world.provider}/${id}`)).map(({ type }) => type);
        assert.deepEqual(
          types,
          ["created", "updated", "updated", "deleted"].map((verb) => `arbor.scim.user.${verb}.v1`),
        );
      });

      it("have one user name and one external id each", async () => {
        const { userName, externalId } = await create();
        expectError(
          await world.send("POST", "/Users", newUser({ userName: userName.toUpperCase() })),
          409,
          "uniqueness",
        );
        expectError(await world.send("POST", "/Users", newUser({ externalId })), 409, "uniqueness");
        const second = await create();
        const clash = patch({ op: "replace", path: "userName", value: userName });
        expectError(await world.send("PATCH", `/Users/${second.id}`, clash), 409, "uniqueness");
        // Another directory has its own people.
        const elsewhere = await other.send("POST", "/Users", newUser({ userName, externalId }));
        assert.equal(elsewhere.status, 201, elsewhere.text);
      });

      it("that are sent again are not changed, and nothing is recorded", async () => {
        const sent = newUser({
          displayName: "Same",
          active: true,
          name: { familyName: "Same", givenName: "Ever" },
          emails: [{ value: "same@acme.example", type: "work", primary: true }],
          "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { manager: { value: "m" }, department: "d" },
        });
        const { json: made } = await world.send("POST", "/Users", sent);
        const recorded = (await auditOf(`${world.provider}/${made.id}`)).length;
        for (const again of [
          ["PUT", sent],
          ["PATCH", patch({ op: "Replace", path: "active", value: "True" })],
          ["PATCH", patch({ op: "replace", value: { active: true, displayName: "Same" } })],
          ["PUT", { ...sent, active: "true" }],
        ] as const) {
          const { status, json, text } = await world.send(again[0], `/Users/${made.id}`, again[1]);
          assert.equal(status, 200, text);
          assert.deepEqual(json, made);
        }
        assert.equal((await auditOf(`${world.provider}/${made.id}`)).length, recorded);
      });

      it("are changed only in the version that a request names", async () => {
        const made = await create();
        const change = (ifMatch: string, displayName: string) =>
          world.send("PATCH", `/Users/${made.id}`, patch({ op: "add", value: { displayName } }), {
            "if-match": ifMatch,
          });
        const first = await change(made.meta.version, "one");
        assert.equal(first.status, 200, first.text);
        expectError(await change(made.meta.version, "two"), 412);
        assert.equal((await change("*", "three")).status, 200);
        const { json } = await world.send("GET", `/Users/${made.id}`);
        const same = await world.send("GET", `/Users/${made.id}`, undefined, { "if-none-match": json.meta.version });
        assert.deepEqual([same.status, same.text], [304, ""]);
        expectError(await world.send("DELETE", `/Users/${made.id}`, undefined, { "if-match": 'W/"1"' }), 412);
      });

      it("come back with their id when they were deleted and are sent again", async () => {
        const sent = newUser();
        const { json: made } = await world.send("POST", "/Users", sent);
        const { uid } = await link(made.id);
        await world.send("DELETE", `/Users/${made.id}`);
        const { json: again } = await world.send("POST", "/Users", { ...sent, userName: "new.name@acme.example" });
        assert.deepEqual([again.id, again.userName], [made.id, "new.name@acme.example"]);
        assert.notEqual(again.meta.version, made.meta.version);
        const { store } = world.harness.app.installation;
        const row = await store.read((tx) => tx.table(scimUserKind).find(`${world.provider}/${made.id}`));
        assert.equal(row?.identityUid, uid);
        const third = await create();
        const taken = patch({ op: "replace", path: "externalId", value: sent.externalId });
        expectError(await world.send("PATCH", `/Users/${third.id}`, taken), 409, "uniqueness");
      });

      it("keep the external id by which they have signed in", async () => {
        const made = await create();
        const change = (value: string) =>
          world.send("PATCH", `/Users/${made.id}`, patch({ op: "replace", path: "externalId", value }));
        const renamed = await change(`${made.externalId}-2`);
        assert.equal(renamed.status, 200, renamed.text);
        await link(made.id);
        expectError(await change("another"), 409, "mutability");
        const put = await world.send("PUT", `/Users/${made.id}`, { ...newUser(), externalId: undefined });
        assert.equal(put.json.externalId, `${made.externalId}-2`, put.text);
      });
    });

    describe("deactivation", () => {
      it("takes effect with the response, and ends with it", async () => {
        const made = await create();
        const identity = await link(made.id);
        // Those of before a deactivation stay revoked.
        const signInAgain = async () => {
          const token = await world.harness.token(identity.uid);
          assert.equal((await whoAmI(token)).status, 200);
          return token;
        };
        let token = await signInAgain();
        for (const [off, on] of [
          [
            patch({ op: "Replace", path: "active", value: "False" }),
            patch({ op: "Replace", path: "active", value: "True" }),
          ],
          [patch({ op: "replace", value: { active: false } }), patch({ op: "replace", value: { active: true } })],
        ]) {
          assert.equal((await world.send("PATCH", `/Users/${made.id}`, off)).status, 200);
          assert.equal((await whoAmI(token)).status, 401);
          // What does not say whether a person is active leaves it as it is.
          const { userName, externalId } = made;
          await world.send("PUT", `/Users/${made.id}`, { ...newUser(), userName, externalId });
          assert.equal((await whoAmI(token)).status, 401);
          assert.equal((await world.send("PATCH", `/Users/${made.id}`, on)).status, 200);
          assert.equal((await whoAmI(token)).status, 401);
          token = await signInAgain();
        }
        await world.send("DELETE", `/Users/${made.id}`);
        assert.equal((await whoAmI(token)).status, 401);
        await world.send("POST", "/Users", newUser({ externalId: made.externalId, active: false }));
        assert.equal((await whoAmI(token)).status, 401);
        await world.send("PATCH", `/Users/${made.id}`, patch({ op: "add", path: "active", value: true }));
        await signInAgain();
      });

      it("of the last owner is rejected, and recorded once", async () => {
        const made = await create();
        const identity = await link(made.id);
        await world.harness.bind(identity.uid, "owner", world.group);
        const { store } = world.harness.app.installation;
        // Deactivated by hand, as nothing of theirs does it here.
        await store.write(async (tx) => {
          for (const uid of world.owners) await tx.table(identityKind).setDeactivated(uid, 1);
        });
        const off = patch({ op: "replace", path: "active", value: false });
        for (let i = 0; i < 3; i++) expectError(await world.send("PATCH", `/Users/${made.id}`, off), 409);
        expectError(await world.send("DELETE", `/Users/${made.id}`), 409);
        assert.equal((await whoAmI(identity.token)).status, 200);
        const types = async () => (await auditOf(`${world.provider}/${made.id}`)).map(({ type }) => type);
        assert.deepEqual(await types(), ["arbor.scim.user.created.v1", "arbor.scim.user.rejected.v1"]);
        const row = () => store.read((tx) => tx.table(scimUserKind).find(`${world.provider}/${made.id}`));
        assert.notEqual((await row())?.rejectTimeMs, null);
        await store.write(async (tx) => {
          for (const uid of world.owners) await setIdentityActive(tx, uid, true, 1);
        });
        assert.equal((await world.send("PATCH", `/Users/${made.id}`, off)).status, 200);
        assert.equal((await row())?.rejectTimeMs, null);
        assert.equal((await whoAmI(identity.token)).status, 401);
      });
    });

    describe("what directories send", () => {
      it("Okta tests the endpoint with a page of two", async () => {
        const { status, json } = await world.send("GET", "/Users?startIndex=1&count=2");
        assert.equal(status, 200);
        assert.ok(json.Resources.length <= 2 && json.totalResults >= json.Resources.length);
      });

      it("everybody asks for people who do not exist, and gets an empty list", async () => {
        const { status, json } = await world.send("GET", `/Users?filter=${encodeURIComponent('userName eq "nobody"')}`);
        assert.deepEqual([status, json.totalResults, json.Resources], [200, 0, []]);
      });

      it("the general type of JSON, and no other", async () => {
        const headers = { "content-type": "application/json; charset=utf-8" };
        assert.equal((await world.send("POST", "/Users", newUser(), headers)).status, 201);
        expectError(await world.send("POST", "/Users", "a=b", { "content-type": "text/plain" }), 415);
      });

      it("Entra ID changes a part of a value that is not there", async () => {
        const { id } = await create();
        const value = "work@acme.example";
        const { json } = await world.send(
          "PATCH",
          `/Users/${id}`,
          patch({ op: "Add", path: 'emails[type eq "work"].value', value }),
        );
        assert.deepEqual(json.emails, [{ value, type: "work" }]);
      });

      it("bodies that are wrong", async () => {
        expectError(await world.send("POST", "/Users", "{"), 400, "invalidSyntax");
        expectError(await world.send("POST", "/Users", '{"userName":"a","userName":"b"}'), 400, "invalidSyntax");
        expectError(await world.send("POST", "/Users", {}), 400, "invalidValue");
        expectError(await world.send("GET", "/Users?filter=nonsense"), 400, "invalidFilter");
        expectError(await world.send("POST", "/Users", newUser({ title: "x".repeat(1024 * 1024) })), 413);
      });
    });

    describe("lists", () => {
      it("filter, sort and page", async () => {
        const one = await createDirectory(world.harness, "lists");
        const names = ["carol", "Alice", "bob", "dave"];
        for (const [i, userName] of names.entries()) {
          const { status, text } = await one.send(
            "POST",
            "/Users",
            newUser({ userName, title: i % 2 ? "even" : "odd", externalId: `e${i}` }),
          );
          assert.equal(status, 201, text);
        }
        const list = async (query: Record<string, string | number>, path = "/Users") => {
          const text = new URLSearchParams(
            Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]),
          );
          const answer = await one.send("GET", `${path}?${text}`);
          assert.equal(answer.status, 200, answer.text);
          return answer.json;
        };
        const namesOf = ({ Resources }: { Resources: { userName: string }[] }) =>
          Resources.map(({ userName }) => userName);
        assert.deepEqual(namesOf(await list({ sortBy: "userName" })), ["Alice", "bob", "carol", "dave"]);
        assert.deepEqual(
          namesOf(await list({ sortBy: "userName", sortOrder: "descending", count: 2, startIndex: 2 })),
          ["carol", "bob"],
        );
        assert.deepEqual(namesOf(await list({ sortBy: "externalId", sortOrder: "descending" })), [...names].reverse());
        assert.deepEqual(namesOf(await list({ filter: 'USERNAME eq "ALICE"' })), ["Alice"]);
        assert.deepEqual(namesOf(await list({ filter: 'externalId eq "e2" and userName sw "b"' })), ["bob"]);
        assert.deepEqual(namesOf(await list({ filter: 'externalId eq "e2" and userName sw "x"' })), []);
        assert.deepEqual(namesOf(await list({ filter: 'title eq "even"', sortBy: "userName" })), ["Alice", "dave"]);
        const paged = await list({ filter: 'title eq "odd" or userName eq "dave"', count: 1, startIndex: 2 });
        assert.deepEqual([paged.totalResults, paged.itemsPerPage, paged.startIndex], [3, 1, 2]);
        const none = await list({ count: 0 });
        assert.deepEqual([none.totalResults, none.Resources], [4, []]);
        const all = await list({});
        const ids = all.Resources.map(({ id }: { id: string }) => id);
        assert.deepEqual(ids, [...ids].sort());
        const [first] = all.Resources;
        const since = await list({ filter: `meta.lastModified ge "${first.meta.lastModified}"` });
        assert.ok(since.totalResults >= 1);
        const never = await list({ filter: 'meta.lastModified gt "2100-01-01T00:00:00Z"' });
        assert.equal(never.totalResults, 0);
        assert.deepEqual(namesOf(await list({ filter: `id eq "${first.id}"` })), [first.userName]);
        const search = await one.send("POST", "/Users/.search", {
          filter: 'userName eq "bob"',
          attributes: ["userName"],
        });
        assert.deepEqual(namesOf(search.json), ["bob"]);
        const everywhere = await one.send("POST", "/.search", { filter: 'userName eq "bob"' });
        assert.deepEqual(namesOf(everywhere.json), ["bob"]);
      });
    });

    it("what directories change is sent as events", async () => {
      const { id } = await create({ displayName: "Told" });
      await world.send("DELETE", `/Users/${id}`);
      const uid = `${world.provider}/${id}`;
      const events = createCloudEvents({ methods: [], baseUrl: world.harness.url, registryHost: "", formatId: String });
      const rows = await auditOf(uid);
      const bodies = await world.harness.app.installation.store.read((tx) => tx.audit.readBodies(rows));
      const [created, deleted] = rows.map((row) => {
        assert.ok(events.matches(row, world.group));
        const event = events.build(row, bodies.get(row.id));
        assert.ok(typeof event === "object", String(event));
        return event;
      });
      assert.deepEqual(
        [created?.type, created?.subject, created?.group, created?.identityProvider, created?.actor],
        ["arbor.scim.user.created.v1", uid, world.group, world.provider, world.provider],
      );
      const { body } = JSON.parse(created?.data ?? "{}");
      assert.deepEqual([body.uid, body.displayName, body.active], [uid, "Told", true]);
      assert.equal(deleted?.type, "arbor.scim.user.deleted.v1");
    });

    it("what directories do is recorded with the provider as the actor, and without the token", async () => {
      const { id } = await create();
      const [row] = await auditOf(`${world.provider}/${id}`);
      assert.equal(row?.actorUid, world.provider);
      assert.equal(row?.actorName, "directory");
      assert.match(row?.tokenId ?? "", /^[0-9a-f]{16}$/);
      const rows = await world.harness.app.installation.store.read((tx) => tx.audit.listNewest(1000, world.group));
      assert.doesNotMatch(JSON.stringify(rows), /cgscim_/);
    });
  });
}
