// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import pg from "pg";
import { ListAdvisoriesRequestSchema } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { openPg } from "../../src/store/pg/open.js";
import { lets, randomAdvisories, storeModel } from "../vulnerabilities/advisory-model.js";
import { advisoryWorld, ours, theirs } from "../vulnerabilities/advisory-world.js";
import { filterSuite } from "../vulnerabilities/filter-suite.js";
import { newDatabase } from "./databases.js";

filterSuite("lists of advisories on PostgreSQL", async () => openPg({ url: await newDatabase() }));

const queries = ["rl", "url", "CURL", "a%b", "_", "cve-2024-1", "éclair", "back\\slash", "nowhere"];

test("a query finds the same with and without the extension for trigrams", async () => {
  const url = await newDatabase();
  const store = await openPg({ url });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const hasIndex = async () => (await client.query("SELECT to_regclass('advisories_trigrams') AS name")).rows[0].name;
    assert.equal(await hasIndex(), "advisories_trigrams");
    const world = await advisoryWorld(store);
    const everybody = await world.reader(ours, theirs);
    const model = randomAdvisories(60, 1);
    await store.write(async (tx) => {
      for (const [i, one] of model.entries()) await storeModel(tx, one, i);
    });
    const findUids = async () => {
      const uids: string[][] = [];
      for (const query of queries) {
        const { advisories, totalCount } = await world.list(everybody, { query });
        const expected = model
          .filter((one) => lets(create(ListAdvisoriesRequestSchema, { query }), one))
          .map(({ uid }) => uid);
        assert.equal(totalCount, BigInt(expected.length));
        uids.push(advisories.map(({ uid }) => uid));
      }
      return uids;
    };
    const withIndex = await findUids();
    await client.query("DROP EXTENSION pg_trgm CASCADE");
    assert.equal(await hasIndex(), null);
    assert.deepEqual(await findUids(), withIndex);
  } finally {
    await client.end();
    await store.close();
  }
});
