import assert from "node:assert/strict";
import { Code } from "@connectrpc/connect";
import { ApiError, unauthenticated } from "../../../src/kernel/errors.js";

/** Asserts that an error is the one text a caller may see, and that the log would learn of `rule`. */
export function isInvalidToken(rule: string): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, Code.Unauthenticated);
    assert.equal(error.message, unauthenticated().message);
    assert.deepEqual(error.details, []);
    assert.equal((error.cause as Error).message, `the upstream token ${rule}`);
    return true;
  };
}
