import { openSqlite } from "../../src/store/open-sqlite.js";
import { tempDir } from "../support/temp-dir.js";
import { storeSuite } from "./store-suite.js";

storeSuite("the store on SQLite", async () => openSqlite({ directory: tempDir() }));
