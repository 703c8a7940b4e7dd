// Whether what overlay bindings select is stored as it follows from them: two bindings of a repo must not select the same.
import { type SQL, sql } from "drizzle-orm";
import { selectSelections } from "../registry/overlay-bindings.js";
import { schema as pgSchema } from "../tables/schema-pg.js";
import { schema as sqliteSchema } from "../tables/schema-sqlite.js";
import type { CheckDatabase } from "./database.js";
import type { Check } from "./findings.js";
import { reportRows } from "./references.js";

const { overlaySelections } = sqliteSchema;

function selectExpected(dialect: CheckDatabase["dialect"]): SQL {
  return selectSelections(dialect === "sqlite" ? sqliteSchema : pgSchema);
}

/** Compares the selections with the bindings. */
export const overlaySelectionCheck: Check = {
  name: "overlay selections",
  async run(context) {
    const expected = selectExpected(context.db.dialect);
    const report = (rule: string, faulty: SQL, problem: string) =>
      reportRows(context, {
        rule,
        table: overlaySelections,
        columns: [overlaySelections.bindingUid],
        faulty,
        describe: ({ binding_uid: uid }) => ({
          problem: `the binding ${uid} ${problem}`,
          remedy: "arbor check --repair",
          repairable: true,
        }),
      });
    const missing = sql`(${expected}) c where not exists (select 1 from ${overlaySelections} s
      where s.repo_uid = c.repo_uid and s.selection = c.selection and s.binding_uid = c.binding_uid)`;
    await report("missing", missing, "selects it, and it is not stored");
    const extra = sql`${overlaySelections} c where not exists (select 1 from (${expected}) e
      where e.repo_uid = c.repo_uid and e.selection = c.selection and e.binding_uid = c.binding_uid)`;
    await report("extra", extra, "does not select it");
  },
};

/** The statements that derive the selections again. Of two bindings that select the same, one gets it. */
export function rebuildOverlaySelections(dialect: CheckDatabase["dialect"]): readonly SQL[] {
  return [
    sql`delete from ${overlaySelections}`,
    sql`insert into ${overlaySelections} (repo_uid, selection, binding_uid)
      select repo_uid, selection, binding_uid from (${selectExpected(dialect)}) e
      where true on conflict do nothing`,
  ];
}
