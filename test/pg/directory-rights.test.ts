// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { openPg } from "../../src/store/pg/open.js";
import { rightsCampaign } from "../iam/directories/rights-campaign.js";
import { newDatabase } from "./databases.js";

rightsCampaign("rights of directories on PostgreSQL", async () => openPg({ url: await newDatabase() }), 150);
