// `arbor admin quotas`, `roles` and `jobs`. Running servers use a new limit or role from the next call on.
import type { Settings } from "../../config/config.js";
import { resolveName } from "../../iam/operator/names.js";
import { listQuotas, type QuotaUsage, setQuotas } from "../../iam/operator/quotas.js";
import {
  createOperatorRole,
  deleteOperatorRole,
  listOperatorRoles,
  type NewOperatorRole,
  type OperatorRole,
} from "../../iam/operator/roles.js";
import { listCapabilityNames } from "../../iam/roles/capability-names.js";
import { randomIds } from "../../kernel/ids.js";
import { isOrganisationQuota, type OrganisationQuota, organisationQuotas, parseLimit } from "../../kernel/quotas.js";
import { roleKind } from "../../store/iam/roles.js";
import type { JobRow } from "../../store/tables/tables.js";
import { invalidFlag } from "../errors.js";
import { confirmDelete } from "../output/confirm.js";
import { formatNamed } from "../output/describe.js";
import { createTable } from "../output/table.js";
import { escapeControls } from "../output/terminal.js";
import { formatTime } from "../output/time.js";
import { print, withInstallation } from "./host.js";

/** `arbor admin quotas list`: the usage and the limits of an organisation. */
export async function quotaListCommand(
  settings: Settings,
  { org, json = false }: { org: string; json?: boolean },
): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    const rows = await store.read(async (tx) =>
      listQuotas(tx, await resolveName(tx, "group", org, "org"), settings.quotas),
    );
    for (const line of json ? rows.map((row) => JSON.stringify(row)) : formatQuotas(rows)) print(line);
  });
}

/**
 * `arbor admin quotas set`
 *
 * @param assignments such as `repos=500`, or `repos=default` for the limit of the settings
 * @throws CommandError INVALID_ARGUMENT for an invalid assignment
 */
export async function quotaSetCommand(
  settings: Settings,
  assignments: readonly string[],
  { org }: { org: string },
): Promise<void> {
  const changes = new Map(assignments.map(parseAssignment));
  await withInstallation(settings, "update", async ({ store, clock }) => {
    const uid = await store.read((tx) => resolveName(tx, "group", org, "org"));
    await store.write((tx) => setQuotas(tx, uid, changes, { ids: randomIds, nowMs: clock() }));
  });
}

function parseAssignment(text: string): [OrganisationQuota, number | undefined] {
  const [, quota = "", limit = ""] = /^([a-z]+)=([^=]+)$/.exec(text) ?? [];
  if (!isOrganisationQuota(quota)) {
    const names = organisationQuotas.join(", ");
    throw invalidFlag(text, `must be NAME=LIMIT, and NAME one of ${names}`);
  }
  if (limit === "default") return [quota, undefined];
  try {
    return [quota, parseLimit(limit)];
  } catch (error) {
    throw invalidFlag(quota, `${(error as Error).message}, or default`);
  }
}

function formatQuotas(rows: readonly QuotaUsage[]): string[] {
  const columns = ["QUOTA", "USED", "LIMIT", "SET FOR"].map((title) => ({ title }));
  const cells = rows.map(({ quota, used, limit, own }) => [
    quota,
    String(used),
    String(limit),
    own ? "this organisation" : "all",
  ]);
  return createTable(columns, { colour: false, width: undefined }).lines(cells);
}

/** `arbor admin roles create` */
export async function roleCreateCommand(
  settings: Settings,
  options: Omit<NewOperatorRole, "capabilities"> & { capability: readonly string[]; json?: boolean },
): Promise<void> {
  const { name, description, capability, json = false } = options;
  const role = { name, description, capabilities: capability.map((one) => one.trim()) };
  await withInstallation(settings, "update", async ({ store, clock }) => {
    const created = await store.write((tx) => createOperatorRole(tx, role, { ids: randomIds, nowMs: clock() }));
    print(json ? escapeControls(roleToJson({ row: created, bindings: [] })) : created.uid);
  });
}

/** `arbor admin roles list` */
export async function roleListCommand(settings: Settings, { json = false }: { json?: boolean }): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    const listed = await store.read(listOperatorRoles);
    for (const line of json ? listed.map(roleToJson) : formatRoles(listed)) print(escapeControls(line));
  });
}

/** `arbor admin roles delete` */
export async function roleDeleteCommand(
  settings: Settings,
  role: string,
  { yes = false }: { readonly yes?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async ({ store, clock }) => {
    const { uid, name } = await store.read(async (tx) => {
      const uid = await resolveName(tx, "role", role, "uid");
      return { uid, name: (await tx.table(roleKind).find(uid))?.name ?? "" };
    });
    if (!yes) await confirmDelete(formatNamed("operator role", name, uid));
    await store.write((tx) => deleteOperatorRole(tx, uid, { ids: randomIds, nowMs: clock() }));
  });
}

function roleToJson({ row, bindings }: OperatorRole): string {
  const { uid, name, description } = row;
  return JSON.stringify({
    ...{ uid, name, description, capabilities: listCapabilityNames(row.capabilities) },
    createTime: formatTime(row.createTimeMs),
    bindings: bindings.map(({ uid, identityUid, groupUid }) => ({ uid, identityUid, groupUid })),
  });
}

function formatRoles(listed: readonly OperatorRole[]): string[] {
  const columns = ["UID", "NAME", "BOUND", "CAPABILITIES"].map((title) => ({ title }));
  const cells = listed.map(({ row: { uid, name, capabilities }, bindings }) => [
    uid,
    name,
    String(bindings.length),
    listCapabilityNames(capabilities).join(","),
  ]);
  return createTable(columns, { colour: false, width: undefined }).lines(cells);
}

/** `arbor admin jobs list`: the background jobs of the servers, with the last recorded run of each. */
export async function jobListCommand(settings: Settings, { json = false }: { json?: boolean }): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    const { rows, nowMs } = await store.read(async (tx) => ({
      rows: await tx.jobs.list(),
      nowMs: await tx.jobs.nowMs(),
    }));
    const lines = json ? rows.map((row) => JSON.stringify(jobToJson(row, nowMs))) : formatJobs(rows);
    for (const line of lines) print(line);
  });
}

function jobToJson(row: JobRow, nowMs: number) {
  return {
    name: row.name,
    leader: row.holder,
    fence: row.fence,
    leased: row.expireTimeMs > nowMs,
    lastRunTime: formatTimeOrNull(row.startTimeMs),
    durationMs: row.durationMs,
    changes: row.changes,
    nextRunTime: formatTimeOrNull(row.nextTimeMs),
    failures: row.failures,
    lastError: row.error,
    lastErrorTime: formatTimeOrNull(row.errorTimeMs),
  };
}

function formatJobs(rows: readonly JobRow[]): string[] {
  const columns = ["JOB", "LEADER", "LAST RUN", "TOOK", "CHANGES", "NEXT RUN", "FAILURES", "LAST ERROR"];
  const cells = rows.map((row) => [
    row.name,
    row.holder,
    formatTimeOrNull(row.startTimeMs) ?? "",
    row.durationMs === null ? "" : `${row.durationMs} ms`,
    row.changes === null ? "" : String(row.changes),
    formatTimeOrNull(row.nextTimeMs) ?? "",
    String(row.failures),
    row.error === null ? "" : `${formatTimeOrNull(row.errorTimeMs)} ${row.error}`,
  ]);
  return createTable(
    columns.map((title) => ({ title })),
    { colour: false, width: undefined },
  ).lines(cells);
}

function formatTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : formatTime(ms);
}
