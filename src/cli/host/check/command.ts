// `arbor check`: reads the whole database, while a server runs or without one, and prints inconsistencies.
import { existsSync } from "node:fs";
import { findMasterKeyFile } from "../../../app/installation.js";
import type { Settings } from "../../../config/config.js";
import { readDatabaseTls } from "../../../config/tls.js";
import { hasSecrets, MASTER_KEY_CHECK, readMasterKey } from "../../../issuer/keys/master-key.js";
import { systemClock } from "../../../kernel/time.js";
import type { CheckDatabase } from "../../../store/check/database.js";
import { derivedIndexes } from "../../../store/check/derived.js";
import { type Check, type CheckResult, runCheck } from "../../../store/check/findings.js";
import { integrityCheck, schemaCheck } from "../../../store/check/integrity.js";
import { createQuotaCheck } from "../../../store/check/quotas.js";
import { readPg } from "../../../store/check/read-pg.js";
import { readSqlite } from "../../../store/check/read-sqlite.js";
import { createUidCheck, referenceCheck } from "../../../store/check/references.js";
import { rebuildDerived } from "../../../store/check/repair.js";
import { createSecretCheck } from "../../../store/check/secrets.js";
import { resourceIndexes } from "../../../store/resource-indexes.js";
import { createProgressLine, escapeControls } from "../../output/terminal.js";
import { print } from "../host.js";
import { createAuditCheck, createSecretOpener } from "./sealed.js";

/** How often progress is written, in milliseconds. */
const EVERY_MS = { terminal: 100, lines: 1_000 };

const storedChecks: readonly Check[] = [schemaCheck, integrityCheck, referenceCheck, createUidCheck(resourceIndexes)];
const derivedChecks = derivedIndexes.map(({ check }) => check);

/** The flags of `arbor check`. */
export interface CheckFlags {
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
    await rebuildDerived({ ...settings, databaseTls: readDatabaseTls(settings) }, broken, progressLine.show);
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
  const { databaseUrl, data } = settings;
  return databaseUrl === undefined ? readSqlite(data) : readPg(databaseUrl, readDatabaseTls(settings));
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
