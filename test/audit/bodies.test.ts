// The suite of bodies on SQLite; on PostgreSQL it is test/pg/audit-bodies.test.ts.
import { bodiesSuite } from "./bodies-suite.js";

bodiesSuite("SQLite");
