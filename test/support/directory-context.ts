// What changes of directories and sign-ins need, with the quotas of the settings.
import type { DirectoryContext } from "../../src/iam/directories/rights.js";
import { randomIds } from "../../src/kernel/ids.js";
import { defaultLimits } from "../../src/kernel/quotas.js";
import { createQuotas } from "../../src/pipeline/resource/quota.js";

/** @param nowMs epoch milliseconds; the time of the process unless set */
export function directoryContext(nowMs = Date.now()): DirectoryContext {
  return { ids: randomIds, quotas: createQuotas(defaultLimits), nowMs };
}
