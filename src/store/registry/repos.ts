// Repos of a container registry: their table, and its statements.
import { declareKind, defineKind, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { selectRows } from "../rows.js";

const declared = declareKind({
  number: 9,
  key: "repos",
  name: "repos",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    name: c.str("name").notNull(),
    description: c.str("description").notNull(),
    /** The JSON of its message's other fields. */
    config: c.json<object>("config").notNull(),
    readme: c.str("readme").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [c.uniqueIndex("repos_name").on(t.groupUid, t.name)],
  parent: "groupUid",
  quota: "repos",
  hasRowsBelow: true,
  hasNameWords: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly repos: KindTable<typeof declared>;
  }
}

export type RepoRow = KindRow<typeof declared>;

const byName = selectRows("repos", ["groupUid", "name"]);

export class Repos extends ListedTable<RepoRow> {
  /** The child of the group with this name. */
  findByName(groupUid: string, name: string): Promise<RepoRow | undefined> {
    return this.first(byName, { groupUid, name });
  }
}

export const repoKind = defineKind(declared, Repos);
