// The quotas of one organisation, as the operator reads and sets them on the host.
import { failedPrecondition, notFound } from "../../kernel/errors.js";
import {
  limitsFor,
  MAX_QUOTA,
  type OrganisationQuota,
  organisationQuotas,
  type QuotaLimits,
} from "../../kernel/quotas.js";
import type { GroupRow, Tx } from "../../store/port.js";
import { groups } from "../groups/group.js";
import { auditOnHost } from "./audit-on-host.js";
import type { HostContext } from "./operate.js";

/** How much of a kind an organisation has and may have. */
export interface QuotaUsage {
  readonly quota: OrganisationQuota;
  readonly limit: number;
  /** Whether the limit was set for this organisation alone; otherwise it is that of the settings. */
  readonly own: boolean;
  readonly used: number;
}

/**
 * The quotas of an organisation, in the order of the table.
 *
 * @param root its root group
 * @param limits what the settings say
 * @throws ApiError NOT_FOUND, FAILED_PRECONDITION for a group that is no root
 */
export async function listQuotas(tx: Tx, root: string, limits: QuotaLimits): Promise<QuotaUsage[]> {
  const { resourceLimits } = await getRoot(tx, root);
  const effective = limitsFor(resourceLimits, limits);
  const listed: QuotaUsage[] = [];
  for (const quota of organisationQuotas) {
    const used = await tx.usage.count(quota, root, MAX_QUOTA);
    listed.push({ quota, limit: effective[quota], own: Object.hasOwn(resourceLimits, quota), used });
  }
  return listed;
}

/**
 * Sets limits for one organisation, in place of those of the settings. What it has already stays, also
 * where it is more.
 *
 * @param changes the new limits; undefined: that of the settings again
 * @throws ApiError NOT_FOUND, FAILED_PRECONDITION for a group that is no root
 */
export async function setQuotas(
  tx: Tx,
  root: string,
  changes: ReadonlyMap<OrganisationQuota, number | undefined>,
  { ids, nowMs }: HostContext,
): Promise<void> {
  const kept = { ...(await getRoot(tx, root)).resourceLimits };
  for (const [quota, limit] of changes) {
    if (limit === undefined) delete kept[quota];
    else kept[quota] = limit;
  }
  await tx.groups.update(root, { resourceLimits: kept }, nowMs);
  await auditOnHost(tx, "arbor.quota.set.v1", root, nowMs, ids);
}

async function getRoot(tx: Tx, uid: string): Promise<GroupRow> {
  const row = await tx.groups.get(uid);
  if (row === undefined) throw notFound(groups, uid);
  if (row.parentUid !== null) {
    throw failedPrecondition("GROUP_NOT_ROOT", "quotas belong to organisations: name a root group");
  }
  return row;
}
