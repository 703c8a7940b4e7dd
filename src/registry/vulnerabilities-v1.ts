import { Vulnerabilities } from "#gen/chainguard/platform/registry/vulnerabilities_pb.js";
import { serve } from "../pipeline/method-table.js";
import { refusalsOf, unavailableVulnerabilitiesV1 } from "./unavailable-v1.js";

/** Vulnerabilities, ready to be served: there is nothing it could tell. */
export function vulnerabilitiesV1() {
  return serve(Vulnerabilities, refusalsOf(Vulnerabilities, unavailableVulnerabilitiesV1));
}
