import type { Ids } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import type { Awaitable, Tx } from "../../store/port.js";

/** Records something done with a command on the host; it has no actor among the identities. */
export function auditOnHost(tx: Tx, type: string, subjectUid: string, timeMs: number, ids: Ids): Awaitable<void> {
  return tx.audit.append({
    rootUid: rootOf(subjectUid),
    timeMs,
    type,
    method: "arbor",
    subjectUid,
    actorUid: "",
    tokenId: "",
    requestId: ids.newId(),
    remoteAddress: "",
  });
}
