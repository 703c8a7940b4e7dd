import type { Principal } from "../kernel/principal.js";
import type { Authenticate } from "./auth/authenticate.js";
import type { MethodEntry } from "./method-table.js";

/**
 * Establishes who calls a method from the value of the Authorization header alone; nobody where anybody may call
 * it. Front ends do this before they read a byte of the body. At once for a token that was seen before.
 *
 * @throws ApiError UNAUTHENTICATED
 */
export type Prove = (
  method: MethodEntry,
  authorization: string | undefined,
) => Principal | undefined | Promise<Principal | undefined>;

/** Creates it. */
export function createProve(authenticate: Authenticate): Prove {
  return (method, authorization) => (method.auth.mode === "guarded" ? authenticate(authorization) : undefined);
}
