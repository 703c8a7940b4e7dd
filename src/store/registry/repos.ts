import { ListedTable } from "../lists/listed-table.js";
import { defineListedKind, usualSorts } from "../lists/resource.js";
import { selectRows } from "../rows.js";
import type { Executor } from "../statement.js";
import type { RepoRow } from "../tables/registry.js";

export const repoKind = defineListedKind(9, {
  table: "repos",
  parent: "groupUid",
  quota: "repos",
  hasRowsBelow: true,
  sorts: usualSorts,
});

const byName = selectRows("repos", ["groupUid", "name"]);

export class Repos extends ListedTable<RepoRow> {
  constructor(tx: Executor) {
    super(tx, repoKind);
  }

  /** The child of the group with this name. */
  findByName(groupUid: string, name: string): Promise<RepoRow | undefined> {
    return this.first(byName, { groupUid, name });
  }
}
