// Overlays: what is added to images, with a name. Bindings apply them to tags of repos (overlay-bindings.ts).
import { declareKind, defineKind, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { selectRows } from "../rows.js";

const declared = declareKind({
  number: 14,
  key: "overlays",
  name: "overlays",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    name: c.str("name").notNull(),
    /** The JSON of its CustomOverlay. */
    config: c.json<object>("config").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [c.uniqueIndex("overlays_name").on(t.groupUid, t.name)],
  parent: "groupUid",
  quota: "overlays",
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly overlays: KindTable<typeof declared>;
  }
}

export type OverlayRow = KindRow<typeof declared>;

const byName = selectRows("overlays", ["groupUid", "name"]);

export class Overlays extends ListedTable<OverlayRow> {
  /** The child of the group with this name. */
  findByName(groupUid: string, name: string): Promise<OverlayRow | undefined> {
    return this.first(byName, { groupUid, name });
  }
}

export const overlayKind = defineKind(declared, Overlays);
