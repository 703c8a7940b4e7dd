// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import pg from "pg";
import { openPg } from "../../src/store/open-pg.js";
import { storeSuite } from "../store/store-suite.js";
import { emptyDatabase } from "./empty-database.js";

storeSuite("the store on PostgreSQL", async () => openPg({ url: await emptyDatabase(pg) }));
