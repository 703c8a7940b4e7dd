import { openSqliteMigration } from "../../../src/store/migrate/open-sqlite-migration.js";
import { newDataDir } from "../../support/data-dir.js";
import { oldServerSuite } from "./old-server-suite.js";

oldServerSuite("SQLite", async () => {
  const directory = newDataDir();
  return {
    settings: { data: directory },
    openMigration: async () => openSqliteMigration({ directory, mode: "update" }),
  };
});
