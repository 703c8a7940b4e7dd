// The commands for the quotas of one organisation. Running servers use a new limit from the next call on.
import type { Settings } from "../../config/config.js";
import { listQuotas, type QuotaUsage, setQuotas } from "../../iam/operator/quotas.js";
import { invalidArgument } from "../../kernel/errors.js";
import { randomIds } from "../../kernel/ids.js";
import { isOrganisationQuota, type OrganisationQuota, organisationQuotas, parseLimit } from "../../kernel/quotas.js";
import { createTable } from "../output/table.js";
import { onHost, print } from "./host.js";

/** `arbor admin quota list`: the usage and the limits of an organisation. */
export async function quotaListCommand(
  settings: Settings,
  { group, json = false }: { group: string; json?: boolean },
): Promise<void> {
  await onHost(settings, async ({ store }) => {
    const rows = await store.read((tx) => listQuotas(tx, group, settings.quotas));
    for (const line of json ? rows.map((row) => JSON.stringify(row)) : formatTable(rows)) print(line);
  });
}

/**
 * `arbor admin quota set`
 *
 * @param assignments such as `repos=500`, or `repos=default` for the limit of the settings
 * @throws ApiError INVALID_ARGUMENT for an invalid assignment
 */
export async function quotaSetCommand(
  settings: Settings,
  assignments: readonly string[],
  { group }: { group: string },
): Promise<void> {
  const changes = new Map(assignments.map(parseAssignment));
  await onHost(settings, async ({ store, clock }) => {
    await store.write((tx) => setQuotas(tx, group, changes, { ids: randomIds, nowMs: clock() }));
  });
}

function parseAssignment(text: string): [OrganisationQuota, number | undefined] {
  const [, quota = "", limit = ""] = /^([a-z]+)=([^=]+)$/.exec(text) ?? [];
  if (!isOrganisationQuota(quota)) {
    const names = organisationQuotas.join(", ");
    throw invalidArgument({ field: "quota", description: `${text} must be NAME=LIMIT, and NAME one of ${names}` });
  }
  if (limit === "default") return [quota, undefined];
  try {
    return [quota, parseLimit(limit)];
  } catch (error) {
    throw invalidArgument({ field: quota, description: `${quota} ${(error as Error).message}, or default` });
  }
}

function formatTable(rows: readonly QuotaUsage[]): string[] {
  const columns = ["QUOTA", "USED", "LIMIT", "SET FOR"].map((title) => ({ title }));
  const cells = rows.map(({ quota, used, limit, own }) => [
    quota,
    String(used),
    String(limit),
    own ? "this organisation" : "all",
  ]);
  return createTable(columns, { colour: false, width: undefined }).lines(cells);
}
