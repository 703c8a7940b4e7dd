// The lists of the store on SQLite against a naive filter and sort.
import { openSqlite } from "../../src/store/sqlite/open.js";
import { memoryDir } from "../support/temp-dir.js";
import { chooseListCount, listOracleSuite } from "./list-oracle.js";

listOracleSuite(
  "lists on SQLite against an oracle",
  async () => openSqlite({ directory: memoryDir() }),
  chooseListCount(100_000, 1_000),
);
