import { openSqlite } from "../../src/store/sqlite/open.js";
import { tempDir } from "../support/temp-dir.js";
import { quotaRaceSuite } from "./quota-race-suite.js";

quotaRaceSuite("quotas on SQLite", async () => openSqlite({ directory: tempDir() }));
