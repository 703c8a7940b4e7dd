// The people whom directories have sent, as ScimUsersService and ScimUsers of version 1 list them. Run on both databases.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { noScim } from "../../src/iam/identity-providers/identity-provider.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { rootOf } from "../../src/kernel/uidp.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { type ScimUserRow, scimUserKind } from "../../src/store/iam/scim-users.js";
import { restAs } from "../contract/rest.js";
import { identityRow, scimUserRow } from "../support/rows.js";
import { insertScimGroup, insertScimUser } from "../support/scim-people.js";
import { type IamWorld, type Somebody, startIamWorld } from "./iam-world.js";

type Json = Readonly<Record<string, unknown>>;
const usersOf = (json: object | undefined) => ((json as Json | undefined)?.scimUsers ?? []) as readonly Json[];
const namesOf = (json: object | undefined) => usersOf(json).map(({ userName }) => userName);

/** Registers the suite under `name`. */
export function scimUsersSuite(name: string): void {
  describe(name, () => {
    let world: IamWorld;
    let reader: Somebody;
    /** The provider whose people are listed, and others with people of the same names. */
    let [provider, sibling, foreign] = ["", "", ""];
    before(async () => {
      world = await startIamWorld();
      reader = await world.caller(["identity_providers.scim.users.list"]);
      [provider, sibling, foreign] = [
        await insertProvider(),
        await insertProvider(),
        await insertProvider(world.foreign),
      ];
      for (const other of [sibling, foreign]) await insertUser(other, "Ann@ours.example", { displayName: "MARKER" });
      await insertUser(provider, "Ann@ours.example", { externalId: "a-1", displayName: "Ann" });
      await insertUser(provider, "bob@ours.example", { externalId: "b-1", active: false });
      await insertUser(provider, "cyd@ours.example", { identityUid: personUid("https://login.example", "c") });
    });
    after(() => world.stop());

    async function insertProvider(groupUid = world.root): Promise<string> {
      const uid = randomIds.newUid(groupUid);
      await world.write((tx) =>
        tx.table(identityProviderKind).insert({
          ...{ uid, groupUid, name: "login", description: "", defaultRole: builtinRoleUid("viewer") },
          ...{ lacksDefaultRole: false, sealedSecret: "", scim: noScim, createTimeMs: 1_000, updateTimeMs: 1_000 },
          oidc: { issuer: "https://login.example", clientId: "c", pkceEnabled: true },
        }),
      );
      return uid;
    }

    async function insertUser(providerUid: string, userName: string, values: Partial<ScimUserRow> = {}) {
      const secret = { attributes: { nickName: "SECRET" }, updateTimeMs: 2_000 };
      const row = scimUserRow(randomIds.newUid(providerUid), { userName, ...secret, ...values });
      await world.write((tx) => tx.table(scimUserKind).insert(row));
      return row;
    }

    const list = (query = "", of = provider, who = reader, version = "v2") =>
      restAs(world.url, who.token, `/iam/${version}`)("GET", `/identityProviders/${of}/scimUsers${query}`);
    const listV1 = (query: string, who = reader) =>
      restAs(world.url, who.token, "/iam/v1")("GET", `/scimUsers?${query}`);

    it("are listed with what the API says of them, in all versions", async () => {
      for (const version of ["v2beta1", "v2"]) {
        const { json, text } = await list("", provider, reader, version);
        assert.equal((json as Json).totalCount, "3", text);
        assert.doesNotMatch(text, /MARKER|SECRET/);
        const ann = usersOf(json).find(({ userName }) => userName === "Ann@ours.example");
        assert.deepEqual(ann, {
          ...{ uid: ann?.uid, identityProviderUid: provider, userName: "Ann@ours.example", externalId: "a-1" },
          ...{ displayName: "Ann", active: true, iamIdentityUid: "" },
          ...{ createTime: "1970-01-01T00:00:01.000Z", updateTime: "1970-01-01T00:00:02.000Z" },
        });
        const uids = usersOf(json).map(({ uid }) => String(uid));
        assert.deepEqual(uids, uids.toSorted());
        const cyd = usersOf(json).find(({ userName }) => userName === "cyd@ours.example");
        assert.equal(cyd?.iamIdentityUid, personUid("https://login.example", "c"));
      }
      const { json, text } = await listV1(`identityProviderUidp=${provider}`);
      const { items, totalCount } = json as { items: readonly Json[]; totalCount: string };
      assert.deepEqual([items.length, totalCount], [3, "3"], text);
      assert.doesNotMatch(text, /MARKER|SECRET/);
      const ann = items.find(({ userName }) => userName === "Ann@ours.example");
      assert.deepEqual(ann, {
        ...{ id: ann?.id, identityProviderUidp: provider, userName: "Ann@ours.example", externalId: "a-1" },
        ...{ displayName: "Ann", active: true, iamIdentityUidp: "" },
        ...{ createdAt: "1970-01-01T00:00:01.000Z", updatedAt: "1970-01-01T00:00:02.000Z" },
      });
    });

    it("are filtered by user name, whose case is ignored, by external id and by whether they are active", async () => {
      const rows: readonly (readonly [query: string, names: readonly string[]])[] = [
        ["userName=aNN@OURS.example", ["Ann@ours.example"]],
        ["userName=ann", []],
        ["externalId=b-1", ["bob@ours.example"]],
        ["externalId=B-1", []],
        ["active=false", ["bob@ours.example"]],
        ["active=true&userName=bob@ours.example", []],
        ["active=false&userName=bob@ours.example", ["bob@ours.example"]],
        ["externalId=a-1&userName=ann@ours.example", ["Ann@ours.example"]],
        ["externalId=a-1&userName=bob@ours.example", []],
        ["externalId=a-1&active=false", []],
        ["userName=", ["Ann@ours.example", "bob@ours.example", "cyd@ours.example"]],
      ];
      for (const [query, names] of rows) {
        const { json, text } = await list(`?${query}`);
        assert.deepEqual(namesOf(json).toSorted(), names, `${query}: ${text}`);
        assert.equal((json as Json).totalCount, String(names.length), query);
        const older = (await listV1(`identityProviderUidp=${provider}&${query}`)).json as { items?: Json[] };
        assert.deepEqual((older.items ?? []).map(({ userName }) => userName).toSorted(), names, `version 1: ${query}`);
      }
      const { json, text } = await list("?active=true");
      assert.deepEqual([namesOf(json).length, (json as Json).totalCount], [2, "2"], text);
      assert.equal((await list("?userName=%07")).status, 400);
    });

    it("come in pages, whose tokens continue the list of one provider", async () => {
      const first = (await list("?pageSize=2")).json as Json;
      const token = encodeURIComponent(String(first.nextPageToken));
      const second = (await list(`?pageSize=2&pageToken=${token}`)).json as Json;
      assert.deepEqual([namesOf(first).length, namesOf(second).length, second.nextPageToken], [2, 1, undefined]);
      assert.deepEqual([...namesOf(first), ...namesOf(second)], namesOf((await list()).json));
      assert.equal((await list(`?pageSize=2&pageToken=${token}`, sibling)).status, 400);
      const down = (await list("?orderBy=uid%20desc")).json;
      assert.deepEqual(namesOf(down), namesOf((await list()).json).toReversed());
      assert.equal((await list("?orderBy=userName")).status, 400);
      assert.deepEqual(namesOf((await list("?skip=1")).json), namesOf((await list()).json).slice(1));
    });

    it("are shown to those alone who may list the people of the directory", async () => {
      const without = await world.caller(["identity_providers.list", "identity_providers.scim.manage"]);
      for (const [who, of] of [
        [without, provider],
        [world.foreignOwner, provider],
        [reader, foreign],
      ] as const) {
        const denied = await list("", of, who);
        assert.deepEqual([denied.status, /MARKER|ours\.example/.test(denied.text)], [403, false], denied.text);
        assert.equal((await listV1(`identityProviderUidp=${of}`, who)).status, 403);
      }
      // The scope may be any resource: a group has no directory, and no person either.
      for (const uid of [world.root, rootOf(provider), `${provider}/0000000000000000`]) {
        assert.ok([403, 404].includes((await list("", uid)).status), uid);
      }
      assert.equal((await listV1("")).status, 400);
    });

    it("are at most 1,000 in a list of version 1, which says how many there are", async () => {
      const crowd = await insertProvider();
      await world.write(async (tx) => {
        for (let i = 0; i < 1_005; i++) {
          const userName = `p${i}@ours.example`;
          const row = scimUserRow(randomIds.newUid(crowd), { userName, active: i % 2 === 0 });
          await tx.table(scimUserKind).insert(row);
        }
      });
      const read = async (query: string) => {
        const { json } = await listV1(`identityProviderUidp=${crowd}${query}`);
        const { items, totalCount } = json as { items: readonly Json[]; totalCount: string };
        return [new Set(items.map(({ id }) => id)).size, totalCount];
      };
      assert.deepEqual(await read(""), [1_000, "1005"]);
      assert.deepEqual(await read("&active=true"), [503, "503"]);
    });

    describe("the state of a directory", () => {
      const statusOf = (uid: string, who: Somebody) =>
        restAs(world.url, who.token, "/scim/v1")("GET", `/identityProviders/${uid}/status`);
      let manager: Somebody;
      before(async () => {
        manager = await world.caller(["identity_providers.scim.manage", "identity_providers.list"]);
      });

      // More than a step reads.
      async function insertPeople(providerUid: string, total: number): Promise<string[]> {
        const uids = Array.from({ length: total }, (_, i) => personUid(providerUid, `${i}`)).toSorted();
        await world.write(async (tx) => {
          for (const uid of uids) {
            await tx
              .table(identityKind)
              .insert(identityRow(uid, { providerUid, name: `n-${uid}`, emailUnverified: "e@x" }));
          }
        });
        return uids;
      }

      it("counts the people, and lists those of whom a change is rejected", async () => {
        const own = await insertProvider();
        const empty = (await statusOf(own, manager)).json as Json;
        assert.deepEqual([empty.people, empty.rejected, empty.unlinked], ["0", [], []]);
        const [first = "", second = ""] = await insertPeople(own, 2);
        await insertUser(own, "last@ours.example", { externalId: "l", identityUid: first, rejectTimeMs: 5_000 });
        await insertUser(own, "next@ours.example", { identityUid: second, active: false });
        await insertUser(own, "new@ours.example", { active: false });
        const { json, text } = await statusOf(own, manager);
        const { rejected, scim, ...numbers } = json as Json & { scim: Json; rejected: Json[] };
        assert.deepEqual(numbers, {
          ...{ identityProvider: own, people: "3", inactivePeople: "2", linkedPeople: "2" },
          ...{ rejectedPeople: "1", unlinked: [], unlinkedPeople: "0", groups: "0", work: [], workCount: "0" },
        });
        assert.equal(scim.endpointUrl, `${world.url}/scim/v2/${own}`);
        assert.deepEqual(rejected, [
          {
            ...{ uid: rejected[0]?.uid, userName: "last@ours.example", externalId: "l", identity: first },
            rejectTime: "1970-01-01T00:00:05.000Z",
          },
        ]);
        assert.doesNotMatch(text, /MARKER|SECRET/);
      });

      it("says what is left to do, and which quota is full", async () => {
        const own = await insertProvider();
        const [uid = ""] = await insertPeople(own, 1);
        const group = await world.write(async (tx) => {
          const row = await insertScimGroup(tx, own, { displayName: "Ops" });
          await tx.scimWork.add(own, "group", row.uid);
          await tx.scimWork.add(own, "members", `${own}/0123456789abcdef`);
          await tx.scimWork.add(own, "person", uid);
          return row;
        });
        const read = async (limits: Readonly<Record<string, number>>) => {
          await world.write((tx) => tx.table(groupKind).update(world.root, { resourceLimits: limits }, 1_000));
          const { work, workCount } = (await statusOf(own, manager)).json as Json & { work: Json[] };
          assert.equal(workCount, "3");
          return work;
        };
        const left = (fullQuota: string) => [
          { kind: "SCIM_WORK_KIND_GROUP", uid: group.uid, name: "Ops", fullQuota },
          { kind: "SCIM_WORK_KIND_MEMBERS", uid: `${own}/0123456789abcdef`, name: "", fullQuota: "" },
          { kind: "SCIM_WORK_KIND_PERSON", uid, name: `n-${uid}`, fullQuota },
        ];
        assert.deepEqual(await read({}), left(""));
        assert.deepEqual(await read({ bindings: 1 }), left("bindings"));
        assert.deepEqual(await read({}), left(""));
      });

      it("lists the people whom the directory has not sent, however many have signed in", async () => {
        const own = await insertProvider();
        const people = await insertPeople(own, 2_500);
        const known = people.filter((_, i) => i % 100 !== 99);
        await world.write(async (tx) => {
          for (const identityUid of known) {
            await tx.table(scimUserKind).insert(scimUserRow(randomIds.newUid(own), { identityUid }));
          }
        });
        const strangers = people.filter((uid) => !known.includes(uid));
        assert.equal(strangers.length, 25);
        const { json } = await statusOf(own, manager);
        const { unlinked, unlinkedPeople } = json as Json & { unlinked: Json[] };
        assert.deepEqual(
          unlinked.map(({ identity }) => identity),
          strangers.slice(0, 20),
        );
        assert.deepEqual([unlinkedPeople, unlinked[0]?.email, unlinked[0]?.name], ["25", "e@x", `n-${strangers[0]}`]);
        // Whom the directory has deleted is not unknown to it.
        await world.write((tx) => tx.table(identityKind).setDeactivated(String(strangers[0]), 5_000));
        assert.equal(((await statusOf(own, manager)).json as Json).unlinkedPeople, "24");
      });

      it("is for those who may manage SCIM and list providers", async () => {
        for (const who of [reader, world.foreignOwner, await world.caller(["identity_providers.scim.manage"])]) {
          assert.equal((await statusOf(provider, who)).status, 403);
        }
        assert.equal((await statusOf(foreign, manager)).status, 403);
      });
    });

    describe("the groups of a directory", () => {
      const groupsOf = async (uid: string, who: Somebody, query = "") => {
        const { status, json, text } = await restAs(
          world.url,
          who.token,
          "/scim/v1",
        )(...(["GET", `/identityProviders/${uid}/groups${query}`] as const));
        const {
          groups = [],
          totalCount,
          nextPageToken,
        } = (json ?? {}) as {
          groups?: { group: Json; members: string; mappings: string[] }[];
          totalCount?: string;
          nextPageToken?: string;
        };
        return { status, text, groups, totalCount, nextPageToken };
      };
      let lister: Somebody;
      before(async () => {
        lister = await world.caller(["identity_providers.scim.users.list", "identity_providers.list"]);
      });

      it("are listed with their members and the mappings that match, in pages of one provider", async () => {
        const [own, other] = [await insertProvider(), await insertProvider()];
        const ids = ["a", "b", ""];
        const rows = await world.write(async (tx) => {
          const member = await insertScimUser(tx, own);
          await insertScimGroup(tx, other, { displayName: "MARKER", externalId: "a" });
          const made = [];
          for (const externalId of ids) made.push(await insertScimGroup(tx, own, { externalId }, [member.uid]));
          // Members of a set that is being written do not count.
          await tx.scimMembers.add({ groupUid: made[0]?.uid ?? "", memberSet: 2, userUid: member.uid });
          return made.sort((a, b) => (a.uid < b.uid ? -1 : 1));
        });
        const mapped = await world.write(async (tx) => {
          const uids = new Map<string, string>();
          for (const [providerUid, row] of [...rows.map((row) => [own, row] as const), [other, rows[0]] as const]) {
            if (row === undefined || row.externalId === "b") continue;
            const mapping = randomIds.newUid(providerUid);
            await tx.table(groupMappingKind).insert({
              ...{ uid: mapping, providerUid, externalGroupId: row.mappedId, roleUid: builtinRoleUid("viewer") },
              ...{ scope: world.child, createdBy: null, createTimeMs: 1_000 },
            });
            if (providerUid === own) uids.set(row.uid, mapping);
          }
          return uids;
        });
        const expected = rows.map(({ uid, externalId, mappedId }) => ({
          group: {
            ...{ uid, identityProvider: own, displayName: "group", externalId, externalGroupId: mappedId },
            ...{ createTime: "1970-01-01T00:00:01.000Z", updateTime: "1970-01-01T00:00:01.000Z" },
          },
          members: "1",
          mappings: mapped.has(uid) ? [mapped.get(uid)] : [],
        }));
        const { groups, totalCount, text } = await groupsOf(own, lister);
        assert.deepEqual(groups, expected, text);
        assert.deepEqual([totalCount, /MARKER|SECRET/.test(text)], ["3", false]);
        const first = await groupsOf(own, lister, "?pageSize=2");
        const second = await groupsOf(own, lister, `?pageSize=2&pageToken=${first.nextPageToken}`);
        assert.deepEqual([...first.groups, ...second.groups], expected);
        assert.equal((await groupsOf(other, lister, `?pageToken=${first.nextPageToken}`)).status, 400);
      });

      it("are shown to those alone who may list the people and the providers", async () => {
        await world.write((tx) => insertScimGroup(tx, foreign, { displayName: "MARKER" }));
        for (const [who, of] of [
          [reader, provider],
          [await world.caller(["identity_providers.list"]), provider],
          [world.foreignOwner, provider],
          [lister, foreign],
        ] as const) {
          const { status, text } = await groupsOf(of, who);
          assert.deepEqual([status, text.includes("MARKER")], [403, false]);
        }
        assert.equal((await groupsOf(provider, lister)).status, 200);
      });
    });
  });
}
