import * as columns from "./columns-sqlite.js";
import { defineTables } from "./schema.js";

/** The schema in SQLite. */
export const schema = defineTables(columns);
