// Advisories written in version 1 and read in both versions, over REST and gRPC.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Advisories, ReviewStatus } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { AdvisoriesService, EventTypeFilter } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { osvRecord } from "../osv-kit.js";
import {
  type AdvisoryInit,
  type AdvisoryV1World,
  artifact,
  pending,
  startAdvisoryV1World,
} from "./advisory-v1-world.js";

let world: AdvisoryV1World;
before(async () => {
  world = await startAdvisoryV1World();
});
after(() => world.stop());

const v1 = Advisories.method;
const v2 = AdvisoriesService.method;
const component = { componentName: "libcurl", componentLocation: "/usr/lib", componentType: "c" };
/** What nobody can claim for others. */
const people = { author: "mallory@example.org", reviewer: "mallory@example.org" };
const only = (id: string) => ({ uidp: { ids: [id] } });

for (const index of [0, 1]) {
  const wire = () => world.wires[index]?.wire ?? assert.fail();
  describe(index === 0 ? "over REST an advisory" : "over gRPC an advisory", () => {
    it("that version 1 creates is in version 2, and found there", async () => {
      const sent = { ...artifact, ...component, aliases: ["CVE-1", `GHSA-${index}`], legacyAdvisoryID: `OLD-${index}` };
      const made = await wire().call(v1.create, {
        parentId: world.child,
        advisory: { ...sent, id: "x", author: "somebody@else", events: [pending, { ...pending, ...people }] },
      });
      const refused = await wire().expectError(v1.create, {
        parentId: world.child,
        advisory: { ...artifact, advisoryId: "CGA-mine" },
      });
      assert.equal(refused, "Invalid argument: advisoryId: advisoryId is set by the service alone");
      assert.deepEqual(
        made.events.map(({ author, reviewer }) => [author, reviewer]),
        [
          ["author@example.org", ""],
          ["author@example.org", ""],
        ],
        "who wrote an event is the caller, whatever the request says",
      );
      assert.match(made.id, new RegExp(`^${world.child}/[0-9a-f]{16}$`));
      assert.match(made.advisoryId, /^CGA(-[23456789cfghjmpqrvwx]{4}){3}$/);
      assert.equal(made.author, "author@example.org");
      assert.deepEqual(
        made.events.map(({ id }) => id.slice(0, -17)),
        [made.id, made.id],
      );
      for (const [field, value] of Object.entries(sent)) assert.deepEqual(made[field as keyof typeof sent], value);

      const seen = await wire().call(v2.getAdvisory, { uid: made.id });
      const { legacyAdvisoryID, ...same } = sent;
      for (const [field, value] of Object.entries(same)) assert.deepEqual(seen[field as keyof typeof same], value);
      assert.equal(seen.legacyAdvisoryId, legacyAdvisoryID);
      assert.deepEqual([seen.advisoryId, seen.author, seen.events.length], [made.advisoryId, made.author, 2]);
      assert.deepEqual([made.createdAt, made.updatedAt], [seen.createTime, seen.updateTime]);
      assert.equal(made.deletedAt, undefined);

      const queries = [
        { aliases: [`GHSA-${index}`] },
        { legacyAdvisoryIds: [`OLD-${index}`] },
        { query: `ghsa-${index}` },
      ];
      for (const query of queries) {
        const { advisories } = await wire().call(v2.listAdvisories, query);
        assert.deepEqual(
          advisories.map(({ uid }) => uid),
          [made.id],
        );
      }
    });

    it("that was imported is in version 1 as in version 2", async () => {
      await world.importRecords(osvRecord(`SEEN-${index}`));
      const { items } = await wire().call(v1.list, { legacyAdvisoryIds: [`SEEN-${index}`] });
      const { advisories } = await wire().call(v2.listAdvisories, { legacyAdvisoryIds: [`SEEN-${index}`] });
      const [[one], [two]] = [items, advisories];
      assert.ok(one && two && items.length === 1);
      const { uid, createTime, updateTime, legacyAdvisoryId, artifactName, aliases, author } = two;
      assert.deepEqual(
        [one.id, one.createdAt, one.updatedAt, one.legacyAdvisoryID, one.artifactName, one.aliases, one.author],
        [uid, createTime, updateTime, legacyAdvisoryId, artifactName, aliases, author],
      );
      assert.deepEqual(
        one.events.map((event) => [event.id, event.timestamp, event.type.case, event.status as number]),
        two.events.map((event) => [event.uid, event.createTime, event.type.case, event.reviewState as number]),
      );
      assert.deepEqual(
        one.events.map(({ type }) => type.case),
        ["detection", "fixed"],
      );
    });

    it("loses what an update leaves out, and nothing else", async () => {
      const before = await world.advisory({ ...component, aliases: ["A"], legacyAdvisoryID: "KEPT" });
      await world.event(before.id, pending);
      const update: AdvisoryInit = { ...artifact, id: before.id, artifactName: "wget", componentType: "go-module" };
      const service = "is set by the service alone";
      const forged: readonly (readonly [values: object, rule: string])[] = [
        [{ advisoryId: "CGA-x" }, `advisoryId: advisoryId ${service}`],
        [{ deletedAt: { seconds: 1n } }, `deletedAt: deletedAt ${service}: Delete withdraws an advisory`],
        [{ legacyAdvisoryID: "NEW" }, "legacyAdvisoryID: legacyAdvisoryID cannot change"],
        [
          { events: [pending] },
          "events[0]: events[0] cannot change: CreateAdvisoryEvent and UpdateAdvisoryEvent change events",
        ],
      ];
      for (const [values, rule] of forged) {
        assert.equal(await wire().expectError(v1.update, { ...update, ...values }), `Invalid argument: ${rule}`);
      }
      const [stored] = (await wire().call(v1.list, only(before.id))).items;
      assert.equal(stored?.artifactName, before.artifactName, "nothing is stored");
      assert.ok(stored);
      assert.deepEqual(await wire().call(v1.update, stored), stored, "what was read is accepted");
      const events = stored.events.map((event) => ({ ...event, ...people }));
      assert.deepEqual(await wire().call(v1.update, { ...stored, author: "x", events }), stored, "people are ignored");
      const status = ReviewStatus.REJECTED;
      await wire().expectError(v1.update, { ...stored, events: events.map((event) => ({ ...event, status })) });
      const after = await wire().call(v1.update, update);
      const { artifactName, componentName, componentLocation, componentType, aliases } = after;
      assert.deepEqual(
        [artifactName, componentName, componentLocation, componentType, aliases],
        ["wget", undefined, undefined, "go-module", []],
      );
      const pickKept = ({ id, advisoryId, author, createdAt, legacyAdvisoryID, deletedAt }: typeof before) => [
        id,
        advisoryId,
        author,
        createdAt,
        legacyAdvisoryID,
        deletedAt,
      ];
      assert.deepEqual(pickKept(after), pickKept(before));
      assert.equal(after.events.length, 1);
      const seen = await wire().call(v2.getAdvisory, { uid: before.id });
      assert.deepEqual([seen.artifactName, seen.componentName, seen.events.length], ["wget", "", 1]);
      assert.deepEqual((await wire().call(v2.listAdvisories, { ...only(before.id), query: "libcurl" })).advisories, []);
      assert.deepEqual(await wire().call(v1.update, update), after, "again, nothing changes");
    });

    it("that is deleted stays, withdrawn once", async () => {
      const { id } = await world.advisory({ aliases: ["GONE"] });
      await wire().call(v1.delete, { id }, world.admin);
      const { deleteTime, updateTime, aliases } = await wire().call(v2.getAdvisory, { uid: id });
      assert.ok(deleteTime && Math.abs(timestampMs(deleteTime) - Date.now()) < 60_000);
      assert.deepEqual([updateTime, aliases], [deleteTime, ["GONE"]]);
      world.harness.skewMs += 1_000;
      await wire().call(v1.delete, { id }, world.admin);
      assert.deepEqual((await wire().call(v2.getAdvisory, { uid: id })).deleteTime, deleteTime);
      const { deletedAt, artifactName } = await wire().call(v1.update, { ...artifact, id, artifactName: "late" });
      assert.deepEqual([deletedAt, artifactName], [deleteTime, "late"]);
      assert.deepEqual((await wire().call(v1.list, { id })).items[0]?.deletedAt, deleteTime);
    });

    it("is rejected with the wrong field", async () => {
      const { id } = await world.advisory();
      const many = Array.from({ length: 1_001 }, (_, i) => `A-${i}`);
      const cases: readonly [AdvisoryInit, string][] = [
        [{ artifactType: "" }, "artifactType: artifactType is required"],
        [{ artifactName: "" }, "artifactName: artifactName is required"],
        [{ artifactArchitecture: "" }, "artifactArchitecture: artifactArchitecture is required"],
        [{ artifactName: "a\u0001b" }, "artifactName: artifactName must be one line of at most 512 characters"],
        [{ componentName: "x".repeat(513) }, "componentName: componentName must be one line of at most 512 characters"],
        [{ componentLocation: "a\nb" }, "componentLocation: componentLocation must be one line"],
        [{ componentType: "\u2028" }, "componentType: componentType must be one line"],
        [{ aliases: ["A", ""] }, "aliases: aliases must each be one line"],
        [{ aliases: many }, "aliases: aliases must be at most 1000"],
        [{ aliases: Array(65).fill("A".repeat(512)) }, "aliases: aliases must be at most 32768 characters together"],
      ];
      for (const [values, text] of cases) {
        const advisory = { ...artifact, componentName: "x", ...values };
        for (const error of [
          await wire().expectError(v1.create, { parentId: world.ours, advisory }),
          await wire().expectError(v1.update, { ...advisory, id }),
        ])
          assert.ok(error.startsWith(`Invalid argument: ${text}`), error);
      }
      const atCreation: readonly [AdvisoryInit, string][] = [
        [{ legacyAdvisoryID: "\u0007" }, "legacyAdvisoryID: legacyAdvisoryID must be one line"],
        [{ events: [pending, { ...pending, status: 0 }] }, "events[1].status: events[1].status is required"],
      ];
      for (const [values, text] of atCreation) {
        const error = await wire().expectError(v1.create, {
          parentId: world.ours,
          advisory: { ...artifact, ...values },
        });
        assert.ok(error.startsWith(`Invalid argument: ${text}`), error);
      }
      assert.match(
        await wire().expectError(v1.create, { parentId: world.ours }),
        /artifactName is required; .*Type is/,
      );
      assert.match(await wire().expectError(v1.create, { advisory: artifact }), /parentId is required/);
    });

    it("that is missing is not found", async () => {
      const missing = `${world.child}/0123456789abcdef`;
      const noGroup = `${world.ours}/0123456789abcdef`;
      for (const error of [
        await wire().expectError(v1.update, { ...artifact, id: missing }),
        await wire().expectError(v1.delete, { id: missing }, world.admin),
        await wire().expectError(v1.createAdvisoryEvent, { parentId: missing, advisoryEvent: pending }),
        await wire().expectError(v1.listAdvisoryEvents, { parentId: missing }),
      ])
        assert.equal(error, `Not found: advisory: there is no advisory ${missing}`);
      const error = await wire().expectError(v1.create, { parentId: noGroup, advisory: artifact });
      assert.equal(error, `Not found: group: there is no group ${noGroup}`);
      assert.deepEqual((await wire().call(v1.list, { id: missing })).items, []);
    });
  });
}

describe("what an import and callers write of one advisory", () => {
  const one = async (id: string) => {
    const { advisories } = await world.wire.call(v2.listAdvisories, { legacyAdvisoryIds: [id] });
    return advisories[0] ?? assert.fail();
  };
  const buildApproved = (at?: bigint) => ({
    status: ReviewStatus.APPROVED,
    type: { case: "fixNotPlanned" as const, value: { note: "no" } },
    ...(at !== undefined && { timestamp: { seconds: at } }),
  });

  it("lasts until the record changes after that", async () => {
    const record = osvRecord("EDIT-1");
    await world.importRecords(record);
    const { uid } = await one("EDIT-1");
    // Imported advisories have no architecture, and need none until a caller sets one.
    const update = { id: uid, artifactType: "library", artifactName: "django", aliases: ["MINE"] };
    const { updatedAt, artifactArchitecture } = await world.wire.call(v1.update, update);
    assert.equal(artifactArchitecture, "");
    assert.ok(updatedAt && Math.abs(timestampMs(updatedAt) - Date.now()) < 60_000);
    const error = await world.wire.expectError(v1.update, { ...update, artifactType: "" });
    assert.match(error, /^Invalid argument: artifactType: artifactType is required$/);

    assert.equal((await world.importRecords(record)).unchanged, 1);
    const older = osvRecord("EDIT-1", { modified: "2024-03-01T00:00:00Z", aliases: ["THEIRS"] });
    assert.equal((await world.importRecords(older)).newer, 1);
    assert.deepEqual((await one("EDIT-1")).aliases, ["MINE"]);
    const modified = new Date(Date.now() + 86_400_000).toISOString();
    const newer = osvRecord("EDIT-1", { modified, aliases: ["THEIRS"] });
    assert.equal((await world.importRecords(newer)).updated, 1);
    const after = await one("EDIT-1");
    assert.deepEqual([after.uid, after.aliases], [uid, ["EDIT-1", "THEIRS"]]);
  });

  it("keeps the events of people, and the type of the latest right", async () => {
    await world.importRecords(osvRecord("EVENT-1"));
    const { uid } = await one("EVENT-1");
    const countFound = async (latestEventType: EventTypeFilter) =>
      (await world.wire.call(v2.listAdvisories, { ...only(uid), latestEventType })).advisories.length;
    await world.event(uid, buildApproved(1n), world.approver);
    assert.equal(await countFound(EventTypeFilter.FIXED), 1, "an event of long ago is not the latest");
    await world.event(uid, buildApproved(), world.approver);
    assert.equal(await countFound(EventTypeFilter.FIX_NOT_PLANNED), 1);
    const modified = new Date(Date.now() + 86_400_000).toISOString();
    assert.equal((await world.importRecords(osvRecord("EVENT-1", { modified, affected: [] }))).withdrawn, 1);
    assert.equal((await one("EVENT-1")).events.length, 4);
    await world.importRecords(osvRecord("EVENT-1", { modified: new Date(Date.now() + 90_000_000).toISOString() }));
    const { events, deleteTime } = await one("EVENT-1");
    assert.equal(deleteTime, undefined);
    assert.deepEqual(
      events.map(({ type }) => type.case),
      ["fixNotPlanned", "detection", "fixNotPlanned", "fixed"],
    );
    assert.equal(await countFound(EventTypeFilter.FIXED), 1);
  });

  it("of a withdrawn one, an import of the same record leaves it withdrawn", async () => {
    const record = osvRecord("GONE-1");
    await world.importRecords(record);
    const { uid } = await one("GONE-1");
    await world.wire.call(v1.delete, { id: uid }, world.admin);
    assert.equal((await world.importRecords(record)).unchanged, 1);
    assert.equal((await world.importRecords(osvRecord("GONE-1", { modified: "2024-05-01T00:00:00Z" }))).newer, 1);
    assert.ok((await one("GONE-1")).deleteTime);
  });
});
