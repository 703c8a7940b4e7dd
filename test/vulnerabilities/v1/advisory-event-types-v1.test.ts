// Every type of event: written in version 1, and the same in both versions.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { clone, create, equals, toJson } from "@bufbuild/protobuf";
import {
  Advisories,
  AdvisoryEventSchema,
  type EventTypeFilter,
  AdvisoryEvent_FalsePositiveDetermination_Type as FalsePositive,
  AdvisoryEvent_ComponentLocationChangedSchema as MovedSchema,
  ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  AdvisoriesService,
  AdvisoryEventSchema as EventV2Schema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { advisoryKind } from "../../../src/store/advisories/advisories.js";
import type { AdvisoryEventRow } from "../../../src/store/tables/advisories.js";
import { putEvent } from "../../../src/vulnerabilities/advisories/advisory-operations.js";
import {
  type AdvisoryV1World,
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
const { PENDING, APPROVED } = ReviewStatus;

const { subpackageName: subpackage, componentName, ...sameScan } = scan;
const nvd = { cpeSearched: "cpe:a", cpeFound: "cpe:b" };
const fixed = {
  fixedVersion: "8.2-r0",
  note: "two\nlines",
  scannerVersion: "0.71",
  grypeDbBuilt: "2024",
  grypeDbChecksum: "sha256:2",
};
const note = { note: "because" };

// Each with its JSON in version 2, where that differs, and the filter that finds it.
interface TypeCase {
  readonly type: NonNullable<EventInit["type"]>;
  readonly json?: object;
  readonly filter: EventTypeFilter;
}
const types: readonly TypeCase[] = [
  { type: { case: "detection", value: { type: { case: "nvdapi", value: nvd } } }, json: { nvdapi: nvd }, filter: 1 },
  { type: { case: "detection", value: { type: { case: "manual", value: {} } } }, json: { manual: {} }, filter: 1 },
  {
    type: { case: "detection", value: { type: { case: "scanv1", value: scan } } },
    json: { scanv1: { ...sameScan, subpackage, component: componentName } },
    filter: 1,
  },
  { type: { case: "truePositiveDetermination", value: note }, filter: 2 },
  { type: { case: "fixed", value: fixed }, filter: 3 },
  {
    type: {
      case: "falsePositiveDetermination",
      value: { ...note, type: FalsePositive.VULNERABLE_CODE_NOT_IN_EXECUTION_PATH },
    },
    json: { ...note, type: "TYPE_VULNERABLE_CODE_NOT_IN_EXECUTION_PATH" },
    filter: 4,
  },
  { type: { case: "analysisNotPlanned", value: note }, filter: 5 },
  { type: { case: "fixNotPlanned", value: note }, filter: 6 },
  { type: { case: "pendingUpstreamFix", value: note }, filter: 7 },
  { type: { case: "patched", value: { ...note, patchedVersions: ["1", "2"] } }, filter: 8 },
  { type: { case: "componentLocationChanged", value: moved }, filter: 9 },
];

const findings = Buffer.from('{"found":["é"]}');
describe("an event", () => {
  for (const [i, { type, json = type.value, filter }] of types.entries()) {
    it(`of type ${type.case} (${i}) is the same in both versions, and found by its type`, async () => {
      for (const { wire } of world.wires) {
        const { id: advisory } = await world.advisory();
        const sent: EventInit = { ...pending, type, findings, issue: "gh-1" };
        const made = await wire.call(v1.createAdvisoryEvent, { parentId: advisory, advisoryEvent: sent });
        assert.match(made.id, new RegExp(`^${advisory}/[0-9a-f]{16}$`));
        const content = clone(AdvisoryEventSchema, made);
        assert.deepEqual([content.author, content.reviewer, content.status], ["author@example.org", "", PENDING]);
        for (const field of ["timestamp", "createdAt", "updatedAt"] as const) delete content[field];
        const expected = create(AdvisoryEventSchema, { ...sent, id: made.id, author: "author@example.org" });
        assert.ok(equals(AdvisoryEventSchema, content, expected));

        const listed = await wire.call(v1.listAdvisoryEvents, { parentId: advisory });
        assert.deepEqual([listed.parentId, listed.items], [advisory, [made]]);
        assert.deepEqual((await wire.call(v1.listAdvisoryEvents, { parentId: made.id })).items, [made]);
        const [seen] = (await wire.call(v2.getAdvisory, { uid: advisory })).events;
        assert.ok(seen);
        const { [type.case ?? ""]: shown, ...rest } = toJson(EventV2Schema, seen) as Record<string, unknown>;
        assert.deepEqual(shown, json);
        assert.deepEqual(
          [rest.uid, rest.author, rest.reviewState, rest.findings, rest.issue, seen.createTime],
          [made.id, made.author, "REVIEW_STATE_PENDING", findings.toString("base64"), "gh-1", made.timestamp],
        );

        const uidp = { ids: [advisory] };
        const [of, others] = [[filter], [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((one) => one !== filter)];
        assert.equal((await wire.call(v1.list, { uidp, eventTypes: of })).items.length, 1);
        assert.equal((await wire.call(v1.list, { uidp, eventTypes: others })).items.length, 0);
        const listV2 = async (more: object) =>
          (await wire.call(v2.listAdvisories, { uidp, ...more })).advisories.length;
        assert.deepEqual([await listV2({ eventTypes: of }), await listV2({ eventTypes: others })], [1, 0]);
        assert.equal(await listV2({ latestEventType: filter }), 0);
        assert.equal((await wire.call(v1.list, { uidp, latestEventType: filter })).items.length, 0);
        await wire.call(v1.updateAdvisoryEvent, { ...made, status: APPROVED }, world.approver);
        assert.equal((await wire.call(v1.list, { uidp, latestEventType: filter })).items.length, 1);
        assert.equal(await listV2({ latestEventType: filter }), 1);
        assert.equal((await wire.call(v1.list, { uidp, eventStatuses: [APPROVED] })).items.length, 1);
      }
    });
  }

  // Before version 2 had the type, it was stored beside the others.
  it("that an older version has stored for the move of a component is read in both versions, and changes", async () => {
    for (const { wire } of world.wires) {
      const { id: advisoryUid } = await world.advisory();
      const uid = randomIds.newUid(advisoryUid);
      const row: AdvisoryEventRow = {
        ...{ uid, advisoryUid, type: 9, author: "author@example.org", reviewer: "", reviewState: 1 },
        data: { findings: "eyJhIjoxfQ==", issue: "gh-1", componentLocationChanged: moved },
        ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
      };
      await world.harness.app.installation.store.write((tx) => putEvent(tx, row));
      const [event] = (await wire.call(v1.listAdvisoryEvents, { parentId: advisoryUid })).items;
      assert.ok(event);
      const shown = toJson(AdvisoryEventSchema, event) as Record<string, unknown>;
      assert.deepEqual([shown.componentLocationChanged, shown.issue], [moved, "gh-1"]);
      const [seen] = (await wire.call(v2.getAdvisory, { uid: advisoryUid })).events;
      assert.ok(seen);
      const inV2 = toJson(EventV2Schema, seen) as Record<string, unknown>;
      assert.deepEqual([inV2.componentLocationChanged, inV2.issue], [moved, "gh-1"]);
      const uidp = { ids: [advisoryUid] };
      for (const [eventTypes, count] of [
        [[9], 1],
        [[1, 2, 3, 4, 5, 6, 7, 8], 0],
      ] as const) {
        const request = { uidp, eventTypes: [...eventTypes] };
        assert.equal((await wire.call(v2.listAdvisories, request)).advisories.length, count);
        assert.equal((await wire.call(v1.list, request)).items.length, count);
      }
      assert.deepEqual(await wire.call(v1.updateAdvisoryEvent, event), event, "nothing changes");
      const further = { ...moved, newLocation: "/further" };
      const value = create(MovedSchema, further);
      await wire.call(v1.updateAdvisoryEvent, { ...event, type: { case: "componentLocationChanged", value } });
      const stored = await world.harness.app.installation.store.read((tx) =>
        tx.table(advisoryKind).listEvents([advisoryUid]),
      );
      assert.deepEqual(stored[0]?.data, { ...row.data, componentLocationChanged: further }, "in the same form");
    }
  });
});
