import { join } from "node:path";
import { openSqlite } from "../../src/store/open-sqlite.js";
import { openDatabase } from "../../src/store/sqlite-driver.js";
import { tempDir } from "../support/temp-dir.js";
import { creatorsSuite, usageSuite } from "./usage-suite.js";

usageSuite("usage on SQLite", async () => openSqlite({ directory: tempDir() }));

const directory = tempDir();
creatorsSuite(
  "sqlite",
  async () => openSqlite({ directory }),
  async (statements) => {
    const database = openDatabase(join(directory, "arbor.db"));
    for (const statement of statements) database.exec(statement);
    database.close();
  },
);
