// Events of advisories: what version 1 writes of them, who reviews them, and
// what both versions show.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  Advisories,
  EventTypeFilter,
  type AdvisoryEvent_FalsePositiveDetermination_Type as FalsePositive,
  ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { AdvisoriesService, type ReviewState } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { parentOf } from "../../../src/kernel/uidp.js";
import { requireEventLimits } from "../../../src/vulnerabilities/advisories/advisory-rules.js";
import {
  type AdvisoryV1World,
  artifact,
  type EventInit,
  moved,
  pending,
  scan,
  startAdvisoryV1World,
} from "./advisory-v1-world.js";

let world: AdvisoryV1World;
before(async () => {
  world = await startAdvisoryV1World();
});
after(() => world.stop());

const v1 = Advisories.method;
const v2 = AdvisoriesService.method;
const { PENDING, APPROVED, REQUEST_CHANGES, REJECTED } = ReviewStatus;

const findings = Buffer.from('{"found":["x"]}');
const buildApproved = (type: NonNullable<EventInit["type"]>, values: EventInit = {}): EventInit => ({
  status: APPROVED,
  type,
  ...values,
});
const fix = (version: string, values: EventInit = {}) =>
  buildApproved({ case: "fixed", value: { fixedVersion: version } }, values);

describe("an event", () => {
  it("loses the fields that an update omits, and keeps its author and time", async () => {
    for (const { wire } of world.wires) {
      const { id: advisory } = await world.advisory();
      const timestamp = timestampFromMs(Date.UTC(2020, 0, 1));
      const made = await world.event(advisory, {
        ...pending,
        findings,
        issue: "gh-1",
        timestamp,
        author: "a",
        reviewer: "b",
      });
      assert.deepEqual([made.author, made.reviewer], ["author@example.org", ""]);
      assert.deepEqual(made.timestamp, timestamp);
      world.harness.skewMs += 1_000;
      const update: EventInit = { id: made.id, status: PENDING, type: { case: "fixNotPlanned", value: {} } };
      const people: EventInit = { author: "x", reviewer: "y" };
      assert.equal(
        await wire.expectError(v1.updateAdvisoryEvent, { ...update, ...people, timestamp: timestampFromMs(1_000) }),
        "Invalid argument: timestamp: timestamp cannot change",
      );
      const after = await wire.call(v1.updateAdvisoryEvent, { ...update, ...people, timestamp });
      assert.deepEqual([after.type.case, after.findings.length, after.issue], ["fixNotPlanned", 0, undefined]);
      assert.deepEqual([after.author, after.reviewer, after.timestamp], [made.author, "", timestamp]);
      const { updatedAt, events } = (await wire.call(v1.list, { id: advisory })).items[0] ?? assert.fail();
      assert.deepEqual([events, updatedAt], [[after], after.updatedAt]);
      assert.ok(updatedAt && made.updatedAt && timestampMs(updatedAt) > timestampMs(made.updatedAt));
      world.harness.skewMs += 1_000;
      assert.deepEqual(await wire.call(v1.updateAdvisoryEvent, update), after, "again, nothing changes");
    }
  });

  it("is reviewed by who may approve, and then is final", async () => {
    for (const { wire } of world.wires) {
      for (const status of [APPROVED, REJECTED]) {
        const { id: advisory } = await world.advisory();
        const { id } = await world.event(advisory, pending);
        const denied = `Permission denied: advisories.approve at ${parentOf(advisory)} (or it might not exist)`;
        for (const verdict of [APPROVED, REQUEST_CHANGES, REJECTED]) {
          const event = { ...pending, status: verdict };
          assert.equal(await wire.expectError(v1.updateAdvisoryEvent, { ...event, id }), denied);
          assert.equal(
            await wire.expectError(v1.createAdvisoryEvent, { parentId: advisory, advisoryEvent: event }),
            denied,
          );
        }
        const requested = { ...pending, id, status: REQUEST_CHANGES };
        const sentBack = await wire.call(v1.updateAdvisoryEvent, requested, world.approver);
        assert.equal(sentBack.reviewer, "approver@example.org");
        assert.equal(
          (await wire.call(v1.updateAdvisoryEvent, { ...requested, issue: "i" })).reviewer,
          sentBack.reviewer,
        );
        // A reviewer that the request names stays no reviewer.
        const { reviewer } = sentBack;
        assert.equal((await wire.call(v1.updateAdvisoryEvent, { ...pending, id, reviewer })).reviewer, "");
        const final = await wire.call(v1.updateAdvisoryEvent, { ...pending, id, status }, world.approver);
        assert.deepEqual([final.author, final.reviewer], ["author@example.org", "approver@example.org"]);
        for (const change of [{ status: PENDING }, { status, issue: "later" }]) {
          const error = await wire.expectError(v1.updateAdvisoryEvent, { ...pending, id, ...change }, world.admin);
          assert.match(error, /^Precondition failed: an event that was approved or rejected is final/);
        }
        assert.deepEqual(await wire.call(v1.updateAdvisoryEvent, { ...pending, id, status }), final);
        const [seen] = (await wire.call(v2.getAdvisory, { uid: advisory })).events;
        assert.deepEqual([seen?.reviewer, seen?.reviewState], [final.reviewer, status as number as ReviewState]);
      }
    }
  });

  it("counts for the latest type once it is approved, by when it happened", async () => {
    const { id } = await world.advisory();
    const latest = async (type: EventTypeFilter) =>
      (await world.wire.call(v1.list, { id, latestEventType: type })).items.length === 1;
    const at = (ms: number) => ({ timestamp: timestampFromMs(ms) });
    const made = await world.event(id, { ...fix("1"), ...at(2_000), status: PENDING });
    assert.ok(!(await latest(EventTypeFilter.FIXED)));
    await world.event(id, buildApproved({ case: "patched", value: {} }, at(1_000)), world.approver);
    assert.ok(await latest(EventTypeFilter.PATCHED));
    await world.wire.call(v1.updateAdvisoryEvent, { ...made, status: APPROVED }, world.approver);
    assert.ok(await latest(EventTypeFilter.FIXED));
    await world.event(id, buildApproved({ case: "componentLocationChanged", value: moved }, at(3_000)), world.approver);
    assert.ok(await latest(EventTypeFilter.COMPONENT_LOCATION_CHANGED));
    await world.event(id, { ...fix("2"), ...at(4_000), status: REJECTED }, world.approver);
    assert.ok(await latest(EventTypeFilter.COMPONENT_LOCATION_CHANGED));
    const { items } = await world.wire.call(v1.listAdvisoryEvents, { parentId: id });
    assert.deepEqual(
      items.map(({ timestamp, type }) => [timestamp && timestampMs(timestamp), type.case]),
      [
        [1_000, "patched"],
        [2_000, "fixed"],
        [3_000, "componentLocationChanged"],
        [4_000, "fixed"],
      ],
    );
  });

  it("is rejected with the wrong field", async () => {
    const { id: parentId } = await world.advisory();
    const { id } = await world.event(parentId, pending);
    const far = timestampFromMs(Date.now() + 86_400_000);
    const buildScan = (values: object): EventInit => ({
      type: { case: "detection", value: { type: { case: "scanv1", value: { ...scan, ...values } } } },
    });
    const withNote = (text: string): EventInit => ({ type: { case: "patched", value: { note: text } } });
    const versions = (patchedVersions: string[]): EventInit => ({
      type: { case: "patched", value: { patchedVersions } },
    });
    const cases: readonly [EventInit, string][] = [
      [{ status: ReviewStatus.UNKNOWN }, "status: status is required"],
      [{ type: { case: undefined } }, "type: type must have one of detection, fixed, "],
      [{ type: { case: "detection", value: {} } }, "detection: detection must have one of nvdapi, manual, scanv1"],
      [
        buildScan({ subpackageName: "a\nb" }),
        "detection.scanv1.subpackageName: detection.scanv1.subpackageName must be one",
      ],
      [
        buildScan({ componentName: "x".repeat(513) }),
        "detection.scanv1.componentName: detection.scanv1.componentName must",
      ],
      [withNote("x".repeat(16_385)), "patched.note: patched.note must be at most 16384 characters"],
      [withNote("\u0007"), "patched.note: patched.note must not contain control characters"],
      [versions([""]), "patched.patchedVersions: patched.patchedVersions must each be one line"],
      [versions(Array(1_001).fill("1")), "patched.patchedVersions: patched.patchedVersions must be at most 1000"],
      [
        { type: { case: "componentLocationChanged", value: { newLocation: "\u2028" } } },
        "componentLocationChanged.newLocation: componentLocationChanged.newLocation must be one line",
      ],
      [{ findings: Buffer.from("no JSON") }, "findings: findings must be JSON"],
      [{ findings: Buffer.from([0x22, 0xff, 0x22]) }, "findings: findings must be JSON"],
      [{ findings: Buffer.from(`"${"x".repeat(65_535)}"`) }, "findings: findings must be at most 65536 bytes"],
      [{ issue: "a\nb" }, "issue: issue must be one line"],
      [{ timestamp: far }, "timestamp: timestamp must be between 1970 and now"],
      [{ timestamp: timestampFromMs(-1) }, "timestamp: timestamp must be between 1970 and now"],
    ];
    for (const [values, text] of cases) {
      const advisoryEvent = { ...pending, ...values };
      for (const { wire } of world.wires) {
        for (const error of [
          await wire.expectError(v1.createAdvisoryEvent, { parentId, advisoryEvent }),
          await wire.expectError(v1.updateAdvisoryEvent, { ...advisoryEvent, id }),
        ])
          assert.ok(error.startsWith(`Invalid argument: ${text}`), `${error}\n${text}`);
      }
    }
    for (const { wire } of world.wires) {
      const none = await wire.expectError(v1.createAdvisoryEvent, { parentId });
      assert.match(none, /^Invalid argument: status: status is required; type: type must have one of/);
      const strange: EventInit = { type: { case: "falsePositiveDetermination", value: { type: 99 as FalsePositive } } };
      const event = { ...pending, ...strange, status: 9 as ReviewStatus };
      const error = await wire.expectError(v1.createAdvisoryEvent, { parentId, advisoryEvent: event });
      assert.match(error, /status must be a state of a review; .*falsePositiveDetermination\.type must be one of/);
      const missing = `${parentId}/0123456789abcdef`;
      for (const method of [v1.updateAdvisoryEvent, v1.listAdvisoryEvents]) {
        const request = method === v1.listAdvisoryEvents ? { parentId: missing } : { ...pending, id: missing };
        const text = await wire.expectError(method as typeof v1.updateAdvisoryEvent, request as EventInit);
        assert.equal(text, `Not found: advisory event: there is no advisory event ${missing}`);
      }
    }
    assert.equal((await world.wire.call(v1.listAdvisoryEvents, { parentId })).items.length, 1);
  });

  it("that is created with its advisory is reviewed in the same way, and keeps its order", async () => {
    const events = [fix("1"), pending, pending].map((event, i) => ({ ...event, issue: `${i}` }));
    const request = { parentId: world.child, advisory: { ...artifact, events } };
    for (const { wire } of world.wires) {
      assert.match(await wire.expectError(v1.create, request), /^Permission denied: advisories\.approve at /);
      const made = await wire.call(v1.create, request, world.approver);
      assert.deepEqual(
        made.events.map(({ issue, author, reviewer }) => [issue, author, reviewer]),
        ["approver@example.org", "", ""].map((reviewer, i) => [`${i}`, "approver@example.org", reviewer]),
      );
      assert.equal((await wire.call(v1.list, { id: made.id, latestEventType: 3 })).items.length, 1);
    }
  });

  it("is by the uid of who has no address", async () => {
    const { uid, token } = await world.harness.identity({ email: "", emailUnverified: "author@example.org" });
    await world.harness.bind(uid, "advisories.creator", world.ours);
    const { id } = await world.advisory();
    assert.equal((await world.event(id, pending, token)).author, uid);
  });

  it("is one of at most 1,000 of its advisory", async () => {
    const events = Array.from({ length: 1_000 }, (_, i) => ({ ...pending, issue: `${i}` }));
    const { id, events: made } = await world.advisory({ events });
    assert.deepEqual(
      made.map(({ issue }) => issue),
      events.map(({ issue }) => issue),
    );
    const error = await world.wire.expectError(v1.createAdvisoryEvent, { parentId: id, advisoryEvent: pending });
    assert.equal(error, "Resource exhausted: events: an advisory has at most 1000");
    const request = { parentId: world.ours, advisory: { ...artifact, events: [...events, pending] } };
    assert.match(
      await world.wire.expectError(v1.create, request),
      /^Invalid argument: events: events must be at most 1000/,
    );
  });

  it("has room for 262,144 characters with the others of its advisory, and for no more", () => {
    const withText = (length: number) => [{ data: "x".repeat(length - 2) as never }];
    requireEventLimits(withText(262_144));
    assert.throws(() => requireEventLimits(withText(262_145)), /have at most 262144 characters together/);
  });

  it("is limited in size, because lists show all events", async () => {
    const full = "Resource exhausted: events: those of an advisory have at most 262144 characters together";
    const large = { ...pending, findings: Buffer.from(`"${"x".repeat(60_000)}"`) };
    const several = { parentId: world.ours, advisory: { ...artifact, events: Array(4).fill(large) } };
    assert.equal(await world.wire.expectError(v1.create, several), full);
    const { id, events } = await world.advisory({ events: [large, large, large, pending] });
    assert.equal(await world.wire.expectError(v1.createAdvisoryEvent, { parentId: id, advisoryEvent: large }), full);
    const last = events.find(({ findings }) => findings.length === 0);
    const admin = world.admin;
    assert.equal(await world.wire.expectError(v1.updateAdvisoryEvent, { ...large, id: last?.id ?? "" }, admin), full);
    const first = events.find(({ findings }) => findings.length > 0);
    await world.wire.call(v1.updateAdvisoryEvent, { ...pending, id: first?.id ?? "" }, admin);
    await world.event(id, large);
  });
});
