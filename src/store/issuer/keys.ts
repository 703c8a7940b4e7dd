// Keys that sign and verify, sealed with the master key.
import { deleteRows, insertRow, selectRows, updateRows } from "../rows.js";
import { TransactionPart } from "../statement.js";
import type { KeyRow, KeyState } from "../tables/tokens.js";

const list = selectRows("keys", [], { orderBy: ["createTimeMs", "kid"] });
const insert = insertRow("keys");
const setState = updateRows("keys", ["kid"], ["state", "nextTimeMs"]);
const remove = deleteRows("keys", "kid");

export class Keys extends TransactionPart {
  list(): Promise<KeyRow[]> {
    return this.all(list, {});
  }

  insert(row: KeyRow): Promise<void> {
    return this.run(insert, row);
  }

  setState(kid: string, state: KeyState, nextTimeMs: number | null): Promise<void> {
    return this.run(setState, { kid, state, nextTimeMs });
  }

  /** Does nothing when the key does not exist. */
  delete(kid: string): Promise<void> {
    return this.run(remove, { kid });
  }
}
