// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { openPg } from "../../src/store/pg/open.js";
import { quotaRaceSuite } from "../pipeline/quota-race-suite.js";
import { usageSuite } from "../store/usage-suite.js";
import { newDatabase } from "./databases.js";

const open = async () => openPg({ url: await newDatabase() });

quotaRaceSuite("quotas on PostgreSQL", open);
usageSuite("usage on PostgreSQL", open);
