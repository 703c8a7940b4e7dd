// Needs ARBOR_TEST_DATABASE_URL, which `npm run test:pg` sets.
import pg from "pg";
import { openPg } from "../../src/store/open-pg.js";
import { filterSuite } from "../vulnerabilities/filter-suite.js";
import { emptyDatabase } from "./empty-database.js";

filterSuite("lists of advisories on PostgreSQL", async () => openPg({ url: await emptyDatabase(pg) }), 150);
