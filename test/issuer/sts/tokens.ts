// Tokens and identities for the tests of how an identity is assumed.
import assert from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  type Identity_ClaimMatch,
  Identity_ClaimMatchSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import type { VerifiedToken } from "../../../src/issuer/upstream/token.js";
import { ApiError } from "../../../src/kernel/errors.js";

export const issuer = "https://token.actions.example.com";
export const subject = "repo:acme/app:ref:refs/heads/main";
export const ownUrls = ["https://issuer.arbor.example.com", "https://arbor.example.com"];
export const uid = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbb";

/** A verified token, meant for this service unless said otherwise. */
export function buildVerifiedToken(values: Partial<VerifiedToken> = {}): VerifiedToken {
  const claims = { iss: issuer, sub: subject };
  return { issuer, subject, claims, audiences: [ownUrls[0] ?? ""], expiresAt: 2_000, issuedAt: 1_000, ...values };
}

/** A claim match, literal in issuer and subject unless said otherwise. */
export function claimMatch(values: MessageInitShape<typeof Identity_ClaimMatchSchema> = {}): Identity_ClaimMatch {
  return create(Identity_ClaimMatchSchema, {
    iss: { case: "issuer", value: issuer },
    sub: { case: "subject", value: subject },
    ...values,
  });
}

/** The error of a decision; undefined when it succeeds. */
export function catchError(decide: () => unknown): { code: Code; message: string; cause: unknown } | undefined {
  try {
    decide();
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return { code: error.code, message: error.message, cause: error.cause };
  }
}

/** The text for callers that may not assume {@link uid}, whatever the reason. */
export const NOT_ASSUMABLE = `Permission denied: assuming ${uid} (or it might not exist)`;
/** The text for everything that is no credential. */
export const UNAUTHENTICATED = "Unauthenticated: authorization: a valid bearer token is required";

/** Asserts that a decision fails as if the identity did not exist. */
export function assertNotAssumable(decide: () => unknown): void {
  const { code, message } = catchError(decide) ?? {};
  assert.deepEqual([code, message], [Code.PermissionDenied, NOT_ASSUMABLE]);
}

/** Asserts that the token is rejected, with one text. */
export function assertUnauthenticated(decide: () => unknown): void {
  const { code, message } = catchError(decide) ?? {};
  assert.deepEqual([code, message], [Code.Unauthenticated, UNAUTHENTICATED]);
}
