// What a caller asks a token to be good for.

import { capabilitySetNamed, isCapabilityName } from "../../iam/roles/capability-names.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { TokenLimit } from "../../kernel/principal.js";
import { isUidp } from "../../kernel/uidp.js";
import { MAX_SCOPES } from "../../pipeline/auth/api-token.js";
import type { Grant } from "../tokens.js";

/** What is asked for, as it came. */
export interface TokenRequest {
  /** Base URLs, each perhaps a comma-separated list. */
  readonly aud: readonly string[];
  /** Names of capabilities. */
  readonly cap: readonly string[];
  /** Uids of groups. */
  readonly scopes: readonly string[];
}

const MAX_CAPABILITIES = 512;

/**
 * Checks what is asked for.
 *
 * @param audiences of this service, one of which the audience must be
 * @throws ApiError INVALID_ARGUMENT naming each field that is wrong.
 */
export function grantOf(asked: TokenRequest, audiences: readonly string[]): Grant {
  const violations: FieldViolation[] = [];
  const [audience = "", ...more] = audiencesIn(asked.aud);
  if (audience === "") violations.push({ field: "aud", description: "Audience must be specified" });
  else if (more.length > 0) violations.push({ field: "aud", description: "aud must be one audience" });
  else if (!isAudience(audience, audiences)) {
    violations.push({ field: "aud", description: "aud must be the base URL of this service" });
  }
  const limit = limitOf(asked, violations);
  if (violations.length > 0) throw invalidArgument(...violations);
  return { audience, ...(limit && { limit }) };
}

/** The limit that `cap` and `scopes` set; undefined where they set none. Adds what is wrong to `violations`. */
export function limitOf(
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

/** The audiences in a list of lists, each once, whatever slash they end in. */
export function audiencesIn(aud: readonly string[]): string[] {
  const found = new Map<string, string>();
  for (const one of aud.flatMap((list) => list.split(","))) {
    const audience = one.trim();
    if (audience !== "") found.set(audience.replace(/\/$/, ""), audience);
  }
  return [...found.values()];
}

/** Whether tokens for `audience` are good here: it is one of `audiences`, a trailing slash more or less. */
export function isAudience(audience: string, audiences: readonly string[]): boolean {
  return audiences.some((ours) => ours.replace(/\/$/, "") === audience.replace(/\/$/, ""));
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values.filter((value) => value !== ""))];
}
