// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { openPg } from "../../src/store/pg/open.js";
import { rightsCampaign } from "../iam/directories/rights-campaign.js";
import { rightsSuite } from "../iam/directories/rights-suite.js";
import { newDatabase } from "./databases.js";

const open = async () => openPg({ url: await newDatabase() });

rightsSuite("what people get by the groups of a directory on PostgreSQL", open);
rightsCampaign("rights of directories on PostgreSQL", open, 150);
