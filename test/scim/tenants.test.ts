// Two organisations whose people have marks: no byte of one reaches the other, whatever its directory and its owners send.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { scimGroupKind } from "../../src/store/iam/scim-groups.js";
import { scimUserKind } from "../../src/store/iam/scim-users.js";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { createDirectory, type Directory, newUser, patch, scimAs } from "./world.js";

const MARKS = { a: "marka7f3", b: "markb91c" } as const;
type Name = keyof typeof MARKS;

describe("directories of two organisations", () => {
  let harness: Harness;
  const directories = {} as Record<Name, Directory>;
  const ids: Record<Name, string[]> = { a: [], b: [] };
  const groups: Record<Name, string[]> = { a: [], b: [] };
  before(async () => {
    harness = await startHarness();
    for (const name of ["a", "b"] as const) {
      const mark = MARKS[name];
      const directory = await createDirectory(harness, `${name}.example`);
      directories[name] = directory;
      for (let i = 0; i < 5; i++) {
        const { status, json, text } = await directory.send(
          "POST",
          "/Users",
          newUser({
            // The same in both: what is unique is so within a directory.
            userName: `person${i}@shared.example`,
            externalId: `shared-${i}`,
            displayName: `${mark} ${i}`,
            title: mark,
            emails: [{ value: `${mark}${i}@shared.example`, type: "work" }],
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": { department: mark },
          }),
        );
        assert.equal(status, 201, text);
        ids[name].push(json.id);
      }
      for (let i = 0; i < 2; i++) {
        const members = ids[name].map((value) => ({ value }));
        const { status, json, text } = await directory.send("POST", "/Groups", {
          ...{ displayName: `${mark} group ${i}`, externalId: `shared-group-${i}`, members },
        });
        assert.equal(status, 201, text);
        groups[name].push(json.id);
      }
    }
  });
  after(() => harness.stop());

  const rowsOf = async (name: Name) => {
    const { provider } = directories[name];
    const rows = await harness.app.installation.store.read(async (tx) => {
      const stored = await tx.table(scimGroupKind).findAfter(provider, "", 100);
      const members = [];
      for (const { uid, memberSet } of stored)
        members.push(await tx.scimMembers.list({ groupUid: uid, memberSet }, "", 100));
      return [await tx.table(scimUserKind).findAfter(provider, "", 100), stored, members];
    });
    return JSON.stringify(rows);
  };

  for (const [own, other] of [
    ["a", "b"],
    ["b", "a"],
  ] as const) {
    it(`${own} reads and changes nothing of ${other}`, async () => {
      const [mine, theirs] = [directories[own], directories[other]];
      const before = await rowsOf(other);
      const received: string[] = [];
      const note = async (answer: Promise<{ status: number; text: string; headers: Headers }>) => {
        const { status, text, headers } = await answer;
        received.push(text, JSON.stringify([...headers]));
        return status;
      };
      for (const id of ids[other]) {
        const body = newUser({ displayName: "changed" });
        const change = patch({ op: "replace", path: "active", value: false });
        for (const send of [mine.send, scimAs(theirs.endpointUrl, mine.token)]) {
          for (const [method, sent] of [["GET"], ["PUT", body], ["PATCH", change], ["DELETE"]] as const) {
            const status = await note(send(method, `/Users/${id}`, sent));
            assert.ok(status === 404 || status === 401, `${method}: ${status}`);
          }
        }
        // The segments of the other's uid, below the own address.
        for (const path of [
          `/Users/../../${theirs.provider}/Users/${id}`,
          `/Users/..%2F..%2F${theirs.provider}%2FUsers%2F${id}`,
        ])
          assert.notEqual(await note(mine.send("GET", path)), 200);
      }
      const mark = MARKS[other];
      const add = patch({ op: "add", path: "members", value: [{ value: ids[own][0] }] });
      for (const id of groups[other]) {
        for (const send of [mine.send, scimAs(theirs.endpointUrl, mine.token)]) {
          for (const [method, sent] of [["GET"], ["PUT", { displayName: "x" }], ["PATCH", add], ["DELETE"]] as const) {
            const status = await note(send(method, `/Groups/${id}`, sent));
            assert.ok(status === 404 || status === 401, `${method}: ${status}`);
          }
        }
      }
      // Nobody of the other becomes a member here.
      for (const value of ids[other]) {
        const body = patch({ op: "add", path: "members", value: [{ value }] });
        assert.equal(await note(mine.send("PATCH", `/Groups/${groups[own][0]}`, body)), 400);
        assert.equal(await note(mine.send("POST", "/Groups", { displayName: "x", members: [{ value }] })), 400);
        await note(mine.send("GET", `/Groups?filter=${encodeURIComponent(`members eq "${value}"`)}`));
      }
      await note(mine.send("GET", "/Groups?count=200"));
      for (const filter of [
        `title eq "${mark}"`,
        `displayName co "${mark}"`,
        `emails[value sw "${mark}"]`,
        `userName pr`,
        `id eq "${ids[other][0]}"`,
      ]) {
        await note(mine.send("GET", `/Users?filter=${encodeURIComponent(filter)}`));
        await note(mine.send("POST", "/.search", { filter }));
      }
      await note(mine.send("GET", "/Users?count=200&sortBy=userName"));
      await note(mine.send("POST", "/Users", newUser({ userName: "person1@shared.example" })));
      // Over the API, with the token of an owner.
      for (const base of ["/iam/v1", "/iam/v2beta1", "/iam/v2"]) {
        const rest = restAs(harness.url, mine.owner, base);
        for (const provider of [mine.provider, theirs.provider]) {
          const list =
            base === "/iam/v1"
              ? `/scimUsers?identityProviderUidp=${provider}`
              : `/identityProviders/${provider}/scimUsers`;
          received.push((await rest("GET", list)).text);
          received.push(
            (await rest("GET", base === "/iam/v1" ? "/identityProviders" : `/identityProviders/${provider}`)).text,
          );
          if (provider === theirs.provider && base !== "/iam/v1") {
            for (const action of ["generateScimToken", "revokeScimToken", "setScimEnabled"])
              received.push((await rest("POST", `/identityProviders/${provider}:${action}`, {})).text);
          }
        }
      }
      received.push(
        (await restAs(harness.url, mine.owner, "/audit/v1")("GET", `/events?group=${mine.group}&pageSize=200`)).text,
      );
      received.push((await restAs(harness.url, mine.owner, "/access/v1")("GET", `/find?query=${mark}`)).text);
      // The filters of the requests are not answered with.
      for (const text of received) {
        assert.ok(!text.includes(theirs.token), text);
        assert.ok(!text.replaceAll(`\\"${mark}\\"`, "").includes(mark), text);
      }
      assert.equal(await rowsOf(other), before);
      // Control: what is looked for is there.
      const own_ = (await mine.send("GET", "/Users?count=200")).text;
      assert.ok(own_.includes(MARKS[own]));
    });
  }
});
