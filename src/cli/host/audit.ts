// `arbor audit`: the commands that read the audit log, while a server runs or without one.
import { formatLogName } from "../../audit/chain.js";
import { exportChain } from "../../audit/export.js";
import { verifyLog } from "../../audit/verify.js";
import type { Settings } from "../../config/config.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import type { RecordedAuditRow, Store } from "../../store/port.js";
import { findWarning, formatReport } from "../output/log-report.js";
import { createTable } from "../output/table.js";
import { escapeControls, withStdout } from "../output/terminal.js";
import { onHost } from "./host.js";

const MAX_ROWS = 1_000_000;

/**
 * `arbor audit list`
 *
 * @throws ApiError INVALID_ARGUMENT for an invalid limit, NOT_FOUND for an organisation without a log
 */
export async function auditListCommand(
  settings: Settings,
  { root, limit, json = false }: { root?: string; limit: string; json?: boolean },
): Promise<void> {
  const count = /^\d{1,7}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > MAX_ROWS) {
    throw invalidArgument({ field: "limit", description: `limit must be a number from 1 to ${MAX_ROWS}` });
  }
  await onHost(settings, "read", async ({ store }) => {
    if (root !== undefined) await assertLog(store, root);
    const rows = await store.read((tx) => tx.audit.newest(count, root));
    for (const line of json ? rows.map(toJsonLine) : formatTable(rows))
      process.stdout.write(`${escapeControls(line)}\n`);
  });
}

const logKind = { displayName: "audit log", type: "audit.arbor.dev/Log" };

// The installation has a log, with rows or without any. An organisation has one from its creation on.
async function assertLog(store: Store, rootUid: string): Promise<void> {
  const isKnown = await store.read(async (tx) => {
    if (rootUid === "" || (await tx.auditChain.lastSeq(rootUid)) > 0) return true;
    if ((await tx.audit.newest(1, rootUid)).length > 0) return true;
    return (await tx.auditChain.head(rootUid)) !== undefined || (await tx.auditCheckpoints.get(rootUid)) !== undefined;
  });
  if (!isKnown) throw notFound(logKind, rootUid, `there is no log of ${escapeControls(rootUid)}`);
}

/**
 * `arbor audit export`: a JSON object per line on standard output, see {@link exportChain}.
 *
 * @throws ApiError NOT_FOUND for an organisation without a log
 * @throws Error when the log has no signed head
 */
export async function auditExportCommand(settings: Settings, { root }: { root: string }): Promise<void> {
  await onHost(settings, "read", async ({ store, keys }) => {
    await assertLog(store, root);
    await withStdout(async ({ write }) => {
      for await (const line of exportChain(store, root, keys)) {
        await write(`${escapeControls(JSON.stringify(line))}\n`);
      }
    });
  });
}

/**
 * `arbor audit verify`: a line per log on standard output.
 *
 * @throws ApiError NOT_FOUND for an organisation without a log, INVALID_ARGUMENT for an empty one
 * @throws Error with the first fault of each log that differs from its sealed state.
 */
export async function auditVerifyCommand(settings: Settings, { root }: { root?: string }): Promise<void> {
  // Such as an unset variable of a script, which would verify the log of the installation alone.
  if (root === "") throw invalidArgument({ field: "root", description: "root must not be empty; all logs unless set" });
  const faults: string[] = [];
  await onHost(settings, "read", async ({ store, keys, clock }) => {
    if (root !== undefined) await assertLog(store, root);
    const roots = root === undefined ? await store.read((tx) => tx.auditChain.roots()) : [root];
    if (roots.length === 0) process.stdout.write("no audit logs\n");
    for (const rootUid of roots) {
      const report = await verifyLog(store, rootUid, keys);
      const name = escapeControls(formatLogName(rootUid));
      process.stdout.write(`${name}: ${formatReport(report)}\n`);
      const warning = findWarning(report, clock());
      if (warning !== undefined) process.stderr.write(`arbor: warning: ${name}: ${warning}\n`);
      if (report.fault) faults.push(`${name}: seq ${report.fault.seq}: ${report.fault.what}`);
    }
  });
  if (faults.length > 0) throw new Error(`the audit log is not what was sealed\n${faults.join("\n")}`);
}

function toJsonLine({ timeMs, ...row }: RecordedAuditRow): string {
  return JSON.stringify({ time: formatTime(timeMs), ...row });
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}

function formatTable(rows: readonly RecordedAuditRow[]): string[] {
  const columns = ["TIME", "TYPE", "SUBJECT", "ACTOR", "NAME", "REQUEST", "FROM"].map((title) => ({ title }));
  const cells = rows.map(({ timeMs, type, subjectUid, actorUid, actorName, requestId, remoteAddress }) => {
    return [formatTime(timeMs), type, subjectUid, actorUid, actorName, requestId, remoteAddress];
  });
  return createTable(columns, { colour: false, width: undefined }).lines(cells);
}
