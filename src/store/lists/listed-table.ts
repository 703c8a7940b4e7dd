// The rows of a kind that is listed. Most kinds need nothing more; others extend it with what is special to them.
import { and, eq } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import { addNameWords, changeNameWords, removeNameWords } from "../name-words.js";
import { columnOf, type Executor, rowLimit, statementFamily, TransactionPart, value } from "../statement.js";
import { countRow } from "./counters.js";
import { listPage } from "./page.js";
import type { ListQuery, Page } from "./query.js";
import { familyOf, type ListedKind, type ListedRow } from "./resource.js";

const uidsWhere = statementFamily<{ kind: ListedKind; column: string }, { value: string; limit: number }, ListedRow>(
  ({ kind, column }) => `${kind.counter} ${column}`,
  ({ kind, column }) =>
    (q, t) => {
      const table = kind.table(t);
      return q
        .select({ uid: table.uid })
        .from(table)
        .where(eq(columnOf(table, column), value("value")))
        .limit(rowLimit("limit"));
    },
);

const childrenNamed = statementFamily<
  { kind: ListedKind },
  { parentUid: string; name: string; limit: number },
  ListedRow
>(
  ({ kind }) => `${kind.counter}`,
  ({ kind }) =>
    (q, t) => {
      const table = kind.table(t);
      return q
        .select({ uid: table.uid })
        .from(table)
        .where(and(eq(columnOf(table, kind.parent), value("parentUid")), eq(columnOf(table, "name"), value("name"))))
        .limit(rowLimit("limit"));
    },
);

/** The rows of a kind, with the counters of its lists. */
export class ListedTable<Row extends ListedRow, Patch extends object = Partial<Row>> extends TransactionPart {
  protected readonly kind: ListedKind<Row, Patch>;

  constructor(tx: Executor, kind: ListedKind<Row, Patch>) {
    super(tx);
    this.kind = kind;
  }

  find(uid: string): Promise<Row | undefined> {
    return this.findStored(uid);
  }

  /** Finds a row that {@link find} may hide. */
  protected findStored(uid: string): Promise<Row | undefined> {
    return this.first(this.kind.rows.find, { uid });
  }

  async insert(row: Row): Promise<void> {
    await this.run(this.kind.rows.insert, { ...row, rootUid: rootOf(row.uid) });
    await countRow(this.tx, this.kind, row, 1);
    if (this.kind.hasNameWords) await addNameWords(this.tx, this.kind, row);
  }

  /** Makes the stored row equal to `row`; the uid, the parent and the creation time must be unchanged. */
  async replace(row: Row): Promise<void> {
    if (this.kind.families) await this.#recount(row);
    const named = this.kind.hasNameWords ? await this.findStored(row.uid) : undefined;
    await this.run(this.kind.rows.replace, row);
    if (named) await changeNameWords(this.tx, this.kind, named, row);
  }

  /** Applies `patch` to the row and returns it, or undefined when it does not exist. */
  async update(uid: string, patch: Patch, updateTimeMs: number): Promise<Row | undefined> {
    const before = await this.find(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs };
    if (this.kind.hasNameWords) {
      await this.run(this.kind.rows.replace, after);
      await changeNameWords(this.tx, this.kind, before, after);
    } else await this.replace(after);
    return after;
  }

  /** Does nothing when the row does not exist. */
  async delete(uid: string): Promise<void> {
    const deleted = await this.first(this.kind.rows.remove, { uid });
    if (deleted === undefined) return;
    await countRow(this.tx, this.kind, deleted, -1);
    if (this.kind.hasNameWords) await removeNameWords(this.tx, this.kind, deleted);
  }

  list(query: ListQuery): Promise<Page<Row>> {
    return listPage<Row>(this.tx, this.kind, query);
  }

  /** The uids of rows whose `column` has this value, at most `limit`. */
  async findUidsWhere(column: keyof Row & string, value: string, limit = 1_000): Promise<string[]> {
    const rows = await this.all(uidsWhere({ kind: this.kind, column }), { value, limit });
    return rows.map(({ uid }) => uid);
  }

  /** The uids of the children of a group that have this name, at most `limit`; for kinds with names. */
  async findChildrenNamed(parentUid: string, name: string, limit: number): Promise<string[]> {
    const rows = await this.all(childrenNamed({ kind: this.kind }), { parentUid, name, limit });
    return rows.map(({ uid }) => uid);
  }

  // Each family has counters of its own, and a row may come to another family when its name changes.
  async #recount(row: Row): Promise<void> {
    const before = await this.findStored(row.uid);
    if (before === undefined || familyOf(before, this.kind) === familyOf(row, this.kind)) return;
    await countRow(this.tx, this.kind, before, -1);
    await countRow(this.tx, this.kind, row, 1);
  }
}
