// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import pg from "pg";
import { openPg } from "../../src/store/open-pg.js";
import { quotaRaceSuite } from "../pipeline/quota-race-suite.js";
import { creatorsSuite, usageSuite } from "../store/usage-suite.js";
import { newDatabase } from "./databases.js";

const open = async () => openPg({ url: await newDatabase() });

quotaRaceSuite("quotas on PostgreSQL", open);
usageSuite("usage on PostgreSQL", open);

const url = await newDatabase();
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
