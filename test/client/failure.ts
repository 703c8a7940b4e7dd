import assert from "node:assert/strict";
import { inspect } from "node:util";
import { ConnectError } from "@connectrpc/connect";

/** The RPC error that `promise` must fail with. */
export async function failureOf(promise: Promise<unknown>): Promise<ConnectError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof ConnectError, inspect(error));
    return error;
  }
  assert.fail("it succeeded");
}

/** Everything that printing `value` could show. */
export function print(value: unknown): string {
  const message = value instanceof Error ? value.message + String(value.stack) : "";
  return inspect(value, { depth: 20, showHidden: true, getters: true }) + message;
}

/** A JWT that ends at `expMs` and is signed by nobody; `jti` tells tokens apart. */
export function jwt(jti: string, expMs?: number): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = expMs === undefined ? { jti } : { jti, exp: Math.floor(expMs / 1000) };
  return `${part({ alg: "none" })}.${part(claims)}.c2ln`;
}
