// Lists of advisories on SQLite against a naive filter and sort.
import { openSqlite } from "../../src/store/sqlite/open.js";
import { chooseListCount } from "../store/list-oracle.js";
import { memoryDir } from "../support/temp-dir.js";
import { advisoryOracleSuite } from "./advisory-oracle.js";

advisoryOracleSuite(
  "lists of advisories on SQLite against an oracle",
  async () => openSqlite({ directory: memoryDir() }),
  chooseListCount(20_000, 1_000),
);
