import { openSqlite } from "../../../src/store/sqlite/open.js";
import { memoryDir } from "../../support/temp-dir.js";
import { rightsSuite } from "./rights-suite.js";

rightsSuite("what people get by the groups of a directory", async () => openSqlite({ directory: memoryDir() }));
