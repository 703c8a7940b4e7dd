// Checks that need the master key: whether it decrypts all secrets, and the signatures of the audit log.
import type { KeyObject } from "node:crypto";
import { formatLogName } from "../../../audit/chain.js";
import { type AuditVerifyingKeys, verifyLog } from "../../../audit/verify.js";
import { formatSecretContext } from "../../../iam/identity-providers/identity-provider.js";
import { unsealKeyPair, unsealSecret } from "../../../issuer/keys/key-generation.js";
import { MASTER_KEY_CHECK, type MasterKey } from "../../../issuer/keys/master-key.js";
import { formatTicketContext } from "../../../issuer/oauth/state.js";
import type { Check, CheckContext } from "../../../store/check/findings.js";
import type { SecretOpener } from "../../../store/check/secrets.js";
import type { Store } from "../../../store/port.js";

/** Creates the decryption of an installation's secrets. */
export function createSecretOpener(masterKey: MasterKey): SecretOpener {
  return {
    masterKeyCheck: MASTER_KEY_CHECK,
    checkValue: (sealed) => void masterKey.unseal(sealed, MASTER_KEY_CHECK),
    key: (row) => void (row.purpose === "page-token" ? unsealSecret : unsealKeyPair)(row, masterKey),
    clientSecret: (uid, sealed) => void masterKey.unseal(sealed, formatSecretContext(uid)),
    ticket: (kind, hash, sealed) => void masterKey.unseal(sealed, formatTicketContext(kind, hash)),
  };
}

/** Creates the check of the hash chains of all audit logs, as `arbor audit verify` verifies them. */
export function createAuditCheck(masterKey: MasterKey): Check {
  return {
    name: "audit log",
    async run(context) {
      const { store } = context.db;
      const keys = await readAuditKeys(store, masterKey);
      if (keys === undefined) {
        context.leaveOut("a key for audit does not open, and without it signed heads cannot be verified");
        return;
      }
      const roots = await store.read((tx) => tx.auditChain.listRoots());
      for (const [i, root] of roots.entries()) {
        context.progress(`${i} of ${roots.length} logs`);
        await verify(context, root, keys);
      }
    },
  };
}

async function verify({ db, report }: CheckContext, root: string, keys: AuditVerifyingKeys): Promise<void> {
  const { fault } = await verifyLog(db.store, root, keys);
  if (fault === undefined) return;
  report("audit log", {
    table: "audit_chain",
    key: `${formatLogName(root)}, seq ${fault.seq}`,
    problem: fault.what,
    remedy: "keep this database as evidence, and compare the log with the one in a backup",
  });
}

async function readAuditKeys(store: Store, masterKey: MasterKey): Promise<AuditVerifyingKeys | undefined> {
  const known = new Map<string, KeyObject>();
  for (const row of await store.read((tx) => tx.keys.list())) {
    if (row.purpose !== "audit") continue;
    try {
      known.set(row.kid, unsealKeyPair(row, masterKey).publicKey);
    } catch {
      return undefined;
    }
  }
  return {
    findAuditVerifyingKey: (kid) => known.get(kid),
    // Everything is read from one snapshot.
    refresh: async () => false,
  };
}
