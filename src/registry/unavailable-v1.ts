// The methods of version 1 that the service cannot answer, and why. docs/v1.md shows the same table.
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { invalidArgument, permissionDenied, unimplemented } from "../kernel/errors.js";
import { isUidp } from "../kernel/uidp.js";
import { formatCapabilities } from "../pipeline/auth/authorize.js";
import type { UnaryCall } from "../pipeline/call.js";
import type { Handlers } from "../pipeline/handlers.js";
import { readAuthRule, readCapabilities } from "../pipeline/method-table.js";

const NO_LIFE_TIMES = "nothing is known of how long versions of packages are looked after";
const NO_MATERIALS = "no bills of materials are read or kept";
const NO_CHARTS = "Helm charts are not read";
const NO_REPORTS = "no reports of scanners are kept";
const NO_BUILDS = "no images are built, so there are no reports on builds";
const NO_QUEUE = "images are copied by other services, and where those stand is not known";

/** Why methods of Registry answer UNIMPLEMENTED. */
export const unavailableRegistryV1 = {
  listEolTags: NO_LIFE_TIMES,
  getSbom: NO_MATERIALS,
  getRawSbom: NO_MATERIALS,
  listManifestMetadata: NO_MATERIALS,
  getHelm: NO_CHARTS,
  getChart: NO_CHARTS,
  listChartsByImageRepo: NO_CHARTS,
  getVulnReport: NO_REPORTS,
  getPackageVersionMetadata: NO_LIFE_TIMES,
  listBuildReports: NO_BUILDS,
  getBuildStatus: NO_BUILDS,
  getSyncStatus: NO_QUEUE,
  listSyncStatuses: NO_QUEUE,
} as const;

/** Why methods of Vulnerabilities answer UNIMPLEMENTED. */
export const unavailableVulnerabilitiesV1 = {
  listVulnReports: NO_REPORTS,
  getRawVulnReport: NO_REPORTS,
  listVulnCountReports: NO_REPORTS,
  listCumulativeVulnCountReports: NO_REPORTS,
} as const;

/**
 * Creates handlers that answer UNIMPLEMENTED with a reason, to callers with the right to call the method. They
 * read no data, so the answer does not show what exists.
 */
export function createUnavailableHandlers<S extends DescService, K extends keyof S["method"] & string>(
  { method }: S,
  reasons: Readonly<Record<K, string>>,
): Pick<Handlers<S>, K> {
  const handlers = Object.entries<string>(reasons).map(([name, reason]) => [
    name,
    createUnavailableHandler(method[name], reason),
  ]);
  return Object.fromEntries(handlers) as Pick<Handlers<S>, K>;
}

function createUnavailableHandler(method: DescMethod | undefined, reason: string) {
  if (method === undefined) throw new TypeError(`there is no such method: ${reason}`);
  const rule = readAuthRule(method);
  const needed = formatCapabilities(readCapabilities(method));
  const unscoped = rule.mode === "guarded" && rule.scope === undefined;
  return async (request: Message, call: UnaryCall): Promise<never> => {
    if (unscoped) await requireRights(request, call, needed);
    throw unimplemented(`${method.parent.name}.${method.name}: ${reason}`);
  };
}

// The pipeline leaves the rights of methods without a scope to their handlers.
async function requireRights(
  request: Message & { readonly repoId?: string },
  call: UnaryCall,
  needed: string,
): Promise<void> {
  const { repoId = "" } = request;
  if (repoId === "") {
    if (call.caller.visibleGroups().length === 0) throw permissionDenied(`${needed} at any group`);
    return;
  }
  if (!isUidp(repoId)) {
    throw invalidArgument({ field: "repoId", description: "repoId must be an id, such as the service assigns" });
  }
  if (!(await call.callerAt(repoId)).holdsNeeded(repoId)) throw permissionDenied(`${needed} at ${repoId}`);
}
