import * as columns from "./columns-sqlite.js";
import { defineTables } from "./schema.js";

export const schema = defineTables(columns);
