// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import pg from "pg";
import { openPg } from "../../src/store/open-pg.js";
import { quotaRaceSuite } from "../pipeline/quota-race-suite.js";
import { creatorsSuite, usageSuite } from "../store/usage-suite.js";
import { emptyDatabase } from "./empty-database.js";

const open = async () => openPg({ url: await emptyDatabase(pg) });

quotaRaceSuite("quotas on PostgreSQL", open);
usageSuite("usage on PostgreSQL", open);

const url = await emptyDatabase(pg);
creatorsSuite(
  "pg",
  () => openPg({ url }),
  async (statements) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  },
);
