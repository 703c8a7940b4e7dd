// Lists of advisories on PostgreSQL against a naive filter and sort. Needs TEST_ARBOR_DATABASE_URL, which
// `npm run test:pg` sets.
import { openPg } from "../../src/store/pg/open.js";
import { chooseListCount } from "../store/list-oracle.js";
import { advisoryOracleSuite } from "../vulnerabilities/advisory-oracle.js";
import { newDatabase } from "./databases.js";

advisoryOracleSuite(
  "lists of advisories on PostgreSQL against an oracle",
  async () => openPg({ url: await newDatabase() }),
  chooseListCount(5_000, 250),
);
