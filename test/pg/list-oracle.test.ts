// The lists of the store on PostgreSQL against a naive filter and sort. Needs TEST_ARBOR_DATABASE_URL, which
// `npm run test:pg` sets.
import { openPg } from "../../src/store/pg/open.js";
import { chooseListCount, listOracleSuite } from "../store/list-oracle.js";
import { newDatabase } from "./databases.js";

listOracleSuite(
  "lists on PostgreSQL against an oracle",
  async () => openPg({ url: await newDatabase() }),
  chooseListCount(10_000, 200),
);
