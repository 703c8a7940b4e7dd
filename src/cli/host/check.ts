// `arbor check`: reads the whole database, while a server runs or without one, and prints inconsistencies.

import type { KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { findMasterKeyFile } from "../../app/installation.js";
import { formatLogName } from "../../audit/chain.js";
import { type AuditVerifyingKeys, verifyLog } from "../../audit/verify.js";
import type { Settings } from "../../config/config.js";
import { findSessionUrl } from "../../config/database.js";
import { readDatabaseTls } from "../../config/tls.js";
import { formatSecretContext } from "../../iam/identity-providers/identity-provider.js";
import { unsealKeyPair, unsealSecret } from "../../issuer/keys/key-generation.js";
import { hasSecrets, MASTER_KEY_CHECK, type MasterKey, readMasterKey } from "../../issuer/keys/master-key.js";
import { formatTicketContext } from "../../issuer/oauth/tickets.js";
import { systemClock } from "../../kernel/time.js";
import { type CheckDatabase, readPg, readSqlite } from "../../store/check/database.js";
import { derivedIndexes } from "../../store/check/derived.js";
import { type Check, type CheckContext, type CheckResult, runCheck } from "../../store/check/findings.js";
import { integrityCheck, schemaCheck } from "../../store/check/integrity.js";
import { createQuotaCheck } from "../../store/check/quotas.js";
import { createUidCheck, referenceCheck } from "../../store/check/references.js";
import { rebuildDerived } from "../../store/check/repair.js";
import { createSecretCheck, type SecretOpener } from "../../store/check/secrets.js";
import { kinds } from "../../store/kinds.js";
import type { Store } from "../../store/store.js";
import { createProgressLine, escapeControls } from "../output/terminal.js";
import { print } from "./host.js";

/** How often progress is written, in milliseconds. */
const EVERY_MS = { terminal: 100, lines: 1_000 };

const storedChecks: readonly Check[] = [schemaCheck, integrityCheck, referenceCheck, createUidCheck(kinds)];
const derivedChecks = derivedIndexes.map(({ check }) => check);

interface CheckFlags {
  readonly repair?: boolean;
  readonly json?: boolean;
  readonly progress?: boolean;
}

/**
 * Runs the command. It prints each finding with its remedy to standard output, and writes nothing to the database
 * unless `repair` is set.
 *
 * @throws Error when something was found and not repaired, and when there is no database
 */
export async function checkCommand(
  settings: Settings,
  { repair = false, json = false, progress = false }: CheckFlags,
): Promise<void> {
  const progressLine = createCheckProgress(progress);
  const output = json ? printJson : printText;
  const runAll = async (checks: readonly Check[]) => {
    const results: CheckResult[] = [];
    const db = await openDatabase(settings);
    try {
      for (const check of checks) {
        const result = await runCheck(check, db, progressLine.show);
        progressLine.clear();
        output(result);
        results.push(result);
        if (!result.mayContinue) break;
      }
    } finally {
      progressLine.clear();
      await db.close();
    }
    return results;
  };

  const first = await runAll([...storedChecks, ...derivedChecks, ...createOtherChecks(settings)]);
  const isBroken = (name: string) => first.some(({ check, ...result }) => check === name && countFindings(result) > 0);
  const broken = derivedIndexes.filter(({ check }) => isBroken(check.name));
  let results = first;
  if (repair && broken.length > 0) {
    const location = { data: settings.data, url: findSessionUrl(settings), tls: readDatabaseTls(settings) };
    await rebuildDerived(location, broken, progressLine.show);
    progressLine.clear();
    const rebuilt = broken.map(({ check }) => check.name);
    print(json ? JSON.stringify({ rebuilt }) : `rebuilt: ${rebuilt.join(", ")}`);
    const isDerived = (name: string) => derivedChecks.some((check) => check.name === name);
    results = [...first.filter(({ check }) => !isDerived(check)), ...(await runAll(derivedChecks))];
  }
  const total = results.reduce((sum, result) => sum + countFindings(result), 0);
  if (total > 0) throw new Error(`the check has ${total} ${total === 1 ? "finding" : "findings"}`);
}

async function openDatabase(settings: Settings): Promise<CheckDatabase> {
  const url = findSessionUrl(settings);
  return url === undefined ? readSqlite(settings.data) : readPg(url, readDatabaseTls(settings));
}

function createOtherChecks(settings: Settings): readonly Check[] {
  const file = findMasterKeyFile(settings);
  const quotas = createQuotaCheck(settings.quotas);
  if (!existsSync(file)) return [...createMissingKeyChecks(file), quotas];
  const masterKey = readMasterKey(file, false);
  return [createAuditCheck(masterKey), createSecretCheck(createSecretOpener(masterKey), systemClock()), quotas];
}

function createMissingKeyChecks(file: string): Check[] {
  const reason = `there is no master key file ${file}`;
  const remedy = "restore it from where it is kept, or name it with --master-key-file";
  return [
    { name: "audit log", run: async ({ leaveOut }) => leaveOut(reason) },
    {
      name: "keys",
      async run({ db, report, leaveOut }) {
        if (await db.store.read(hasSecrets)) {
          report("master key", { table: "settings", key: MASTER_KEY_CHECK, problem: reason, remedy });
        }
        leaveOut(reason);
      },
    },
  ];
}

function countFindings({ findings, more }: Pick<CheckResult, "findings" | "more">): number {
  return findings.length + more;
}

function printText({ check, findings, more, notes, leftOut }: CheckResult): void {
  const total = findings.length + more;
  const state = total === 0 ? "sound" : `${total} ${total === 1 ? "finding" : "findings"}`;
  const isLeftOut = total === 0 && leftOut.length > 0 && notes.length === 0;
  if (!isLeftOut) print(`${check}: ${state}`);
  for (const { table, key, problem, remedy } of findings) {
    print(escapeControls(`  ${table} ${key}: ${problem}`));
    print(escapeControls(`    remedy: ${remedy}`));
  }
  if (more > 0) print(`  and ${more} more`);
  for (const note of notes) print(escapeControls(`  note: ${note}`));
  for (const reason of leftOut) print(escapeControls(`${check}: left out: ${reason}`));
}

// A line per check, and before it one per finding.
function printJson({ check, findings, more, notes, leftOut }: CheckResult): void {
  for (const { table, key, problem, remedy } of findings)
    print(escapeControls(JSON.stringify({ check, table, key, problem, remedy })));
  print(escapeControls(JSON.stringify({ check, findings: findings.length + more, notes, leftOut })));
}

function createCheckProgress(always: boolean) {
  const { stderr } = process;
  const line = createProgressLine(stderr);
  let nextMs = 0;
  return {
    clear: line.clear,
    show(text: string): void {
      if (!stderr.isTTY && !always) return;
      const nowMs = performance.now();
      if (nowMs < nextMs) return;
      nextMs = nowMs + (stderr.isTTY ? EVERY_MS.terminal : EVERY_MS.lines);
      line.show(escapeControls(text));
    },
  };
}

// Checks that need the master key: whether it decrypts all secrets, and the signatures of the audit log.

/** Creates the decryption of an installation's secrets. */
function createSecretOpener(masterKey: MasterKey): SecretOpener {
  return {
    masterKeyCheck: MASTER_KEY_CHECK,
    checkValue: (sealed) => void masterKey.unseal(sealed, MASTER_KEY_CHECK),
    key: (row) => void (row.purpose === "page-token" ? unsealSecret : unsealKeyPair)(row, masterKey),
    clientSecret: (uid, sealed) => void masterKey.unseal(sealed, formatSecretContext(uid)),
    ticket: (kind, hash, sealed) => void masterKey.unseal(sealed, formatTicketContext(kind, hash)),
  };
}

/** Creates the check of the hash chains of all audit logs, as `arbor audit verify` verifies them. */
function createAuditCheck(masterKey: MasterKey): Check {
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
    refresh: async () => {},
  };
}
