// What every store must do, through PgBouncer in transaction mode. Needs TEST_ARBOR_DATABASE_URL and pgbouncer.
import { describe } from "node:test";
import { openPg } from "../../src/store/pg/open.js";
import { jobsSuite } from "../jobs/jobs-suite.js";
import { quotaRaceSuite } from "../pipeline/quota-race-suite.js";
import { chooseListCount, listOracleSuite } from "../store/list-oracle.js";
import { storeSuite } from "../store/store-suite.js";
import { usageSuite } from "../store/usage-suite.js";
import { advisoryOracleSuite } from "../vulnerabilities/advisory-oracle.js";
import { newDatabase } from "./databases.js";
import { type PgBouncer, startPgBouncer, withoutPgBouncer } from "./pgbouncer.js";

let pooler: Promise<PgBouncer> | undefined;
async function openThrough(directUrl: string) {
  pooler ??= startPgBouncer(directUrl);
  return openPg({ url: (await pooler).through(directUrl), directUrl });
}
const open = async () => openThrough(await newDatabase());

describe("through PgBouncer", { skip: withoutPgBouncer }, () => {
  storeSuite("the store", open);
  quotaRaceSuite("quotas", open);
  usageSuite("usage", open);
  listOracleSuite("lists against an oracle", open, chooseListCount(2_000, 50));
  advisoryOracleSuite("lists of advisories against an oracle", open, chooseListCount(1_000, 50));
  jobsSuite(async () => {
    const url = await newDatabase();
    return () => openThrough(url);
  });
});
