// The suite of calls that change nothing on SQLite; on PostgreSQL it is a part of test/pg/audit-bodies.test.ts.
import { unchangedSuite } from "./unchanged-suite.js";

unchangedSuite("SQLite");
