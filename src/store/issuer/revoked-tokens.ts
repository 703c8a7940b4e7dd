// API tokens that were revoked by themselves, until they have expired. A call reads whether its token is one of them together
// with its identity (../iam/access.ts).
import { and, gt, lt, sql } from "drizzle-orm";
import { insertMissing, selectAny } from "../rows.js";
import { buildEquals, rowLimit, statement, TransactionPart, value } from "../statement.js";
import type { RevokedTokenRow } from "../tables/tokens.js";

const any = selectAny("revokedTokens", "identityUid", "tokenId");
const insert = insertMissing("revokedTokens");
const listValid = statement<{ identityUid: string; nowMs: number; limit: number }, { tokenId: string }>((q, t) =>
  q
    .select({ tokenId: t.revokedTokens.tokenId })
    .from(t.revokedTokens)
    .where(and(buildEquals(t.revokedTokens, "identityUid"), gt(t.revokedTokens.expireTimeMs, value("nowMs"))))
    .limit(rowLimit("limit")),
);
// By the whole key: a token id may be listed for several identities, because whoever revokes one names any id.
const sweep = statement<{ bound: number; limit: number }, object>((q, t) => {
  const { identityUid, tokenId, expireTimeMs } = t.revokedTokens;
  const old = q
    .select({ identityUid, tokenId })
    .from(t.revokedTokens)
    .where(lt(expireTimeMs, value("bound")))
    .limit(rowLimit("limit"));
  return q.delete(t.revokedTokens).where(sql`(${identityUid}, ${tokenId}) in ${old}`).returning({ tokenId });
});

export class RevokedTokens extends TransactionPart {
  /** Whether the token of this identity was revoked. */
  isRevoked(identityUid: string, tokenId: string): Promise<boolean> {
    return this.has(any, { identityUid, tokenId });
  }

  /** Does nothing when the token of this identity was revoked before. */
  insert(row: RevokedTokenRow): Promise<void> {
    return this.run(insert, row);
  }

  /** How many tokens of an identity are revoked and have not expired: at most `limit`. */
  count(identityUid: string, nowMs: number, limit: number): Promise<number> {
    return this.countOf(listValid, { identityUid, nowMs, limit });
  }

  /** As the sweep of tickets. */
  sweep(timeMs: number, limit: number): Promise<number> {
    return this.countOf(sweep, { bound: timeMs, limit });
  }
}
