// What a token shall be valid for: audience, capabilities and groups.

import { capabilitySetNamed, isCapabilityName } from "../../iam/roles/capability-names.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { TokenLimit } from "../../kernel/principal.js";
import { isUidp } from "../../kernel/uidp.js";
import { MAX_SCOPES } from "../../pipeline/auth/api-token.js";
import type { TokenGrant } from "../tokens.js";

/** A token request, not validated. */
export interface TokenRequest {
  /** Base URLs; each entry may be a comma-separated list. */
  readonly aud: readonly string[];
  /** Names of capabilities. */
  readonly cap: readonly string[];
  /** Uids of groups. */
  readonly scopes: readonly string[];
}

const MAX_CAPABILITIES = 512;

/**
 * Validates a token request.
 *
 * @param audiences of this service; the requested audience must be one of them
 * @throws ApiError INVALID_ARGUMENT naming each invalid field
 */
export function parseTokenGrant(request: TokenRequest, audiences: readonly string[]): TokenGrant {
  const violations: FieldViolation[] = [];
  const [audience = "", ...more] = parseAudienceList(request.aud);
  if (audience === "") violations.push({ field: "aud", description: "Audience must be specified" });
  else if (more.length > 0) violations.push({ field: "aud", description: "aud must be one audience" });
  else if (!isOwnAudience(audience, audiences)) {
    violations.push({ field: "aud", description: "aud must be the base URL of this service" });
  }
  const limit = parseTokenLimit(request, violations);
  if (violations.length > 0) throw invalidArgument(...violations);
  return { audience, ...(limit && { limit }) };
}

/** Parses the limit that `cap` and `scopes` set; undefined where they set none. Adds invalid fields to `violations`. */
export function parseTokenLimit(
  { cap, scopes }: Omit<TokenRequest, "aud">,
  violations: FieldViolation[],
): TokenLimit | undefined {
  const groups = distinct(scopes);
  const names = distinct(cap);
  if (groups.length > MAX_SCOPES || !groups.every(isUidp)) {
    violations.push({ field: "scopes", description: `scopes must be at most ${MAX_SCOPES} uids of groups` });
  }
  if (names.length > MAX_CAPABILITIES || !names.every(isCapabilityName)) {
    violations.push({ field: "cap", description: "cap must name capabilities that exist, such as groups.list" });
  }
  if (violations.length > 0 || (groups.length === 0 && names.length === 0)) return undefined;
  return {
    ...(names.length > 0 && { cap: capabilitySetNamed(names) }),
    ...(groups.length > 0 && { scope: groups }),
  };
}

/** Parses a list of comma-separated lists; audiences that differ in a trailing slash count once. */
export function parseAudienceList(aud: readonly string[]): string[] {
  const found = new Map<string, string>();
  for (const one of aud.flatMap((list) => list.split(","))) {
    const audience = one.trim();
    if (audience !== "") found.set(audience.replace(/\/$/, ""), audience);
  }
  return [...found.values()];
}

/** Whether `audience` is one of `audiences`, with or without a trailing slash. */
export function isOwnAudience(audience: string, audiences: readonly string[]): boolean {
  return audiences.some((ours) => ours.replace(/\/$/, "") === audience.replace(/\/$/, ""));
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values.filter((value) => value !== ""))];
}
