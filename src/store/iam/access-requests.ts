// When identities last requested access to a group.
import { deleteRows, putRow, selectRows } from "../rows.js";
import { TransactionPart } from "../statement.js";

const find = selectRows("accessRequests", ["groupUid", "identityUid"]);
const put = putRow("accessRequests", "groupUid", "identityUid");
const deleteOf = deleteRows("accessRequests", "groupUid");

/** When identities last requested access to a group. */
export class AccessRequests extends TransactionPart {
  async findLastMs(groupUid: string, identityUid: string): Promise<number | undefined> {
    return (await this.first(find, { groupUid, identityUid }))?.timeMs;
  }

  put(groupUid: string, identityUid: string, timeMs: number): Promise<void> {
    return this.run(put, { groupUid, identityUid, timeMs });
  }

  deleteOf(groupUid: string): Promise<void> {
    return this.run(deleteOf, { groupUid });
  }
}
