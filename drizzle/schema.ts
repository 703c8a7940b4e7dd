// The schema as the generator of migrations reads it: each table is an export of its own.
import { schema as pg } from "../src/store/tables/schema-pg.js";
import { schema as sqlite } from "../src/store/tables/schema-sqlite.js";

export = process.env.ARBOR_DIALECT === "pg" ? pg : sqlite;
