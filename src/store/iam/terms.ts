// Acceptances of terms by groups.
import { deleteRows, insertMissing, selectRows } from "../rows.js";
import { TransactionPart } from "../statement.js";
import type { TermsAcceptanceRow } from "../tables/groups.js";

const accept = insertMissing("termsAcceptances");
const ofGroup = selectRows("termsAcceptances", ["groupUid"]);
const deleteOf = deleteRows("termsAcceptances", "groupUid");

export class Terms extends TransactionPart {
  /** Records the acceptance unless it is already recorded. */
  accept(row: TermsAcceptanceRow): Promise<void> {
    return this.run(accept, row);
  }

  findByGroup(groupUid: string): Promise<TermsAcceptanceRow[]> {
    return this.all(ofGroup, { groupUid });
  }

  deleteOf(groupUid: string): Promise<void> {
    return this.run(deleteOf, { groupUid });
  }
}
