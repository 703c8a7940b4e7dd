// `arbor audit`: the commands that read the audit log, while a server runs or without one.
import type { JsonObject } from "@bufbuild/protobuf";
import { followStore } from "../../app/installation.js";
import { formatLogName } from "../../audit/chain.js";
import { createEventFeed } from "../../audit/event-feed.js";
import { exportChain, parseBody } from "../../audit/export.js";
import { verifyLog } from "../../audit/verify.js";
import type { Settings } from "../../config/config.js";
import { resolveName } from "../../iam/operator/names.js";
import { notFound } from "../../kernel/errors.js";
import { systemClock } from "../../kernel/time.js";
import type { AuditEventRow } from "../../store/audit/events.js";
import type { AuditRowFilter } from "../../store/audit/log.js";
import type { Store } from "../../store/store.js";
import type { StoredAuditRow } from "../../store/tables/audit.js";
import type { Tx } from "../../store/transaction.js";
import { invalidFlag } from "../errors.js";
import { createEventFormatter, findWarning, formatReport } from "../output/audit-log.js";
import { escapeControls, withStdout } from "../output/terminal.js";
import { type Format, parseTimeRange, type TimeFlags } from "../remote/flags.js";
import { withInstallation } from "./host.js";

const MAX_ROWS = 1_000_000;

/** The flags that select rows. */
interface RowFlags extends TimeFlags {
  readonly org?: string;
  readonly subject?: string;
  readonly actor?: string;
  readonly type?: string;
  readonly requestId?: string;
  readonly output: Format;
  readonly columns?: string;
}

/**
 * `arbor audit list`
 *
 * @throws ApiError NOT_FOUND for an organisation without a log
 * @throws CommandError INVALID_ARGUMENT for an invalid size or time
 */
export async function auditListCommand(
  settings: Settings,
  { pageSize, ...flags }: RowFlags & { pageSize: string },
): Promise<void> {
  const count = /^\d{1,7}$/.test(pageSize) ? Number(pageSize) : 0;
  if (count < 1 || count > MAX_ROWS) {
    throw invalidFlag("--page-size", `must be a number from 1 to ${MAX_ROWS}`);
  }
  const times = parseTimeRange(flags);
  await withInstallation(settings, "read", async ({ store }) => {
    const { org: root, ...equals } = await resolveFlags(store, flags);
    const filter = { ...equalsOf(equals), ...times };
    if (root !== undefined) await assertLog(store, root);
    const rows = await store.read((tx) => tx.audit.listNewest(count, root, filter));
    await withStdout(async ({ write, terminal }) => {
      const list = createEventFormatter(flags, terminal);
      if (rows.length === 0) await write(list.page([]));
      for (const some of takeSmall(rows)) await write(list.page(await store.read((tx) => toJson(tx, some))));
    });
  });
}

/**
 * `arbor audit tail`: prints changes as they happen, until the command or the reader of its output ends.
 *
 * @throws ApiError NOT_FOUND for an organisation without a log, RESOURCE_EXHAUSTED when standard output is read too slowly
 */
export async function auditTailCommand(settings: Settings, flags: RowFlags): Promise<void> {
  let resolved = flags;
  await withInstallation(settings, "read", async ({ store }) => {
    resolved = await resolveFlags(store, flags);
    if (resolved.org !== undefined) await assertLog(store, resolved.org);
  });
  const { org: root } = resolved;
  const equals = Object.entries(equalsOf(resolved)) as [keyof AuditEventRow, string][];
  const onProblem = (problem: string, error?: unknown) => {
    const reason = error instanceof Error ? `: ${error.message}` : "";
    process.stderr.write(`arbor: warning: ${escapeControls(`${problem}${reason}`)}\n`);
  };
  const store = await followStore(settings);
  const feed = createEventFeed({ store, onProblem });
  const reader = feed.follow(root, (row) => equals.every(([column, value]) => row[column] === value));
  await withStdout(async ({ write, closed, terminal }) => {
    const list = createEventFormatter(flags, terminal);
    await reader.begin(closed);
    while (!closed.aborted) {
      const rows = await reader.next(IDLE_MS, closed);
      for (const some of takeSmall(rows)) await write(list.page(await store.read((tx) => toJson(tx, some))));
    }
  }).finally(() => reader.close());
}

/** The longest wait for rows, in milliseconds. */
const IDLE_MS = 60_000;

function equalsOf({ subject, actor, type, requestId }: RowFlags): AuditRowFilter {
  return {
    ...(subject !== undefined && { subjectUid: subject }),
    ...(actor !== undefined && { actorUid: actor }),
    ...(type !== undefined && { type }),
    ...(requestId !== undefined && { requestId }),
  };
}

// A subject that is a name is a group or a person; others are found in the audit log itself.
async function resolveFlags<Flags extends Pick<RowFlags, "org" | "subject" | "actor">>(
  store: Store,
  flags: Flags,
): Promise<Flags> {
  const { org, subject, actor } = flags;
  // An unset variable of a shell must not select other rows. An empty organisation selects those of the installation.
  for (const [name, value] of Object.entries({ subject, actor })) {
    if (value === "") throw invalidFlag(`--${name}`, "must not be empty");
  }
  return store.read(async (tx) => ({
    ...flags,
    ...(org !== undefined && { org: await resolveName(tx, "group", org, "org") }),
    ...(subject !== undefined && {
      subject: await resolveName(tx, subject.includes("@") ? "identity" : "group", subject, "subject"),
    }),
    ...(actor !== undefined && { actor: await resolveName(tx, "identity", actor, "actor") }),
  }));
}

const logKind = { displayName: "audit log", type: "audit.arbor.dev/Log" };

// The log of the installation always exists, that of an organisation from its creation on.
async function assertLog(store: Store, rootUid: string): Promise<void> {
  const isKnown = await store.read(async (tx) => {
    if (rootUid === "" || (await tx.auditChain.lastSeq(rootUid)) > 0) return true;
    if ((await tx.audit.listNewest(1, rootUid)).length > 0) return true;
    return (
      (await tx.auditChain.findHead(rootUid)) !== undefined || (await tx.auditCheckpoints.find(rootUid)) !== undefined
    );
  });
  if (!isKnown) throw notFound(logKind, rootUid, `there is no log of ${escapeControls(rootUid)}`);
}

/**
 * `arbor audit export`: prints JSON lines, see {@link exportChain}.
 *
 * @throws ApiError NOT_FOUND for an organisation without a log
 * @throws Error when the log has no signed head
 */
export async function auditExportCommand(settings: Settings, { org }: { org: string }): Promise<void> {
  await withInstallation(settings, "read", async ({ store, keys }) => {
    const root = await store.read((tx) => resolveName(tx, "group", org, "org"));
    await assertLog(store, root);
    await withStdout(async ({ write }) => {
      for await (const line of exportChain(store, root, keys)) {
        await write(`${escapeControls(JSON.stringify(line))}\n`);
      }
    });
  });
}

/**
 * `arbor audit verify`: prints a line for each log.
 *
 * @throws ApiError NOT_FOUND for an organisation without a log, INVALID_ARGUMENT for an empty one
 * @throws Error with the first fault of each log that differs from its sealed state.
 */
export async function auditVerifyCommand(settings: Settings, { org }: { org?: string }): Promise<void> {
  // An empty root may come from an unset variable of a script, and would verify the log of the installation only.
  if (org === "") throw invalidFlag("--org", "must not be empty; all logs unless set");
  const faults: string[] = [];
  // All logs are read as of now, however long that takes. What is sealed meanwhile is not seen.
  const beganMs = systemClock();
  await withInstallation(settings, "read", async ({ store, keys }) => {
    const { org: root } = await resolveFlags(store, org === undefined ? {} : { org });
    if (root !== undefined) await assertLog(store, root);
    const roots = root === undefined ? await store.read((tx) => tx.auditChain.listRoots()) : [root];
    if (roots.length === 0) process.stdout.write("no audit logs\n");
    for (const rootUid of roots) {
      const report = await verifyLog(store, rootUid, keys);
      const name = escapeControls(formatLogName(rootUid));
      process.stdout.write(`${name}: ${formatReport(report)}\n`);
      const warning = findWarning(report, beganMs);
      if (warning !== undefined) process.stderr.write(`arbor: warning: ${name}: ${warning}\n`);
      if (report.fault) faults.push(`${name}: seq ${report.fault.seq}: ${report.fault.what}`);
    }
  });
  if (faults.length > 0) throw new Error(`the audit log is not what was sealed\n${faults.join("\n")}`);
}

/** Bodies are read until they have this many bytes together. */
const BODY_BYTES_PER_READ = 4 * 1024 * 1024;
/** Rows that are printed at once. */
const ROWS_PER_PAGE = 1_000;

function* takeSmall<R extends StoredAuditRow>(rows: readonly R[]): Generator<readonly R[]> {
  for (let start = 0; start < rows.length; ) {
    let end = start;
    for (let bytes = 0; end < rows.length && end - start < ROWS_PER_PAGE && bytes < BODY_BYTES_PER_READ; end++)
      bytes += rows[end]?.bodyBytes ?? 0;
    yield rows.slice(start, end);
    start = end;
  }
}

async function toJson(tx: Tx, rows: readonly StoredAuditRow[]): Promise<JsonObject[]> {
  const bodies = await tx.audit.readBodies(rows);
  return rows.map((row) => {
    const { id, timeMs, bodyBytes, seq: _, ...shown } = row as StoredAuditRow & Partial<AuditEventRow>;
    const body = bodies.get(id);
    return {
      time: new Date(timeMs).toISOString(),
      ...shown,
      ...(body !== undefined && { body: parseBody(body) as JsonObject }),
    };
  });
}
