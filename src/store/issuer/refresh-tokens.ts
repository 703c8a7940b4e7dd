import { deleteRows, insertRow, selectRows, sweepRows, updateRows } from "../rows.js";
import { TransactionPart } from "../statement.js";
import type { RefreshTokenRow } from "../tables/tokens.js";

const find = selectRows("refreshTokens", ["hash"]);
const insert = insertRow("refreshTokens");
const setUsed = updateRows("refreshTokens", ["hash"], ["used"]);
const deleteFamily = deleteRows("refreshTokens", "family");
const deleteOf = deleteRows("refreshTokens", "identityUid");
const sweep = sweepRows("refreshTokens", "hash", "expireTimeMs");

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

  deleteFamily(family: string): Promise<void> {
    return this.run(deleteFamily, { family });
  }

  deleteOf(identityUid: string): Promise<void> {
    return this.run(deleteOf, { identityUid });
  }

  /** As the sweep of tickets. */
  sweep(timeMs: number, limit: number): Promise<number> {
    return this.countOf(sweep, { bound: timeMs, limit });
  }
}
