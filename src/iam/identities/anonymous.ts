import { ANONYMOUS_UID } from "../../kernel/ids.js";
import type { Tx } from "../../store/port.js";

/** Makes sure that the identity exists. Nobody can assume it, as it has no relationship. */
export async function seedAnonymous(tx: Tx, nowMs: number): Promise<void> {
  if ((await tx.identities.get(ANONYMOUS_UID)) !== undefined) return;
  await tx.identities.insert({
    uid: ANONYMOUS_UID,
    groupUid: null,
    name: "anonymous",
    description: "Everybody, without credentials (built-in)",
    issuer: "",
    subject: "",
    email: "",
    emailUnverified: "",
    providerUid: null,
    company: "",
    relation: 0,
    relationship: {},
    metadata: {},
    notBefore: 0,
    lastSeenTimeMs: nowMs,
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  });
}
