// What is left to do after a change of the groups of a directory (src/iam/directories/work.ts).
import { and, asc, count, sql } from "drizzle-orm";
import { deleteRows, putRow, selectRows } from "../rows.js";
import { buildEquals, rowLimit, statement, statementFamily, TransactionPart, value } from "../statement.js";
import type { ScimWorkKind, ScimWorkRow } from "../tables/scim.js";

const put = putRow("scimWork", "providerUid", "kind", "uid");
const find = selectRows("scimWork", ["providerUid", "kind", "uid"]);
const remove = deleteRows("scimWork", "providerUid", "kind", "uid");

// In the order of their keys, from the first one after a key.
const some = statementFamily<"all" | "provider", ScimWorkKey & { limit: number }, ScimWorkRow>(
  String,
  (which) =>
    (q, { scimWork }) => {
      const { providerUid, kind, uid } = scimWork;
      const after =
        which === "all"
          ? sql`(${providerUid}, ${kind}, ${uid}) > (${value("providerUid")}, ${value("kind")}, ${value("uid")})`
          : and(buildEquals(scimWork, "providerUid"), sql`(${kind}, ${uid}) > (${value("kind")}, ${value("uid")})`);
      return q
        .select()
        .from(scimWork)
        .where(after)
        .orderBy(asc(providerUid), asc(kind), asc(uid))
        .limit(rowLimit("limit"));
    },
);

const countOfProvider = statement<{ providerUid: string }, { total: number }>((q, t) =>
  q.select({ total: count() }).from(t.scimWork).where(buildEquals(t.scimWork, "providerUid")),
);
/** What something to do is found by. */
export type ScimWorkKey = Omit<ScimWorkRow, "position">;

export class ScimWork extends TransactionPart {
  /**
   * Things to do in the order of their keys, at most `limit`.
   *
   * @param providerUid of this provider alone; of all unless set
   * @param after the last one before
   */
  list(limit: number, providerUid?: string, after?: ScimWorkKey): Promise<ScimWorkRow[]> {
    const { kind, uid, ...other } = after ?? { providerUid: "", kind: "", uid: "" };
    if (providerUid === undefined) return this.all(some("all"), { ...other, kind: kind as ScimWorkKind, uid, limit });
    return this.all(some("provider"), { providerUid, kind: kind as ScimWorkKind, uid, limit });
  }

  find(key: ScimWorkKey): Promise<ScimWorkRow | undefined> {
    return this.first(find, key);
  }

  /** Notes what is to be done, from the beginning where it is noted already. */
  add(providerUid: string, kind: ScimWorkKind, uid: string): Promise<void> {
    return this.run(put, { providerUid, kind, uid, position: "" });
  }

  /** Sets how far it is. */
  put(row: ScimWorkRow): Promise<void> {
    return this.run(put, row);
  }

  delete({ providerUid, kind, uid }: ScimWorkKey): Promise<void> {
    return this.run(remove, { providerUid, kind, uid });
  }

  /** How much there is to do of a provider; reads all of it. */
  async count(providerUid: string): Promise<number> {
    return (await this.first(countOfProvider, { providerUid }))?.total ?? 0;
  }
}
