// Every type of event: written in version 1, and the same in both versions.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { clone, create, equals, toJson } from "@bufbuild/protobuf";
import {
  Advisories,
  AdvisoryEventSchema,
  type EventTypeFilter,
  AdvisoryEvent_FalsePositiveDetermination_Type as FalsePositive,
  ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  AdvisoriesService,
  AdvisoryEventSchema as EventV2Schema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
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
        // Version 2 has no type for a component that has moved.
        assert.deepEqual(shown, type.case === "componentLocationChanged" ? undefined : json);
        assert.deepEqual(
          [rest.uid, rest.author, rest.reviewState, rest.findings, rest.issue, seen.createTime],
          [made.id, made.author, "REVIEW_STATE_PENDING", findings.toString("base64"), "gh-1", made.timestamp],
        );

        const uidp = { ids: [advisory] };
        const [of, others] = [[filter], [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((one) => one !== filter)];
        assert.equal((await wire.call(v1.list, { uidp, eventTypes: of })).items.length, 1);
        assert.equal((await wire.call(v1.list, { uidp, eventTypes: others })).items.length, 0);
        if (type.case !== "componentLocationChanged") {
          const { advisories } = await wire.call(v2.listAdvisories, { uidp, eventTypes: of as number[] });
          assert.equal(advisories.length, 1);
        }
        assert.equal((await wire.call(v1.list, { uidp, latestEventType: filter })).items.length, 0);
        await wire.call(v1.updateAdvisoryEvent, { ...made, status: APPROVED }, world.approver);
        assert.equal((await wire.call(v1.list, { uidp, latestEventType: filter })).items.length, 1);
        assert.equal((await wire.call(v1.list, { uidp, eventStatuses: [APPROVED] })).items.length, 1);
      }
    });
  }
});
