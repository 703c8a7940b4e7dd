// The store suites on SQLite.
import { openSqlite } from "../../src/store/sqlite/open.js";
import { memoryDir } from "../support/temp-dir.js";
import { endedBindingsSuite } from "./ended-bindings-suite.js";
import { sqliteStatementPlanSuite } from "./sqlite-statement-plans.js";
import { storeSuite } from "./store-suite.js";
import { usageSuite } from "./usage-suite.js";

storeSuite("the store on SQLite", async () => openSqlite({ directory: memoryDir() }));
usageSuite("usage on SQLite", async () => openSqlite({ directory: memoryDir() }));
sqliteStatementPlanSuite();
endedBindingsSuite();
