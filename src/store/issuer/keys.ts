// Keys that sign and verify, sealed with the master key.
import { asc } from "drizzle-orm";
import { deleteRows, insertRow, selectRows, updateRows } from "../rows.js";
import { statement, TransactionPart } from "../statement.js";
import type { KeyRow, KeyState } from "../tables/tokens.js";

const list = selectRows("keys", [], { orderBy: ["createTimeMs", "kid"] });
const listStates = statement<object, Pick<KeyRow, "kid" | "state">>((q, { keys }) =>
  q.select({ kid: keys.kid, state: keys.state }).from(keys).orderBy(asc(keys.createTimeMs), asc(keys.kid)),
);
const insert = insertRow("keys");
const setState = updateRows("keys", ["kid"], ["state", "nextTimeMs"]);
const remove = deleteRows("keys", "kid");

export class Keys extends TransactionPart {
  list(): Promise<KeyRow[]> {
    return this.all(list, {});
  }

  /** Which keys there are, in the order of {@link list}. */
  listStates(): Promise<Pick<KeyRow, "kid" | "state">[]> {
    return this.all(listStates, {});
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
