// Services of the published API that are declared and not implemented, because the service has none of their data. They are
// declared so that clients learn the reason, and so that rights are checked as for every other method.
import type { DescService } from "@bufbuild/protobuf";
import { StigReportsService as StableStigReportsService } from "#gen/chainguard/platform/registry/v2/stig_reports_pb.js";
import { StigReportsService } from "#gen/chainguard/platform/registry/v2beta1/stig_reports_pb.js";
import { VersionsService as StableVersionsService } from "#gen/chainguard/platform/versions/v2/versions_pb.js";
import { VersionsService } from "#gen/chainguard/platform/versions/v2beta1/versions_pb.js";
import { VulnReportsService as StableVulnReportsService } from "#gen/chainguard/platform/vulnerabilities/v2/vuln_reports_pb.js";
import { VulnReportsService } from "#gen/chainguard/platform/vulnerabilities/v2beta1/vuln_reports_pb.js";
import { unavailableStigReports, unavailableVersions, unavailableVulnReports } from "../kernel/unavailable-methods.js";
import type { Handlers } from "../pipeline/handlers.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import { createUnavailableHandlers } from "../pipeline/unavailable.js";

interface UnavailableService {
  readonly desc: DescService;
  /** The same service under the stable name; absent in version 1. */
  readonly stable?: DescService;
  /** Why each method fails with UNIMPLEMENTED, by local name. */
  readonly reasons: Readonly<Record<string, string>>;
}

/** Types {@link UnavailableService}, so that no method lacks a reason. */
function declare<S extends DescService>(
  desc: S,
  reasons: Readonly<Record<keyof S["method"] & string, string>>,
  stable?: DescService,
): UnavailableService {
  return { desc, reasons, ...(stable && { stable }) };
}

export const unavailableServices: readonly UnavailableService[] = [
  declare(StigReportsService, unavailableStigReports, StableStigReportsService),
  declare(VulnReportsService, unavailableVulnReports, StableVulnReportsService),
  declare(VersionsService, unavailableVersions, StableVersionsService),
];

export function createUnavailableServices(): ServedService[] {
  return unavailableServices.map(({ desc, reasons }) => {
    return serve(desc, createUnavailableHandlers(desc, reasons) as Handlers<DescService>);
  });
}
