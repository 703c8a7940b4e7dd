// What the API shows of the audit log, on either database.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../../src/kernel/ids.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { chooseScale } from "../../support/scale.js";
import { type EventWorld, listAll, type ShownEvent, startEventWorld, timeAt } from "./event-world.js";

const LIST = ["role_bindings.list"];
const LIST_AND_CREATE = [...LIST, "role_bindings.create"];

/** Registers the tests. */
export function eventsSuite(): void {
  describe("events of the audit log", () => {
    let world: EventWorld;
    let actor: string;
    let fresh: string;
    let group: string;
    let below: string;

    before(async () => {
      world = await startEventWorld();
      actor = randomIds.newUid();
      fresh = (await world.harness.organisation("fresh")).group;
      group = await world.group(fresh);
      below = await world.group(group);
      const subjects = [fresh, group, below];
      for (let i = 0; i < 60; i++) {
        await world.add({
          rootUid: fresh,
          subjectUid: subjects[i % 3] ?? "",
          type: i % 5 === 0 ? "test.rare.v1" : "test.made.v1",
          actorUid: i % 4 === 0 ? actor : "",
          requestId: `request-${i}`,
          ...(i === 59 && { subjectUid: "" }),
        });
      }
    });
    after(() => world.stop());

    const reader = async (capabilities: readonly string[], at = fresh) =>
      world.audit((await world.caller(capabilities, at)).token);
    const requests = (events: readonly ShownEvent[]) => events.map(({ requestId }) => requestId);
    const listNumbers = (keep: (i: number) => boolean) =>
      Array.from({ length: 60 }, (_, i) => i)
        .filter(keep)
        .map((i) => `request-${i}`)
        .reverse();
    // The rows of the world, without those of the creation of the organisation.
    const window = { startTime: timeAt(0), endTime: timeAt(100) };

    it("come in the order of time, in pages of any size", async () => {
      const rest = await reader(LIST);
      for (const pageSize of ["1", "7", "59", "60", "200"]) {
        const shown = await listAll(rest, { scope: fresh, pageSize, ...window });
        assert.deepEqual(
          requests(shown),
          listNumbers(() => true),
        );
        const oldest = await listAll(rest, { scope: fresh, pageSize, ...window, orderBy: " time  asc " });
        assert.deepEqual(
          requests(oldest).reverse(),
          listNumbers(() => true),
        );
      }
    });

    it("of the same time are all listed", async () => {
      const rest = await reader(LIST, group);
      const subject = randomIds.newUid(group);
      for (let i = 0; i < 9; i++) await world.add({ rootUid: fresh, subjectUid: subject, requestId: `same-${i}` }, 200);
      for (const orderBy of ["time asc", "time desc"]) {
        const shown = await listAll(rest, { scope: group, subject, pageSize: "2", orderBy });
        assert.equal(new Set(requests(shown)).size, 9);
        assert.equal(shown.length, 9);
      }
    });

    it("are found by each filter, and by all of them within a time", async () => {
      const rest = await reader(LIST);
      const cases: readonly (readonly [Record<string, string>, (i: number) => boolean])[] = [
        [{ subject: group }, (i) => i % 3 === 1],
        [{ actor }, (i) => i % 4 === 0],
        [{ type: "test.rare.v1" }, (i) => i % 5 === 0],
        [{ requestId: "request-17", ...window }, (i) => i === 17],
        [{ requestId: "request-17", actor, ...window }, () => false],
        [{ requestId: "request-16", actor, ...window }, (i) => i === 16],
      ];
      for (const [filter, keep] of cases) {
        const shown = await listAll(rest, { scope: fresh, pageSize: "3", ...filter });
        assert.deepEqual(requests(shown), listNumbers(keep), JSON.stringify(filter));
      }
      const both = { scope: fresh, actor, type: "test.rare.v1", startTime: timeAt(20), endTime: timeAt(40) };
      // 20 is inside, 40 is not.
      assert.deepEqual(requests(await listAll(rest, both)), ["request-20"]);
      const inGroup = await listAll(rest, { scope: group, ...window });
      assert.deepEqual(
        requests(inGroup),
        listNumbers((i) => i % 3 !== 0 && i !== 59),
      );
    });

    it("need a time where no index answers", async () => {
      const rest = await reader(LIST);
      const filters = [
        { scope: group },
        { scope: fresh, actor, type: "x" },
        { scope: group, actor },
        { scope: fresh, requestId: "request-17" },
        { scope: fresh, actor, requestId: "request-17" },
      ];
      for (const filter of filters) {
        const { status, json } = await rest("GET", `/events?${new URLSearchParams(filter as Record<string, string>)}`);
        assert.equal(status, 400);
        assert.match(String(json?.message), /^Invalid argument: startTime: startTime is required/);
      }
    });

    it("name the field and the rule of a bad request", async () => {
      const rest = await reader(LIST);
      const cases: readonly (readonly [string, RegExp])[] = [
        ["subject=x", /subject: subject must be a uid/],
        [`subject=${world.foreign}`, /subject: subject must be the scope or below it/],
        ["actor=x", /actor: actor must be a uid/],
        ["orderBy=type", /orderBy: orderBy must be/],
        ["pageSize=-1", /pageSize: pageSize must not be negative/],
        ["pageToken=x", /pageToken: pageToken is not one/],
        ["startTime=1960-01-01T00:00:00Z", /startTime: startTime must not be before 1970/],
        [`type=${"x".repeat(300)}`, /type: type must be at most 256 characters/],
      ];
      for (const [query, message] of cases) {
        const { status, json } = await rest("GET", `/events?scope=${fresh}&${query}`);
        assert.equal(status, 400, query);
        assert.match(String(json?.message), message);
      }
      assert.equal((await rest("GET", "/events")).status, 400);
    });

    it("have an id by which one is read, and a number once they are sealed", async () => {
      const rest = await reader(LIST);
      const find = async () =>
        (await listAll(rest, { scope: fresh, requestId: "request-5", ...window }))[0] as ShownEvent;
      const first = await find();
      assert.match(first.id, /^[0-9a-f]{32}$/);
      let event = first;
      for (let i = 0; i < 100 && !event.sealed; i++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        event = await find();
      }
      assert.equal(event.sealed, true);
      assert.ok(Number(event.sequence) > 0);
      assert.equal(event.id, first.id);
      assert.deepEqual((await rest("GET", `/events/${event.id}`)).json, event);
    });

    it("show address and token to those alone who may create role bindings at the subject", async () => {
      const hidden = await listAll(await reader(LIST), { scope: fresh, ...window });
      assert.ok(hidden.every(({ remoteAddress, tokenId }) => remoteAddress === "" && tokenId === ""));
      const all = await listAll(await reader(LIST_AND_CREATE), { scope: fresh, ...window });
      assert.ok(all.every(({ remoteAddress, tokenId }) => remoteAddress === "192.0.2.7" && tokenId === "token-1"));
      const person = await world.caller(LIST, fresh);
      const roleUid = await world.role(["role_bindings.create"], fresh);
      await world.write((tx) =>
        tx.table(roleBindingKind).insert({
          uid: randomIds.newUid(group),
          groupUid: group,
          identityUid: person.uid,
          roleUid,
          automatic: false,
          accepted: false,
          managedByUid: null,
          endTimeMs: null,
          pending: false,
          createTimeMs: 1,
          updateTimeMs: 1,
        }),
      );
      const rest = world.audit(person.token);
      for (const event of await listAll(rest, { scope: fresh, ...window })) {
        const shows = event.subjectUid.startsWith(group);
        assert.equal(event.remoteAddress, shows ? "192.0.2.7" : "", event.subjectUid);
        assert.deepEqual((await rest("GET", `/events/${event.id}`)).json, event);
      }
    });

    it("without a subject are for readers of the organisation", async () => {
      const [event] = await listAll(await reader(LIST), { scope: fresh, requestId: "request-59", ...window });
      assert.equal(event?.subjectUid, "");
      const path = `/events/${event?.id}`;
      assert.equal((await (await reader(LIST))("GET", path)).status, 200);
      assert.equal((await (await reader(LIST, group))("GET", path)).status, 404);
    });

    it("of a change have its request id", async () => {
      const { rest, token } = await world.caller(["groups.create", ...LIST], fresh);
      const startTime = new Date(Date.now() - 60_000).toISOString();
      const made = await rest("POST", `/groups/${fresh}`, { name: "made" });
      assert.equal(made.status, 200, made.text);
      const requestId = made.headers.get("x-request-id") ?? "";
      const [event, ...others] = await listAll(world.audit(token), { scope: fresh, requestId, startTime });
      assert.equal(others.length, 0);
      assert.equal(event?.subjectUid, made.json?.uid);
      assert.equal(event?.type, "dev.chainguard.api.iam.group.created.v1");
    });

    it("that match rarely are read in chunks, each of which ends soon", async () => {
      const { group: root } = await world.harness.organisation("long");
      // More than is read for one page.
      await world.write(async (tx) => {
        for (let i = 0; i < chooseScale(25_000, 12_000); i++) {
          await tx.audit.append({
            ...{ rootUid: root, timeMs: 1_700_000_000_000 + i, type: "a", method: "m", subjectUid: root },
            ...{ actorUid: i === 3 ? actor : "", tokenId: "", requestId: `long-${i}`, remoteAddress: "" },
          });
        }
      });
      const rest = await reader(LIST, root);
      const query = new URLSearchParams({ scope: root, type: "a", actor, startTime: timeAt(0) });
      const found = await rest("GET", `/events?${query}`);
      assert.equal((found.json?.events as readonly unknown[] | undefined)?.length, 1);
      // No index leads to this one: the type is that of all rows, and the request is that of none.
      query.delete("actor");
      query.set("scope", await world.group(root));
      const reading = world.audit((await world.caller(LIST, root)).token);
      const short = await reading("GET", `/events?${query}`);
      assert.deepEqual(short.json?.events, []);
      assert.notEqual(short.json?.nextPageToken, "");
      assert.deepEqual(await listAll(reading, Object.fromEntries(query)), []);
    });
  });
}
