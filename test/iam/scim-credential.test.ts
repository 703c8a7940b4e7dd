// The tokens of directories: which ones are valid, and why others are rejected.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noScim } from "../../src/iam/identity-providers/identity-provider.js";
import {
  createScimToken,
  explainScimRejection,
  findScimCredential,
} from "../../src/iam/identity-providers/scim-credential.js";
import type { ScimState } from "../../src/store/iam/identity-providers.js";

const NOW = 1_000_000;
const current = createScimToken();
const previous = createScimToken();
const other = createScimToken();

describe("the token of a directory", () => {
  const both: ScimState = {
    ...{ ...noScim, tokenHash: current.tokenHash, previousHash: previous.tokenHash },
    ...{ expireTimeMs: NOW + 2, previousExpireTimeMs: NOW + 1 },
  };

  it("is `cgscim_` and 64 hexadecimal digits, another one each time", () => {
    assert.match(current.token, /^cgscim_[0-9a-f]{64}$/);
    assert.match(current.tokenHash, /^[0-9a-f]{64}$/);
    assert.equal(new Set([current, previous, other].flatMap(({ token, tokenHash }) => [token, tokenHash])).size, 6);
  });

  const rows: readonly (readonly [name: string, scim: ScimState, token: string, nowMs: number, found: string])[] = [
    ["is valid", both, current.token, NOW, "current"],
    ["is valid until it expires", both, current.token, NOW + 1, "current"],
    ["has expired", both, current.token, NOW + 2, "expired"],
    ["never expires", { ...noScim, tokenHash: current.tokenHash }, current.token, Number.MAX_SAFE_INTEGER, "current"],
    ["is valid when it was replaced", both, previous.token, NOW, "previous"],
    ["is valid when it was replaced, until the end of the overlap", both, previous.token, NOW + 1, "expired"],
    ["outlives the newer one", { ...both, expireTimeMs: NOW }, previous.token, NOW, "previous"],
    ["is another one", both, other.token, NOW, "unknown"],
    ["is empty", both, "", NOW, "unknown"],
    ["is the stored hash", both, current.tokenHash, NOW, "unknown"],
    ["has another case", both, current.token.toUpperCase(), NOW, "unknown"],
    ["is of a provider without one", noScim, current.token, NOW, "unknown"],
    ["is empty where there is none", noScim, "", NOW, "unknown"],
    ["was revoked", { ...noScim, revoked: true, expireTimeMs: NOW }, current.token, NOW, "revoked"],
  ];
  for (const [name, scim, token, nowMs, found] of rows) {
    it(name, () => {
      assert.equal(findScimCredential(scim, token, nowMs) ?? explainScimRejection(scim, token), found);
    });
  }
});
