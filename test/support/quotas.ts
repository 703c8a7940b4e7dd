// Quotas of organisations, set and read as the operator does on the host.
import { listQuotas, setQuotas } from "../../src/iam/operator/quotas.js";
import { randomIds } from "../../src/kernel/ids.js";
import { defaultLimits, type OrganisationQuota, organisationQuotas } from "../../src/kernel/quotas.js";
import type { Store } from "../../src/store/store.js";

/** Limits by quota; undefined: that of the settings. */
export type Limits = Partial<Record<OrganisationQuota, number | undefined>>;

/** Sets limits of one organisation. */
export async function setLimits(store: Store, root: string, limits: Limits): Promise<void> {
  const changes = new Map(Object.entries(limits) as [OrganisationQuota, number | undefined][]);
  await store.write((tx) => setQuotas(tx, root, changes, { ids: randomIds, nowMs: Date.now() }));
}

/** The same limit for every quota of organisations. */
export function everyLimit(limit: number | undefined): Limits {
  return Object.fromEntries(organisationQuotas.map((quota) => [quota, limit]));
}

/** How much of each kind an organisation has. */
export async function usageOf(store: Store, root: string): Promise<Record<OrganisationQuota, number>> {
  const rows = await store.read((tx) => listQuotas(tx, root, defaultLimits));
  return Object.fromEntries(rows.map(({ quota, used }) => [quota, used])) as Record<OrganisationQuota, number>;
}
