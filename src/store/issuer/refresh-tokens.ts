import { and, asc, desc, eq, gt, gte, lt, or } from "drizzle-orm";
import { deleteRows, insertRow, selectAny, selectRows, sweepRows, updateRows } from "../rows.js";
import { buildEquals, rowLimit, statement, TransactionPart, value } from "../statement.js";
import type { RefreshTokenRow } from "../tables/tokens.js";

const find = selectRows("refreshTokens", ["hash"]);
const insert = insertRow("refreshTokens");
const setUsed = updateRows("refreshTokens", ["hash"], ["used"]);
const setExpiry = updateRows("refreshTokens", ["hash"], ["expireTimeMs"]);
const deleteFamily = deleteRows("refreshTokens", "family");
const sweep = sweepRows("refreshTokens", "hash", "expireTimeMs");

const deleteOf = statement<{ identityUid: string }, { family: string }>((q, t) =>
  q
    .delete(t.refreshTokens)
    .where(buildEquals(t.refreshTokens, "identityUid"))
    .returning({ family: t.refreshTokens.family }),
);
const anyInFamily = selectAny("refreshTokens", "family", "identityUid");

/** The place of a login in the list of those of its identity. */
export interface LoginPlace {
  readonly createTimeMs: number;
  readonly family: string;
}

// The tokens that can be exchanged, one or two for each login.
const listUnused = statement<
  LoginPlace & { identityUid: string; used: boolean; sinceMs: number; nowMs: number; limit: number },
  Omit<RefreshTokenRow, "identityUid" | "used">
>((q, t) => {
  const { hash, family, grant, createTimeMs, expireTimeMs } = t.refreshTokens;
  const isAfter = or(
    lt(createTimeMs, value("createTimeMs")),
    and(eq(createTimeMs, value("createTimeMs")), gt(family, value("family"))),
  );
  return q
    .select({ hash, family, grant, createTimeMs, expireTimeMs })
    .from(t.refreshTokens)
    .where(
      and(
        buildEquals(t.refreshTokens, "identityUid", "used"),
        gte(createTimeMs, value("sinceMs")),
        gt(expireTimeMs, value("nowMs")),
        isAfter,
      ),
    )
    .orderBy(desc(createTimeMs), asc(family))
    .limit(rowLimit("limit"));
});

export class RefreshTokens extends TransactionPart {
  find(hash: string): Promise<RefreshTokenRow | undefined> {
    return this.first(find, { hash });
  }

  insert(row: RefreshTokenRow): Promise<void> {
    return this.run(insert, row);
  }

  markUsed(hash: string): Promise<void> {
    return this.run(setUsed, { hash, used: true });
  }

  /** Moves the end of one; does nothing where it is gone. */
  extend(hash: string, expireTimeMs: number): Promise<void> {
    return this.run(setExpiry, { hash, expireTimeMs });
  }

  /**
   * Lists the logins of an identity that can go on, the newest first: at most `limit` of those after `after`.
   *
   * @param sinceMs leaves out logins before
   * @param nowMs leaves out those that have expired
   */
  async listLogins(
    identityUid: string,
    after: LoginPlace,
    { limit, ...times }: { readonly sinceMs: number; readonly nowMs: number; readonly limit: number },
  ): Promise<Omit<RefreshTokenRow, "identityUid" | "used">[]> {
    // A login whose token was lost has two that can be exchanged.
    const rows = await this.all(listUnused, { identityUid, used: false, ...after, ...times, limit: 2 * limit });
    return rows.filter(({ family }, i) => family !== rows[i - 1]?.family).slice(0, limit);
  }

  /** Whether a family is that of a login of an identity. */
  isFamilyOf(family: string, identityUid: string): Promise<boolean> {
    return this.has(anyInFamily, { family, identityUid });
  }

  deleteFamily(family: string): Promise<void> {
    return this.run(deleteFamily, { family });
  }

  /** Ends all logins of an identity; returns how many. */
  async deleteOf(identityUid: string): Promise<number> {
    const deleted = await this.all(deleteOf, { identityUid });
    return new Set(deleted.map(({ family }) => family)).size;
  }

  /** As the sweep of tickets. */
  sweep(timeMs: number, limit: number): Promise<number> {
    return this.countOf(sweep, { bound: timeMs, limit });
  }
}
