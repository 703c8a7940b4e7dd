// Bindings of overlays to tags of repos. The rows of `overlay_selections` say what each binding selects: their key lets no two
// bindings of a repo select the same. They are deleted with their binding.
import { and, asc, eq, inArray, type SQL, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import type { ListQuery, Page } from "../lists/query.js";
import { readByUids } from "../lists/walk.js";
import { deleteRows, insertRow } from "../rows.js";
import { padParams, statementFamily, value } from "../statement.js";
import type { Tables } from "../tables/tables.js";
import { type OverlayRow, overlayKind } from "./overlays.js";

const declared = declareKind({
  number: 15,
  key: "overlayBindings",
  name: "overlay_bindings",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    repoUid: c
      .str("repo_uid")
      .notNull()
      .references(() => t.repos.uid),
    rootUid: c.str("root_uid").notNull(),
    overlayUid: c
      .str("overlay_uid")
      .notNull()
      .references(() => t.overlays.uid),
    /** The number of the TagSelector.Kind. */
    selectorKind: c.int("selector_kind").notNull(),
    tags: c.json<string[]>("tags").notNull(),
    /** The number of the TagSelector.VariantType; 0 where the kind is another. */
    variantType: c.int("variant_type").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [c.index("overlay_bindings_overlay").on(t.overlayUid, t.uid)],
  parent: "repoUid",
  quota: "overlayBindings",
  sorts: { created_at: "createTimeMs", updated_at: "updateTimeMs" },
  fixed: ["overlayUid"],
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly overlayBindings: KindTable<typeof declared>;
  }
}

export type OverlayBindingRow = KindRow<typeof declared>;

/** A binding with its overlay, which responses contain. */
export interface HydratedOverlayBinding extends OverlayBindingRow {
  readonly overlay: OverlayRow;
}

/** How many bindings a part of a deletion deletes: each has a row for every tag that it names. */
const DELETE_BATCH = 8;

const insertSelection = insertRow("overlaySelections");
const deleteSelections = deleteRows("overlaySelections", "bindingUid");
const findSelected = statementFamily<number, Record<string, string>, { bindingUid: string }>(
  String,
  (size) => (q, t) => {
    const { repoUid, selection, bindingUid } = t.overlaySelections;
    const selections = Array.from({ length: size }, (_, i) => value(`selection${i}`));
    return q
      .select({ bindingUid })
      .from(t.overlaySelections)
      .where(and(eq(repoUid, value("repoUid")), inArray(selection, selections)))
      .orderBy(asc(selection));
  },
);

/** Overlay bindings. */
export class OverlayBindings extends ListedTable<OverlayBindingRow> {
  override async insert(row: OverlayBindingRow): Promise<void> {
    await super.insert(row);
    await this.#insertSelections(row);
  }

  override async replace(row: OverlayBindingRow): Promise<void> {
    await super.replace(row);
    await this.run(deleteSelections, { bindingUid: row.uid });
    await this.#insertSelections(row);
  }

  /** Finds another binding of the repo that selects something that `row` selects, and returns its uid. */
  async findConflicting(row: OverlayBindingRow): Promise<string | undefined> {
    const { size, params } = padParams("selection", listSelections(row));
    const found = await this.all(findSelected(size), { ...params, repoUid: row.repoUid });
    return found.find(({ bindingUid }) => bindingUid !== row.uid)?.bindingUid;
  }

  async findHydrated(uid: string): Promise<HydratedOverlayBinding | undefined> {
    const row = await this.find(uid);
    return row && (await this.#hydrate([row]))[0];
  }

  /** Lists bindings with their overlays; each overlay is read once. */
  async listHydrated(query: ListQuery): Promise<Page<HydratedOverlayBinding>> {
    const page = await this.list(query);
    return { ...page, rows: await this.#hydrate(page.rows) };
  }

  /** Deletes some bindings of a repo; resolves to how many, which is zero when none is left. */
  async deleteSome(repoUid: string): Promise<number> {
    const uids = await this.findUidsWhere("repoUid", repoUid, DELETE_BATCH);
    for (const uid of uids) await this.delete(uid);
    return uids.length;
  }

  /** Deletes all bindings of a repo. */
  async deleteOf(repoUid: string): Promise<void> {
    while ((await this.deleteSome(repoUid)) > 0);
  }

  async #insertSelections(row: OverlayBindingRow): Promise<void> {
    const { repoUid, uid: bindingUid } = row;
    for (const selection of listSelections(row)) await this.run(insertSelection, { repoUid, selection, bindingUid });
  }

  async #hydrate(rows: readonly OverlayBindingRow[]): Promise<HydratedOverlayBinding[]> {
    const uids = [...new Set(rows.map(({ overlayUid }) => overlayUid))];
    const found = (await readByUids(this.tx, overlayKind, uids)) as OverlayRow[];
    const overlays = new Map(found.map((overlay) => [overlay.uid, overlay]));
    return rows.flatMap((row) => {
      const overlay = overlays.get(row.overlayUid);
      return overlay === undefined ? [] : [{ ...row, overlay }];
    });
  }
}

// What a binding selects and no other binding of its repo may select: all tags, a variant, or each of its tags. A tag has no
// space in its name.
function listSelections({ tags, variantType }: OverlayBindingRow): string[] {
  if (tags.length > 0) return tags.map((tag) => `tag ${tag}`);
  return [variantType === 0 ? "all" : `variant ${variantType}`];
}

/** Builds a query for the same of all bindings: `repo_uid`, `selection` and `binding_uid`. */
export function selectSelections(t: Tables): SQL {
  const { overlayBindings: b } = t;
  const select = (selection: SQL, from: SQL) =>
    sql`select ${b.repoUid} as repo_uid, ${selection} as selection, ${b.uid} as binding_uid from ${from}`;
  const tags = t.elementsOf(b.tags);
  const whole = sql`case ${b.variantType} when 0 then 'all' else 'variant ' || cast(${b.variantType} as text) end`;
  return sql`${select(sql`'tag ' || element.value`, sql`${b}, ${tags}`)}
    union all ${select(whole, sql`${b} where not exists (select 1 from ${tags})`)}`;
}

export const overlayBindingKind = defineKind(declared, OverlayBindings);
