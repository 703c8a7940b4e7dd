import { openSqlite } from "../../src/store/sqlite/open.js";
import { memoryDir } from "../support/temp-dir.js";
import { filterSuite } from "./filter-suite.js";

filterSuite("lists of advisories on SQLite", async () => openSqlite({ directory: memoryDir() }));
