// An open request without a server.
import { type Budgets, OpenRequest } from "../../src/transport/http/open-request.js";

/** Opens a request that is charged to these budgets. */
export function openRequest(budgets: Budgets): OpenRequest {
  const connection = {
    ...{ key: "192.0.2.1", address: "192.0.2.1", isProxy: false, rejection: undefined },
    ...{ open: 1, isClosed: false, end() {} },
  };
  return new OpenRequest(connection.key, 5_000, connection, {
    budgets,
    maxWaitMs: 5_000,
    waitAgain() {},
    onClose() {},
  });
}
