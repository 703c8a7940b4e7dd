import { ByteBudget } from "./byte-budget.js";
import type { Limits } from "./limits.js";

/** The budgets of requests and of responses: responses that nobody reads must not stop bodies. */
export interface Budgets {
  readonly requests: ByteBudget;
  readonly responses: ByteBudget;
  /** The most bytes that an account may hold with a list that is sent as one message. */
  readonly listBytes: number;
}

/** The largest error without a message, in bytes. */
const STATUS_BYTES = 8 * 1024;

/** Creates the budgets of a server. */
export function createBudgets(limits: Limits): Budgets {
  const { unknownBytes } = limits;
  return {
    requests: new ByteBudget({
      ...{ totalBytes: limits.requestBufferBytes, unknownBytes },
      ...{ leastRate: limits.leastBodyRate, graceMs: limits.slowBodyMs },
    }),
    responses: new ByteBudget({
      ...{ totalBytes: limits.responseBufferBytes, unknownBytes },
      ...{ tinyBytes: STATUS_BYTES, stallMs: limits.responseStallMs },
    }),
    listBytes: limits.responseBytes,
  };
}
