// Every service about vulnerabilities, ready to be served.
import type { ServedService } from "../pipeline/method-table.js";
import { advisoriesV1 } from "./advisories/advisory-v1.js";
import { type AdvisoryDeps, advisoriesV2beta1 } from "./advisories/advisory-v2beta1.js";

/** The services. */
export function vulnerabilityServices(deps: AdvisoryDeps): ServedService[] {
  return [advisoriesV2beta1(deps), advisoriesV1(deps)];
}
