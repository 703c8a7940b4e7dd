// An open request without a server.
import { Socket } from "node:net";
import { Connection } from "../../src/transport/http/connection.js";
import { defaultLimits } from "../../src/transport/http/limits.js";
import { type Budgets, OpenRequest } from "../../src/transport/http/open-request.js";

/** Opens a request that is charged to these budgets. */
export function openRequest(budgets: Budgets): OpenRequest {
  const accepted = { key: "192.0.2.1", address: "192.0.2.1", isProxy: false, rejection: undefined };
  const connection = new Connection(new Socket(), accepted);
  return new OpenRequest(connection.key, "/", 5_000, connection, {
    budgets,
    maxWaitMs: 5_000,
    limits: defaultLimits,
    takesStream: () => false,
    waitAgain() {},
    chargeRead() {},
    onClose() {},
  });
}
