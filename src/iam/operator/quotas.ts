// The quotas of one organisation, which the operator reads and sets on the host.
import { QUOTA_SET } from "../../kernel/audit-body.js";
import { failedPrecondition } from "../../kernel/errors.js";
import {
  limitsFor,
  MAX_QUOTA,
  type OrganisationQuota,
  organisationQuotas,
  type QuotaLimits,
} from "../../kernel/quotas.js";
import { getRow } from "../../pipeline/resource/read.js";
import { type GroupRow, groupKind } from "../../store/iam/groups.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";
import { auditOnHost, type HostContext } from "./operate.js";

/** The usage and the limit of one quota of an organisation. */
export interface QuotaUsage {
  readonly quota: OrganisationQuota;
  readonly limit: number;
  /** Whether the limit was set for this organisation alone; otherwise it is that of the settings. */
  readonly own: boolean;
  readonly used: number;
}

/**
 * Lists the quotas of an organisation, in the order of the table.
 *
 * @param root its root group
 * @param limits what the settings say
 * @throws ApiError NOT_FOUND, FAILED_PRECONDITION for a group that is not a root
 */
export async function listQuotas(tx: Tx, root: string, limits: QuotaLimits): Promise<QuotaUsage[]> {
  const { resourceLimits } = await getRoot(tx, root);
  const effective = limitsFor(resourceLimits, limits);
  const usages: QuotaUsage[] = [];
  for (const quota of organisationQuotas) {
    const used = await tx.usage.count(quota, root, MAX_QUOTA);
    usages.push({ quota, limit: effective[quota], own: Object.hasOwn(resourceLimits, quota), used });
  }
  return usages;
}

/**
 * Sets limits for one organisation, in place of those of the settings. Existing resources stay, even where
 * they exceed the limit.
 *
 * @param changes the new limits; undefined restores that of the settings
 * @throws ApiError NOT_FOUND, FAILED_PRECONDITION for a group that is not a root
 */
export async function setQuotas(
  tx: Tx,
  root: string,
  changes: ReadonlyMap<OrganisationQuota, number | undefined>,
  { ids, nowMs }: HostContext,
): Promise<void> {
  const before = (await getRoot(tx, root)).resourceLimits;
  const kept = { ...before };
  for (const [quota, limit] of changes) {
    if (limit === undefined) delete kept[quota];
    else kept[quota] = limit;
  }
  await tx.table(groupKind).update(root, { resourceLimits: kept }, nowMs);
  const change = { type: QUOTA_SET, before, after: kept };
  await auditOnHost(tx, { type: QUOTA_SET, subjectUid: root, change }, { ids, nowMs });
}

async function getRoot(tx: Tx, uid: string): Promise<GroupRow> {
  const row = await getRow(tx, groups, uid);
  if (row.parentUid !== null) {
    throw failedPrecondition("GROUP_NOT_ROOT", "quotas belong to organisations: name a root group");
  }
  return row;
}
