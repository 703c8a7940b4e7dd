// The store suites on SQLite.
import { join } from "node:path";
import { openSqlite } from "../../src/store/open-sqlite.js";
import { openDatabase } from "../../src/store/sqlite-driver.js";
import { memoryDir } from "../support/temp-dir.js";
import { storeSuite } from "./store-suite.js";
import { creatorsSuite, usageSuite } from "./usage-suite.js";

storeSuite("the store on SQLite", async () => openSqlite({ directory: memoryDir() }));
usageSuite("usage on SQLite", async () => openSqlite({ directory: memoryDir() }));

const directory = memoryDir();
creatorsSuite(
  "sqlite",
  async () => openSqlite({ directory }),
  async (statements) => {
    const database = openDatabase(join(directory, "arbor.db"));
    for (const statement of statements) database.exec(statement);
    database.close();
  },
);
