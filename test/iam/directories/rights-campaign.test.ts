import { openSqlite } from "../../../src/store/sqlite/open.js";
import { memoryDir } from "../../support/temp-dir.js";
import { rightsCampaign } from "./rights-campaign.js";

rightsCampaign("rights of directories", async () => openSqlite({ directory: memoryDir() }), 600);
