import assert from "node:assert/strict";
import { ScimError, type ScimErrorType } from "../../../src/scim/protocol/error.js";

/** Asserts that something is rejected with 400 and a `scimType`. */
export function assertRejected(compute: () => unknown, scimType: ScimErrorType, what?: string): void {
  assert.throws(
    compute,
    (error) => {
      assert.ok(error instanceof ScimError, `${what}: ${error}`);
      assert.deepEqual([error.status, error.scimType], [400, scimType], `${what}: ${error.detail}`);
      return true;
    },
    what,
  );
}
