// What is left to do after a change of the groups of a directory (src/scim/rights.ts).
import { asc, count } from "drizzle-orm";
import { deleteRows, putRow, selectRows } from "../rows.js";
import { buildEquals, rowLimit, statement, statementFamily, TransactionPart } from "../statement.js";
import type { ScimWorkKind, ScimWorkRow } from "../tables/scim.js";

const put = putRow("scimWork", "providerUid", "kind", "uid");
const find = selectRows("scimWork", ["providerUid", "kind", "uid"]);
const remove = deleteRows("scimWork", "providerUid", "kind", "uid");

const some = statementFamily<"all" | "provider", { providerUid?: string; limit: number }, ScimWorkRow>(
  String,
  (which) =>
    (q, { scimWork }) =>
      q
        .select()
        .from(scimWork)
        .where(which === "all" ? undefined : buildEquals(scimWork, "providerUid"))
        .orderBy(asc(scimWork.providerUid), asc(scimWork.kind), asc(scimWork.uid))
        .limit(rowLimit("limit")),
);

const countOfProvider = statement<{ providerUid: string }, { total: number }>((q, t) =>
  q.select({ total: count() }).from(t.scimWork).where(buildEquals(t.scimWork, "providerUid")),
);

export class ScimWork extends TransactionPart {
  /** The first things to do in the order of their keys, at most `limit`: of a provider, or of all. */
  list(limit: number, providerUid?: string): Promise<ScimWorkRow[]> {
    return providerUid === undefined
      ? this.all(some("all"), { limit })
      : this.all(some("provider"), { providerUid, limit });
  }

  find(key: Omit<ScimWorkRow, "position">): Promise<ScimWorkRow | undefined> {
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

  delete({ providerUid, kind, uid }: Omit<ScimWorkRow, "position">): Promise<void> {
    return this.run(remove, { providerUid, kind, uid });
  }

  /** How much there is to do of a provider; reads all of it. */
  async count(providerUid: string): Promise<number> {
    return (await this.first(countOfProvider, { providerUid }))?.total ?? 0;
  }
}
