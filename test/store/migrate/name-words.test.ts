import { readSqlite } from "../../../src/store/check/database.js";
import { openSqliteMigration } from "../../../src/store/migrate/open-sqlite-migration.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { memoryDir } from "../../support/temp-dir.js";
import { nameWordSuite } from "./name-words-suite.js";

nameWordSuite("SQLite", async () => {
  const directory = memoryDir();
  return {
    openStore: async () => openSqlite({ directory, migrations: [] }),
    openMigration: async () => openSqliteMigration({ directory, mode: "create" }),
    openCheck: () => readSqlite(directory),
  };
});
