// Random changes of rows, which either version can then write.
import { parentOf } from "../../src/kernel/uidp.js";
import { childUid, rootUid } from "./rows.js";

/** A row of a table, by the names of its columns. */
export type ChangedRow = Readonly<Record<string, string | number | boolean | null>> & { readonly uid: string };

/** The tables whose rows are changed. */
export type ChangedTable = "groups" | "account_associations" | "repos" | "tags";

/** An insertion has no row before, a deletion none after. */
export interface Change {
  readonly table: ChangedTable;
  readonly before?: ChangedRow;
  readonly after?: ChangedRow;
}

/** Random changes of rows, reproducible by their generator. */
export class RowChanges {
  readonly #random: (n: number) => number;
  readonly #rows = new Map<ChangedTable, ChangedRow[]>();
  #count: number;

  /**
   * @param random a number from 0 to n - 1
   * @param first the number of the first row; two lists of changes of one database need different ones
   */
  constructor(random: (n: number) => number, first = 0) {
    this.#random = random;
    this.#count = first;
  }

  /** The next changes, of one transaction. */
  next(): Change[] {
    const groups = this.#of("groups");
    const group = this.#pick("groups");
    switch (groups.length < 3 ? 0 : this.#random(12)) {
      case 0:
        return this.#insert("groups", this.#group(undefined));
      case 1:
      case 2:
      case 3:
        return this.#insert("groups", this.#group(group?.uid));
      case 4:
      case 5:
        return this.#update("groups");
      case 6: {
        const uid = group?.uid ?? "";
        if (this.#of("account_associations").some((row) => row.uid === uid))
          return this.#update("account_associations");
        return this.#insert("account_associations", {
          ...this.#buildRow(uid),
          parent_uid: parentOf(uid) ?? null,
          accounts: "{}",
        });
      }
      case 7: {
        const parent = group?.uid ?? "";
        const row = { ...this.#buildRow(this.#newUid(parent)), group_uid: parent, config: "{}", readme: "" };
        return this.#insert("repos", { ...row, name: row.uid.slice(-16) });
      }
      case 8:
      case 9: {
        const repo = this.#pick("repos");
        if (repo === undefined) return this.next();
        const { description: _, ...row } = this.#buildRow(this.#newUid(repo.uid));
        const family = this.#random(2);
        const tag = { ...row, name: row.uid.slice(-16), repo_uid: repo.uid, digest: "", family, deprecated: false };
        return this.#insert("tags", { ...tag, bundles: "[]" });
      }
      case 10:
        return this.#update("tags");
      default:
        return this.#delete();
    }
  }

  /** The deletions of all rows. */
  deleteAll(): Change[] {
    const changes: Change[] = [];
    while ([...this.#rows.values()].some(({ length }) => length > 0)) changes.push(...this.#delete());
    return changes;
  }

  #of(table: ChangedTable): ChangedRow[] {
    const rows = this.#rows.get(table) ?? [];
    this.#rows.set(table, rows);
    return rows;
  }

  #pick(table: ChangedTable): ChangedRow | undefined {
    const rows = this.#of(table);
    return rows[this.#random(rows.length)];
  }

  #newUid(parent: string | undefined): string {
    this.#count++;
    // Not in the order of creation.
    const n = (this.#count * 7_919) % 1_000_003;
    return parent === undefined ? rootUid(n) : childUid(parent, n);
  }

  #buildRow(uid: string) {
    const name = ["a", "b", "o'brien", "é", ""][this.#random(5)] ?? "";
    return { uid, name, description: "", create_time_ms: this.#random(50), update_time_ms: this.#random(50) };
  }

  #group(parent: string | undefined): ChangedRow {
    const row = this.#buildRow(this.#newUid(parent));
    return { ...row, parent_uid: parent ?? null, verified: false, kind: 0, resource_limits: "{}", created_by: "" };
  }

  #insert(table: ChangedTable, row: ChangedRow): Change[] {
    this.#of(table).push(row);
    return [{ table, after: row }];
  }

  #update(table: ChangedTable): Change[] {
    const rows = this.#of(table);
    const i = this.#random(rows.length);
    const row = rows[i];
    if (row === undefined) return this.next();
    const { name, update_time_ms } = this.#buildRow(row.uid);
    const patch =
      table === "groups" || table === "account_associations" ? { name, update_time_ms } : { update_time_ms };
    const after: ChangedRow = { ...row, ...patch };
    rows[i] = after;
    return [{ table, before: row, after }];
  }

  // A row that no other belongs to.
  #delete(): Change[] {
    const all = [...this.#rows.values()].flat();
    const isFree = ({ uid }: ChangedRow) => !all.some((other) => other.uid !== uid && other.uid.startsWith(`${uid}/`));
    const candidates = [...this.#rows].flatMap(([table, rows]) => rows.filter(isFree).map((row) => ({ table, row })));
    const { table, row } = candidates[this.#random(candidates.length)] ?? {};
    if (table === undefined || row === undefined) return [];
    const changes: Change[] = [];
    const association = table === "groups" && this.#of("account_associations").find(({ uid }) => uid === row.uid);
    if (association) changes.push(...this.#remove("account_associations", association));
    return [...changes, ...this.#remove(table, row)];
  }

  #remove(table: ChangedTable, row: ChangedRow): Change[] {
    const rows = this.#of(table);
    rows.splice(rows.indexOf(row), 1);
    return [{ table, before: row }];
  }
}
