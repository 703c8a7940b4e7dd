// Lists of advisories against the model, on any store.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ListAdvisoriesRequestSchema } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { isWithin } from "../../src/kernel/uidp.js";
import type { Store } from "../../src/store/store.js";
import { childUid } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import {
  aliases,
  changeModel,
  lets,
  type ModelAdvisory,
  names,
  people,
  randomAdvisories,
  sorts,
  storeModel,
} from "./advisory-model.js";
import { type AdvisoryWorld, advisoryWorld, child, type ListRequest, ours, sibling, theirs } from "./advisory-world.js";

const COUNT = 150;
const SEED = Number(process.env.TEST_ARBOR_SEED ?? 20_240_131);

const some = (values: readonly string[]) =>
  fc.uniqueArray(fc.constantFrom(...values, "nobody"), { minLength: 1, maxLength: 3 });
const numbers = (most: number, least = 0) =>
  fc.uniqueArray(fc.integer({ min: least, max: most }), { minLength: 1, maxLength: 2 });

// Every filter with values for it.
const filters: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  legacyAdvisoryIds: some(["OLD-1", "OLD-2"]),
  artifactNames: some(names),
  artifactTypes: some(sorts),
  artifactArchitectures: some(["x86_64", "aarch64", ""]),
  componentNames: some(names),
  componentTypes: some(sorts),
  componentLocations: some(["/usr/lib", "/usr/lib/"]),
  aliases: some([...aliases, "B-1"]),
  origin: fc.constantFrom(...names, "nobody", ""),
  eventReviewStates: numbers(5),
  eventAuthors: some(people),
  excludeEventAuthors: some(people),
  eventReviewers: some(people),
  eventTypes: numbers(9),
  latestEventType: fc.integer({ min: 0, max: 9 }),
  query: fc.oneof(
    fc.constantFrom("%", "_", "\\", "a_b", "A%B", "CVE", "cve-2024-1", "É", "é", "rl", "xb", "\\s", "'", ""),
    fc
      .tuple(fc.constantFrom(...names, ...aliases), fc.nat(4), fc.nat(4))
      .map(([text, from, size]) => text.slice(from, from + size)),
  ),
};
const orders = ["", "uid desc", "created_at", "created_at desc", "updated_at", "updated_at desc"];
const parents: readonly ListRequest["uidp"][] = [
  undefined,
  { childrenOf: ours },
  { descendantsOf: ours },
  { childrenOf: child },
];

/** Registers the tests. */
export function filterSuite(name: string, open: () => Promise<Store>, runs = chooseScale(300, 60)): void {
  describe(name, () => {
    let store: Store;
    let world: AdvisoryWorld;
    let everybody: string;
    let model: ModelAdvisory[];
    before(async () => {
      store = await open();
      world = await advisoryWorld(store);
      everybody = await world.reader(ours, theirs);
      model = randomAdvisories(COUNT, SEED);
      for (const [i, one] of model.entries()) await store.write((tx) => storeModel(tx, one, i));
      for (const one of model.slice(0, 20)) await store.write((tx) => changeModel(tx, one));
    });
    after(() => store.close());

    const filterRequested = (request: ListRequest, visible: readonly string[]) => {
      const message = create(ListAdvisoriesRequestSchema, request);
      const { childrenOf = "", descendantsOf = "", ids = [] } = message.uidp ?? {};
      return model.filter(
        (one) =>
          visible.some((top) => isWithin(one.uid, top)) &&
          (childrenOf === "" || one.groupUid === childrenOf) &&
          (descendantsOf === "" || isWithin(one.groupUid, descendantsOf)) &&
          (ids.length === 0 || ids.includes(one.uid)) &&
          lets(message, one),
      );
    };
    const sortRows = (rows: readonly ModelAdvisory[], orderBy: string) => {
      const [field, direction] = orderBy.split(" ");
      const key = (row: ModelAdvisory) =>
        field === "created_at" ? row.createTimeMs : field === "updated_at" ? row.updateTimeMs : 0;
      const sign = direction === "desc" ? -1 : 1;
      return [...rows].sort((a, b) => sign * (key(a) - key(b) || (a.uid < b.uid ? -1 : 1))).map(({ uid }) => uid);
    };
    const agrees = async (request: ListRequest, visible: readonly string[] = [ours, theirs], identity = everybody) => {
      const { orderBy = "" } = request;
      const expected = sortRows(filterRequested(request, visible), orderBy);
      const found: string[] = [];
      let pageToken = "";
      do {
        const response = await world.list(identity, { pageSize: 200, ...request, pageToken });
        assert.equal(response.totalCount, BigInt(expected.length));
        found.push(...response.advisories.map(({ uid }) => uid));
        pageToken = response.nextPageToken;
        assert.ok(pageToken === "" || response.advisories.length === (request.pageSize ?? 200));
      } while (pageToken !== "");
      assert.deepEqual(found, expected);
      return expected.length;
    };

    for (const [field, values] of Object.entries(filters)) {
      it(`${field} alone`, async () => {
        let hits = 0;
        await fc.assert(
          fc.asyncProperty(values, fc.constantFrom(...parents), async (value, uidp) => {
            const found = await agrees({ [field]: value, ...(uidp && { uidp }) } as ListRequest);
            if (found > 0 && found < model.length) hits++;
          }),
          { seed: SEED, numRuns: chooseScale(40, 10) },
        );
        assert.ok(hits > 0, "no value told some advisories from others");
      });
    }

    it("advisoryIds alone and with every other filter", async () => {
      for (const [i, one] of model.slice(0, chooseScale(30, 5)).entries()) {
        const advisoryIds = [one.advisoryId, model[i + 40]?.advisoryId ?? "", "CGA-none-none-none"];
        assert.equal(await agrees({ advisoryIds }), 2);
        for (const [field, values] of Object.entries(filters))
          await agrees({ advisoryIds, [field]: fc.sample(values, { numRuns: 1, seed: SEED + i })[0] } as ListRequest);
      }
    });

    it("every pair of filters", async () => {
      const fields = Object.keys(filters);
      let hits = 0;
      for (const [i, a] of fields.entries()) {
        for (const b of fields.slice(i + 1)) {
          const both = fc.record({ [a]: filters[a] as never, [b]: filters[b] as never });
          for (const request of fc.sample(both, { numRuns: chooseScale(4, 2), seed: SEED + i }))
            if ((await agrees(request)) > 0) hits++;
        }
      }
      assert.ok(hits > 100, `only ${hits} pairs found anything`);
    });

    it("any filters together, by pages of any size, in every order, for any caller", async () => {
      const callers = [
        { identity: everybody, visible: [ours, theirs] },
        { identity: await world.reader(child), visible: [child] },
        { identity: await world.reader(sibling, theirs), visible: [sibling, theirs] },
      ];
      const request = fc.record(
        { ...filters, pageSize: fc.integer({ min: 1, max: 40 }), orderBy: fc.constantFrom(...orders) },
        { requiredKeys: ["pageSize", "orderBy"] },
      );
      // Most filters are left out, or nothing would pass all of them.
      const few = fc.tuple(request, fc.uniqueArray(fc.constantFrom(...Object.keys(filters)), { maxLength: 3 }));
      const property = async (
        [all, kept]: [Record<string, unknown>, string[]],
        parent: ListRequest["uidp"],
        who: number,
      ) => {
        const given = Object.entries(all).filter(([field]) => filters[field] === undefined || kept.includes(field));
        const { identity, visible } = callers[who] ?? assert.fail();
        await agrees({ ...Object.fromEntries(given), ...(parent && { uidp: parent }) }, visible, identity);
      };
      await fc.assert(fc.asyncProperty(few as never, fc.constantFrom(...parents), fc.nat(2), property as never), {
        seed: SEED,
        numRuns: runs,
      });
    });

    it("some by uid, with a filter", async () => {
      const ids = model.slice(0, 60).map(({ uid }) => uid);
      for (const aliased of aliases) await agrees({ uidp: { ids }, aliases: [aliased] });
      for (const query of ["%", "curl"]) await agrees({ uidp: { ids }, query });
    });

    it("shows events oldest first, each once", async () => {
      const { advisories } = await world.list(everybody, { pageSize: 200 });
      for (const { uid, events } of advisories) {
        const known = model.find((one) => one.uid === uid)?.events ?? [];
        const times = [...known].sort((a, b) => a.timeMs - b.timeMs || (a.uid < b.uid ? -1 : 1));
        assert.deepEqual(
          events.map((one) => [one.uid, one.type.case, one.author, one.reviewer, one.reviewState]),
          times.map((one) => [one.uid, one.type, one.author, one.reviewer, one.reviewState]),
        );
      }
    });

    it("between changes and deletions", async () => {
      const others = randomAdvisories(COUNT, SEED + 1);
      const step = fc.record({
        at: fc.nat(COUNT - 1),
        what: fc.constantFrom("change", "change", "delete", "nothing"),
        size: fc.integer({ min: 1, max: 40 }),
        skip: fc.nat(30),
        orderBy: fc.constantFrom(...orders),
        filter: fc.constantFrom(...Object.keys(filters)),
        descendantsOf: fc.constantFrom("", ours, child),
      });
      for (const [i, { at, what, size, filter, descendantsOf, orderBy, skip }] of fc
        .sample(step, { numRuns: chooseScale(400, 60), seed: SEED })
        .entries()) {
        const before = model[at % model.length] ?? assert.fail();
        const other = others[at] ?? assert.fail();
        if (what === "delete") {
          await store.write((tx) => tx.advisories.delete(before.uid));
          model.splice(model.indexOf(before), 1);
        } else if (what === "change") {
          const { uid, groupUid, advisoryId, createTimeMs } = before;
          const after = { ...other, uid, groupUid, advisoryId, createTimeMs };
          after.events = other.events.map((one, n) => ({ ...one, uid: childUid(uid, n) }));
          await store.write((tx) => changeModel(tx, after));
          model[model.indexOf(before)] = after;
        }
        const [value] = fc.sample(filters[filter] ?? assert.fail(), { numRuns: 1, seed: SEED + i });
        const request = { [filter]: value, orderBy, ...(descendantsOf && { uidp: { descendantsOf } }) } as ListRequest;
        await agrees({ ...request, pageSize: size });
        const expected = sortRows(filterRequested(request, [ours, theirs]), orderBy).slice(skip, skip + size);
        const { advisories } = await world.list(everybody, { ...request, pageSize: size, skip });
        assert.deepEqual(
          advisories.map(({ uid }) => uid),
          expected,
        );
      }
    });
  });
}
