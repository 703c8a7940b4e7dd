// What directories send: people (scim-users.ts) and groups (scim-groups.ts), in the orders and slices in which lists of SCIM read them.
import { and, asc, desc, eq, gt, sql } from "drizzle-orm";
import { countBelow } from "../lists/counters.js";
import { ListedTable } from "../lists/listed-table.js";
import type { ListedRow } from "../lists/resource.js";
import { ownColumns } from "../rows.js";
import { buildEquals, columnOf, rowLimit, statement, statementFamily, value } from "../statement.js";
import type { Tables } from "../tables/tables.js";

/** An order of the rows of a provider that has an index. */
export interface SentOrder<Column extends string> {
  readonly by: Column;
  readonly descending: boolean;
}

/** Builds the statements of one table; `unique` are the columns of orders that have each value once. */
export function buildSentStatements<Row>(name: "scimUsers" | "scimGroups", unique: readonly string[] = []) {
  // Both have the columns that are used here.
  const tableOf = (t: Tables) => t[name] as Tables["scimUsers"];
  return {
    // The uids are read from the index of the order alone, because rows are large and a page may begin far from the first one.
    page: statementFamily<SentOrder<string>, { providerUid: string; limit: number; offset: number }, Row>(
      ({ by, descending }) => `${by} ${descending}`,
      ({ by, descending }) =>
        (q, t) => {
          const table = tableOf(t);
          const order = descending ? desc : asc;
          const columns = by === "uid" || unique.includes(by) ? [by] : [by, "uid"];
          const uids = q
            .select({ uid: table.uid })
            .from(table)
            .where(buildEquals(table, "providerUid"))
            .orderBy(...columns.map((column) => order(columnOf(table, column))))
            .limit(rowLimit("limit"))
            .offset(rowLimit("offset"))
            .as("page");
          return q.select(ownColumns(table)).from(uids).innerJoin(table, eq(table.uid, uids.uid));
        },
    ),

    // In the order of times, from the first one after `after`.
    changed: statement<{ providerUid: string; timeMs: number; after: string; limit: number }, Row>((q, t) => {
      const table = tableOf(t);
      const { updateTimeMs, uid } = table;
      const isLater = sql`(${updateTimeMs}, ${uid}) > (${value("timeMs")}, ${value("after")})`;
      return q
        .select(ownColumns(table))
        .from(table)
        .where(and(buildEquals(table, "providerUid"), isLater))
        .orderBy(asc(updateTimeMs), asc(uid))
        .limit(rowLimit("limit"));
    }),

    // In the order of uids, from the first one after `after`.
    slice: statement<{ providerUid: string; after: string; limit: number }, Row>((q, t) => {
      const table = tableOf(t);
      return q
        .select(ownColumns(table))
        .from(table)
        .where(and(buildEquals(table, "providerUid"), gt(table.uid, value("after"))))
        .orderBy(asc(table.uid))
        .limit(rowLimit("limit"));
    }),

    // The condition on what is not empty is that of the index.
    byExternalId: statement<{ providerUid: string; externalId: string }, Row>((q, t) => {
      const table = tableOf(t);
      return q
        .select(ownColumns(table))
        .from(table)
        .where(and(buildEquals(table, "providerUid", "externalId"), sql`${table.externalId} <> ''`));
    }),
  };
}

/** The rows that the directories of providers have sent. */
export abstract class SentRows<Row extends ListedRow, Column extends keyof Row & string> extends ListedTable<Row> {
  protected abstract readonly sent: ReturnType<typeof buildSentStatements<Row>>;

  /** How many the directory of a provider has sent. */
  countOfProvider(providerUid: string): Promise<number> {
    return countBelow(this.tx, this.kind, providerUid);
  }

  /** A page of those of a provider. */
  async findPage(providerUid: string, order: SentOrder<Column>, offset: number, limit: number): Promise<Row[]> {
    const rows = await this.all(this.sent.page(order), { providerUid, offset, limit });
    const sign = order.descending ? -1 : 1;
    const compare = <T>(a: T, b: T) => (a < b ? -sign : a > b ? sign : 0);
    return rows.sort((a, b) => compare(a[order.by], b[order.by]) || compare(a.uid, b.uid));
  }

  /** Those of a provider in the order of uids, from the first one after `after`, at most `limit`. */
  async findAfter(providerUid: string, after: string, limit: number): Promise<Row[]> {
    // Who asks for a second slice looks at many, which takes longer than to read them.
    await this.tx.pause?.(after !== "");
    return this.all(this.sent.slice, { providerUid, after, limit });
  }

  /**
   * Those of a provider in the order of their last changes, at most `limit`.
   *
   * @param after the time and the uid of the last one before
   */
  async findChanged(
    providerUid: string,
    after: { readonly timeMs: number; readonly uid: string },
    limit: number,
  ): Promise<Row[]> {
    await this.tx.pause?.(after.uid !== "");
    return this.all(this.sent.changed, { providerUid, timeMs: after.timeMs, after: after.uid, limit });
  }

  findByExternalId(providerUid: string, externalId: string): Promise<Row | undefined> {
    return this.first(this.sent.byExternalId, { providerUid, externalId });
  }
}
