// Whether everything that is sealed opens with the master key.
import { sql } from "drizzle-orm";
import { schema } from "../tables/schema-sqlite.js";
import type { KeyRow } from "../tables/tokens.js";
import type { Check, CheckContext } from "./findings.js";

const PER_PAGE = 500;
const { identityProviders, tickets } = schema;

/** Opens secrets; each function throws Error when the secret does not open. */
export interface SecretOpener {
  /** The name of the setting by which a server recognises its master key. */
  readonly masterKeyCheck: string;
  /** Opens the value of that setting. */
  checkValue(sealed: string): void;
  key(row: KeyRow): void;
  clientSecret(providerUid: string, sealed: string): void;
  ticket(kind: string, hash: string, sealed: string): void;
}

/**
 * Creates the check.
 *
 * @param opener opens secrets with the master key
 * @param nowMs tickets that expired before, in epoch milliseconds, are left out
 */
export function createSecretCheck(opener: SecretOpener, nowMs: number): Check {
  return {
    name: "keys",
    async run(context) {
      // With another master key nothing opens, which is one fault.
      if (!(await checkMasterKey(context, opener))) return;
      await checkKeys(context, opener);
      await checkClientSecrets(context, opener);
      await checkTickets(context, opener, nowMs);
    },
  };
}

async function checkMasterKey({ db, report, leaveOut }: CheckContext, opener: SecretOpener): Promise<boolean> {
  const stored = await db.store.read((tx) => tx.settings.find(opener.masterKeyCheck));
  if (stored === undefined || opens(() => opener.checkValue(stored))) return true;
  report("master key", {
    table: "settings",
    key: opener.masterKeyCheck,
    problem: "the master key is not the one that the secrets of this database are sealed with",
    remedy: "name the right file with --master-key-file",
  });
  leaveOut("everything that is sealed with the other master key");
  return false;
}

async function checkKeys({ db, report }: CheckContext, opener: SecretOpener): Promise<void> {
  for (const row of await db.store.read((tx) => tx.keys.list())) {
    if (opens(() => opener.key(row))) continue;
    const { kid, purpose, state } = row;
    const isToken = purpose === "api-token";
    report("key", {
      table: "keys",
      key: kid,
      problem: `the key for ${purpose}, which is ${state}, does not open with the master key`,
      remedy: isToken ? `arbor admin keys revoke ${kid}, or restore a backup` : "restore a backup",
    });
  }
}

async function checkClientSecrets({ db, report, progress }: CheckContext, opener: SecretOpener): Promise<void> {
  let after = "";
  for (;;) {
    const rows = await db.all<{ uid: string; sealed: string }>(sql`select uid, sealed_secret as sealed
      from ${identityProviders} where sealed_secret <> '' and uid > ${after} order by uid limit ${PER_PAGE}`);
    const last = rows.at(-1);
    if (last === undefined) return;
    for (const { uid, sealed } of rows) {
      if (opens(() => opener.clientSecret(uid, sealed))) continue;
      report("client secret", {
        table: "identity_providers",
        key: uid,
        problem: "the client secret does not open with the master key",
        remedy: `arbor iam identity-providers update ${uid} --oidc-client-secret-file FILE`,
      });
    }
    after = last.uid;
    progress(after);
  }
}

async function checkTickets({ db, report, progress }: CheckContext, opener: SecretOpener, nowMs: number) {
  let after = "";
  for (;;) {
    const rows = await db.all<{ hash: string; kind: string; data: string | object }>(sql`select hash, kind, data
      from ${tickets} where expire_time_ms > ${nowMs} and hash > ${after} order by hash limit ${PER_PAGE}`);
    const last = rows.at(-1);
    if (last === undefined) return;
    for (const { hash, kind, data } of rows) {
      const { sealed } = (typeof data === "string" ? JSON.parse(data) : data) as { sealed?: string };
      // Some kinds hold what the client encrypted.
      if (sealed === undefined || opens(() => opener.ticket(kind, hash, sealed))) continue;
      report("ticket", {
        table: "tickets",
        key: hash,
        problem: "the state of a login does not open with the master key",
        remedy: "none: the login fails, and can be started again",
      });
    }
    after = last.hash;
    progress("logins");
  }
}

function opens(open: () => void): boolean {
  try {
    open();
    return true;
  } catch {
    return false;
  }
}
