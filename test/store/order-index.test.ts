// The migration of the order index on SQLite. On PostgreSQL: test/pg/order-index.test.ts.
import { openSqliteMigration } from "../../src/store/migrate/open-sqlite-migration.js";
import { memoryDir } from "../support/temp-dir.js";
import { orderIndexSuite } from "./order-index-suite.js";

orderIndexSuite("on SQLite", async () => openSqliteMigration({ directory: memoryDir(), mode: "create" }));
