// Lists of advisories in version 1: pages, orders, and the filters of version 2 by their other names.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  Advisories,
  type AdvisoryFilterSchema,
  EventTypeFilter,
  OrderBy,
  ReviewStatus,
} from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import {
  AdvisoriesService,
  type ListAdvisoriesRequestSchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { type AdvisoryV1World, pending, startAdvisoryV1World } from "./advisory-v1-world.js";

type Filter = MessageInitShape<typeof AdvisoryFilterSchema>;
type FilterV2 = MessageInitShape<typeof ListAdvisoriesRequestSchema>;

const COUNT = 12;
const { list } = Advisories.method;
const { listAdvisories } = AdvisoriesService.method;
let world: AdvisoryV1World;
/** In the order of their creation, which those of the child group come after. */
const made: { readonly id: string; readonly advisoryId: string }[] = [];

before(async () => {
  world = await startAdvisoryV1World();
  for (let i = 0; i < COUNT; i++) {
    world.harness.skewMs += 10;
    const values = {
      artifactType: `type-${i % 2}`,
      artifactName: `name-${i % 3}`,
      artifactArchitecture: `arch-${i % 4}`,
      componentName: `component-${i % 3}`,
      componentType: `sort-${i % 2}`,
      componentLocation: `/place/${i % 4}`,
      aliases: [`CVE-${i}`, "CVE-ALL"],
      legacyAdvisoryID: `OLD-${i}`,
    };
    const { id, advisoryId } = await world.advisory(values, i < 8 ? world.ours : world.child);
    made.push({ id, advisoryId });
    if (i % 3 === 0) await world.event(id, pending);
    if (i % 3 === 1) {
      const type = { case: "fixed", value: { fixedVersion: "1" } } as const;
      await world.event(id, { status: ReviewStatus.APPROVED, type }, world.approver);
    }
  }
});
after(() => world.stop());

const indices = (found: readonly string[]) => found.map((id) => made.findIndex((one) => one.id === id));
const filterIndexes = (isRequested: (i: number) => boolean) => [...Array(COUNT).keys()].filter(isRequested);

describe("a list", () => {
  const uidOrder = () => indices(made.map(({ id }) => id).sort());
  const ascending = [...Array(COUNT).keys()];
  const orders: readonly { order: OrderBy; listExpected: () => readonly number[] }[] = [
    { order: OrderBy.ORDER_BY_UNSPECIFIED, listExpected: uidOrder },
    { order: OrderBy.ID_ASC, listExpected: uidOrder },
    { order: OrderBy.ID_DESC, listExpected: () => uidOrder().reverse() },
    { order: OrderBy.CREATED_AT_ASC, listExpected: () => ascending },
    { order: OrderBy.CREATED_AT_DESC, listExpected: () => ascending.toReversed() },
    { order: OrderBy.UPDATED_AT_ASC, listExpected: () => ascending },
    { order: OrderBy.UPDATED_AT_DESC, listExpected: () => ascending.toReversed() },
  ];
  for (const { order, listExpected } of orders) {
    it(`in the order ${OrderBy[order]} comes by pages`, async () => {
      for (const { wire } of world.wires) {
        const found: string[] = [];
        let pageToken = "";
        do {
          const page = await wire.call(list, { orderBy: order, pageSize: 5n, pageToken });
          assert.equal(page.totalCount, BigInt(COUNT));
          found.push(...page.items.map(({ id }) => id));
          pageToken = page.nextPageToken;
          assert.ok(pageToken === "" || page.items.length === 5);
        } while (pageToken !== "");
        assert.deepEqual(indices(found), listExpected());
      }
    });
  }

  // The same question in both versions, and its response.
  const approver = "approver@example.org";
  const cases: readonly { v1: () => Filter; v2: () => FilterV2; finds: (i: number) => boolean }[] = [
    { v1: () => ({ artifactType: ["type-1"] }), v2: () => ({ artifactTypes: ["type-1"] }), finds: (i) => i % 2 === 1 },
    {
      v1: () => ({ artifactName: ["name-0", "name-2"] }),
      v2: () => ({ artifactNames: ["name-0", "name-2"] }),
      finds: (i) => i % 3 !== 1,
    },
    {
      v1: () => ({ artifactArchitecture: ["arch-2"] }),
      v2: () => ({ artifactArchitectures: ["arch-2"] }),
      finds: (i) => i % 4 === 2,
    },
    {
      v1: () => ({ componentName: ["component-1"] }),
      v2: () => ({ componentNames: ["component-1"] }),
      finds: (i) => i % 3 === 1,
    },
    {
      v1: () => ({ componentType: ["sort-0"] }),
      v2: () => ({ componentTypes: ["sort-0"] }),
      finds: (i) => i % 2 === 0,
    },
    {
      v1: () => ({ componentLocation: ["/place/3"] }),
      v2: () => ({ componentLocations: ["/place/3"] }),
      finds: (i) => i % 4 === 3,
    },
    { v1: () => ({ aliases: ["CVE-5"] }), v2: () => ({ aliases: ["CVE-5"] }), finds: (i) => i === 5 },
    { v1: () => ({ origin: "name-1" }), v2: () => ({ origin: "name-1" }), finds: (i) => i % 3 === 1 },
    {
      v1: () => ({ advisoryIds: [made[4]?.advisoryId ?? ""] }),
      v2: () => ({ advisoryIds: [made[4]?.advisoryId ?? ""] }),
      finds: (i) => i === 4,
    },
    {
      v1: () => ({ legacyAdvisoryIds: ["OLD-7", "OLD-8"] }),
      v2: () => ({ legacyAdvisoryIds: ["OLD-7", "OLD-8"] }),
      finds: (i) => i === 7 || i === 8,
    },
    {
      v1: () => ({ uidp: { childrenOf: world.child } }),
      v2: () => ({ uidp: { childrenOf: world.child } }),
      finds: (i) => i >= 8,
    },
    {
      v1: () => ({ id: made[2]?.id ?? "" }),
      v2: () => ({ uidp: { ids: [made[2]?.id ?? ""] } }),
      finds: (i) => i === 2,
    },
    { v1: () => ({ eventStatuses: [1] }), v2: () => ({ eventReviewStates: [1] }), finds: (i) => i % 3 === 0 },
    {
      v1: () => ({ eventAuthor: ["author@example.org"] }),
      v2: () => ({ eventAuthors: ["author@example.org"] }),
      finds: (i) => i % 3 === 0,
    },
    {
      v1: () => ({ excludeEventAuthor: [approver] }),
      v2: () => ({ excludeEventAuthors: [approver] }),
      finds: (i) => i % 3 !== 1,
    },
    {
      v1: () => ({ eventReviewer: [approver] }),
      v2: () => ({ eventReviewers: [approver] }),
      finds: (i) => i % 3 === 1,
    },
    {
      v1: () => ({ eventTypes: [EventTypeFilter.DETECTION] }),
      v2: () => ({ eventTypes: [1] }),
      finds: (i) => i % 3 === 0,
    },
    {
      v1: () => ({ latestEventType: EventTypeFilter.FIXED }),
      v2: () => ({ latestEventType: 3 }),
      finds: (i) => i % 3 === 1,
    },
    {
      v1: () => ({ artifactType: ["type-0"], latestEventType: EventTypeFilter.FIXED, aliases: ["CVE-ALL"] }),
      v2: () => ({ artifactTypes: ["type-0"], latestEventType: 3, aliases: ["CVE-ALL"] }),
      finds: (i) => i % 6 === 4,
    },
  ];
  it("finds by every filter what version 2 finds", async () => {
    for (const { wire } of world.wires) {
      for (const { v1, v2, finds } of cases) {
        const { items, totalCount } = await wire.call(list, { ...v1(), orderBy: OrderBy.CREATED_AT_ASC });
        assert.deepEqual(indices(items.map(({ id }) => id)), filterIndexes(finds), JSON.stringify(v1()));
        assert.equal(totalCount, BigInt(items.length));
        const { advisories } = await wire.call(listAdvisories, { ...v2(), orderBy: "created_at" });
        assert.deepEqual(
          advisories.map(({ uid }) => uid),
          items.map(({ id }) => id),
          JSON.stringify(v2()),
        );
      }
    }
  });

  it("names the group of all its rows", async () => {
    for (const { wire } of world.wires) {
      assert.equal((await wire.call(list, { uidp: { childrenOf: world.child } })).id, world.child);
      assert.equal((await wire.call(list, {})).id, "");
    }
  });

  it("has at most 200 advisories on a page, and none where filters exclude each other", async () => {
    const [a, b] = made;
    for (const { wire } of world.wires) {
      const { items } = await wire.call(list, { pageSize: 9_007_199_254_740_993n });
      assert.equal(items.length, COUNT);
      const both = await wire.call(list, { id: a?.id ?? "", uidp: { ids: [a?.id ?? "", b?.id ?? ""] } });
      assert.deepEqual(indices(both.items.map(({ id }) => id)), [0]);
      const none = await wire.call(list, { id: a?.id ?? "", uidp: { ids: [b?.id ?? ""] } });
      assert.deepEqual([none.items, none.totalCount], [[], 0n]);
    }
  });

  it("is rejected with the wrong field", async () => {
    const offered =
      "ORDER_BY_UNSPECIFIED, ID_ASC, ID_DESC, CREATED_AT_ASC, CREATED_AT_DESC, UPDATED_AT_ASC, UPDATED_AT_DESC";
    const order = `orderBy: orderBy must be one of ${offered}`;
    const failures: readonly [Filter, string][] = [
      [{ orderBy: OrderBy.ALIASES_ASC }, order],
      [{ orderBy: OrderBy.ALIASES_DESC }, order],
      [{ orderBy: OrderBy.DELETED_AT_ASC }, order],
      [{ orderBy: OrderBy.DELETED_AT_DESC }, order],
      [{ id: "x" }, "id: id must be an id, such as the service assigns"],
      [{ uidp: { ids: ["x"] } }, "uidp.ids: uidp.ids must be a uid"],
      [{ pageSize: -1n }, "pageSize: pageSize must not be negative"],
      [{ pageToken: "x" }, "pageToken: "],
      [{ eventAuthor: ["\u0007"] }, "eventAuthor: eventAuthor must not contain control characters"],
      [{ eventReviewer: ["a\nb"] }, "eventReviewer: eventReviewer must not contain control characters"],
      [{ componentLocation: ["\u2028"] }, "componentLocation: componentLocation must not contain control characters"],
    ];
    const many = { artifactName: Array.from({ length: 1_001 }, (_, i) => `n${i}`) };
    for (const { name, wire } of world.wires) {
      // As parameters of a URL these are too many for any server.
      const tooMany = name === "REST" ? "the headers are larger" : "artifactName: artifactName must be at most 1000";
      for (const [filter, text] of [...failures, [many, tooMany] as const]) {
        const error = await wire.expectError(list, filter);
        assert.ok(error.startsWith(`Invalid argument: ${text}`), `${error}\n${text}`);
      }
      const { nextPageToken } = await wire.call(listAdvisories, { pageSize: 1 });
      assert.match(await wire.expectError(list, { pageToken: nextPageToken }), /^Invalid argument: pageToken/);
    }
  });
});
