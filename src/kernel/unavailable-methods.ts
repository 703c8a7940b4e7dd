// The methods of the published API that fail with UNIMPLEMENTED, and why: by their local names for the services, by their full
// names for the command line. docs/v1.md and docs/api-rules.md show them.

const NO_LIFE_TIMES = "nothing is known of how long versions of packages are looked after";
const NO_MATERIALS = "no bills of materials are read or kept";
const NO_CHARTS = "Helm charts are not read";
const NO_REPORTS = "no reports of scanners are kept";
const NO_BUILDS = "no images are built, so there are no reports on builds";
const NO_VERSIONS = "nothing is known of versions of software";
const NO_QUEUE = "images are copied by other services, and where those stand is not known";

/** Of Registry. */
export const unavailableRegistryV1 = {
  listEolTags: NO_LIFE_TIMES,
  getSbom: NO_MATERIALS,
  getRawSbom: NO_MATERIALS,
  listManifestMetadata: NO_MATERIALS,
  getHelm: NO_CHARTS,
  getChart: NO_CHARTS,
  listChartsByImageRepo: NO_CHARTS,
  listChartImageBindings: NO_CHARTS,
  getVulnReport: NO_REPORTS,
  getPackageVersionMetadata: NO_LIFE_TIMES,
  listBuildReports: NO_BUILDS,
  getBuildStatus: NO_BUILDS,
  getSyncStatus: NO_QUEUE,
  listSyncStatuses: NO_QUEUE,
} as const;

/** Of Vulnerabilities. */
export const unavailableVulnerabilitiesV1 = {
  listVulnReports: NO_REPORTS,
  getRawVulnReport: NO_REPORTS,
  listVulnCountReports: NO_REPORTS,
  listCumulativeVulnCountReports: NO_REPORTS,
} as const;

/** Of StigReportsService. */
export const unavailableStigReports = { getStigReport: NO_REPORTS } as const;

/** Of VulnReportsService. */
export const unavailableVulnReports = { listVulnCountReports: NO_REPORTS } as const;

/** Of VersionsService. */
export const unavailableVersions = { getProject: NO_VERSIONS, listProjects: NO_VERSIONS } as const;

/** Of GroupInvites. */
export const unavailableInvitesV1 = {
  createWithGroup: "a root group needs an owner; create it, then an invite into it",
} as const;

/** Of Identities in events. */
export const unavailableIdentitiesV1 = {
  create: "no identities outside of groups are created; create one in a group",
} as const;

const services: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "chainguard.platform.registry.Registry": unavailableRegistryV1,
  "chainguard.platform.registry.Vulnerabilities": unavailableVulnerabilitiesV1,
  "chainguard.platform.registry.v2beta1.StigReportsService": unavailableStigReports,
  "chainguard.platform.vulnerabilities.v2beta1.VulnReportsService": unavailableVulnReports,
  "chainguard.platform.versions.v2beta1.VersionsService": unavailableVersions,
  "chainguard.platform.iam.GroupInvites": unavailableInvitesV1,
  "chainguard.platform.events.Identities": unavailableIdentitiesV1,
};

/** Finds why a method fails with UNIMPLEMENTED, by its full name with a slash; undefined for methods that are served. */
export function findUnavailable(method: string): string | undefined {
  const [service = "", name = ""] = method.split("/");
  const localName = name.charAt(0).toLowerCase() + name.slice(1);
  return services[service.replace(".v2.", ".v2beta1.")]?.[localName];
}
