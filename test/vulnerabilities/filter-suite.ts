// Each filter of advisories against the model, on any store. Random lists with several are in advisory-oracle.ts.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ListAdvisoriesRequestSchema } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { isWithin } from "../../src/kernel/uidp.js";
import type { Store } from "../../src/store/store.js";
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
import { type AdvisoryWorld, advisoryWorld, child, type ListRequest, ours, theirs } from "./advisory-world.js";

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
const parents: readonly ListRequest["uidp"][] = [
  undefined,
  { childrenOf: ours },
  { descendantsOf: ours },
  { childrenOf: child },
];

/** Registers the tests. */
export function filterSuite(name: string, open: () => Promise<Store>): void {
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

    const agrees = async (request: ListRequest) => {
      const message = create(ListAdvisoriesRequestSchema, request);
      const { childrenOf = "", descendantsOf = "" } = message.uidp ?? {};
      const expected = model.filter(
        (one) =>
          (childrenOf === "" || one.groupUid === childrenOf) &&
          (descendantsOf === "" || isWithin(one.groupUid, descendantsOf)) &&
          lets(message, one),
      );
      const { advisories, totalCount } = await world.list(everybody, { pageSize: 200, ...request });
      assert.equal(totalCount, BigInt(expected.length));
      const uids = expected.map(({ uid }) => uid).sort();
      assert.deepEqual(
        advisories.map(({ uid }) => uid),
        uids,
      );
      return uids.length;
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
  });
}
