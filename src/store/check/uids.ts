// Whether the uid of each row is a path that continues the uid of its parent: rights and lists go by the path.
import { getTableName, sql } from "drizzle-orm";
import { columnOf, type ResourceIndex } from "../resource-index.js";
import * as schema from "../schema-sqlite.js";
import type { Tables } from "../tables.js";
import type { Check } from "./findings.js";
import { reportRows } from "./references.js";
import { at } from "./sql.js";

/** Creates the check, which finds rows of these kinds whose uid does not lie directly below their parent. */
export const createUidCheck = (kinds: readonly ResourceIndex[]): Check => ({
  name: "uids",
  async run(context) {
    const checked = new Set<string>();
    for (const kind of kinds) {
      const table = kind.table(schema as unknown as Tables);
      const name = getTableName(table);
      if (checked.has(name)) continue;
      checked.add(name);
      context.progress(name);
      const column = columnOf(table, kind.parent);
      const [uid, parent] = [at("c", table.uid), at("c", column)];
      // A root has 40 hex digits, and every further segment a slash and 16.
      const faulty = sql`${table} c where case when ${parent} is null then length(${uid}) <> 40
        else length(${uid}) <> length(${parent}) + 17 or substr(${uid}, 1, length(${parent}) + 1) <> ${parent} || '/' end`;
      await reportRows(context, {
        rule: name,
        table,
        columns: [column],
        faulty,
        describe: (row) => ({
          problem:
            row[column.name] === null
              ? "the row has no parent, and its uid is not that of a root"
              : `the uid does not lie directly below ${row[column.name]}, its ${column.name}`,
          remedy: "restore a backup",
        }),
      });
    }
  },
});
