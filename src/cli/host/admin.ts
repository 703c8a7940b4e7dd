// `arbor admin quotas`, `roles` and `jobs`. Running servers use a new limit or role from the next call on.
import type { Settings } from "../../config/config.js";
import { resolveName } from "../../iam/operator/names.js";
import { listQuotas, setQuotas } from "../../iam/operator/quotas.js";
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
import type { ListColumn } from "../output/format.js";
import { escapeControls } from "../output/terminal.js";
import { formatTime } from "../output/time.js";
import { countOf, createColumn } from "../remote/iam/columns.js";
import { parseCapability } from "../remote/iam/field-flags.js";
import { print, withInstallation } from "./host.js";
import { type HostListFlags, printRows } from "./list.js";

/** `arbor admin quotas list`: the usage and the limits of an organisation. */
export async function quotaListCommand(
  settings: Settings,
  { org, ...flags }: HostListFlags & { readonly org: string },
): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    const rows = await store.read(async (tx) =>
      listQuotas(tx, await resolveName(tx, "group", org, "org"), settings.quotas),
    );
    printRows(rows, quotaColumns, flags);
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

/** The columns of `arbor admin quotas list`. */
export const quotaColumns: readonly ListColumn[] = [
  createColumn("QUOTA", "quota"),
  createColumn("USED", "used"),
  createColumn("LIMIT", "limit"),
  { title: "SET FOR", path: "own", cell: ({ own }) => (own === true ? "this organisation" : "all") },
];

/** `arbor admin roles create` */
export async function roleCreateCommand(
  settings: Settings,
  options: Omit<NewOperatorRole, "capabilities"> & { capability: readonly string[]; json?: boolean },
): Promise<void> {
  const { name, description, capability, json = false } = options;
  const role = { name, description, capabilities: capability.map((one) => parseCapability("--capability", one)) };
  await withInstallation(settings, "update", async ({ store, clock }) => {
    const created = await store.write((tx) => createOperatorRole(tx, role, { ids: randomIds, nowMs: clock() }));
    print(json ? escapeControls(JSON.stringify(roleToJson({ row: created, bindings: [] }))) : created.uid);
  });
}

/** `arbor admin roles list` */
export async function roleListCommand(settings: Settings, flags: HostListFlags): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    printRows((await store.read(listOperatorRoles)).map(roleToJson), operatorRoleColumns, flags);
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

function roleToJson({ row, bindings }: OperatorRole): object {
  const { uid, name, description } = row;
  return {
    ...{ uid, name, description, capabilities: listCapabilityNames(row.capabilities) },
    createTime: formatTime(row.createTimeMs),
    bindings: bindings.map(({ uid, identityUid, groupUid }) => ({ uid, identityUid, groupUid })),
  };
}

/** The columns of `arbor admin roles list`. */
export const operatorRoleColumns: readonly ListColumn[] = [
  createColumn("NAME", "name"),
  { title: "BOUND", path: "bindings", cell: countOf("bindings") },
  createColumn("CAPABILITIES", "capabilities", "prose"),
  createColumn("UID", "uid"),
];

/** `arbor admin jobs list`: the background jobs of the servers, with the last recorded run of each. */
export async function jobListCommand(settings: Settings, flags: HostListFlags): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    const { rows, nowMs } = await store.read(async (tx) => ({
      rows: await tx.jobs.list(),
      nowMs: await tx.jobs.nowMs(),
    }));
    printRows(
      rows.map((row) => jobToJson(row, nowMs)),
      jobColumns,
      flags,
    );
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

/** The columns of `arbor admin jobs list`. */
export const jobColumns: readonly ListColumn[] = [
  createColumn("JOB", "name"),
  createColumn("LAST RUN", "lastRunTime"),
  { title: "TOOK", path: "durationMs", cell: ({ durationMs }) => (durationMs === null ? "" : `${durationMs} ms`) },
  createColumn("CHANGES", "changes"),
  createColumn("NEXT RUN", "nextRunTime"),
  createColumn("FAILURES", "failures"),
  {
    title: "LAST ERROR",
    kind: "prose",
    cell: ({ lastError, lastErrorTime }) => (lastError === null ? "" : `${lastErrorTime} ${lastError}`),
  },
  createColumn("LEADER", "leader"),
];

function formatTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : formatTime(ms);
}
