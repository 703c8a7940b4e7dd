// What a token shall be valid for: audience, capabilities and groups.
import { buildCapabilitySet, isCapabilityName } from "../../iam/roles/capability-names.js";
import type { CapabilitySet } from "../../kernel/capability-set.js";
import { type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { Principal, TokenLimit } from "../../kernel/principal.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import { MAX_AUDIENCES, MAX_SCOPES } from "../../pipeline/auth/api-token.js";
import { addMappedGrants } from "../../pipeline/auth/authorize.js";
import { effectiveGrants, type Grant } from "../../pipeline/auth/caller.js";
import { isName } from "../../pipeline/resource/rules.js";
import { groupKind } from "../../store/iam/groups.js";
import type { Tx } from "../../store/transaction.js";

/** A token request, not validated. */
export interface TokenRequest {
  /** Audiences of this service, such as its base URL; each entry may be a comma-separated list. */
  readonly aud: readonly string[];
  /** Names of capabilities. */
  readonly cap: readonly string[];
  /** Uids of groups and names of organisations. */
  readonly scopes: readonly string[];
}

/** A group that a request names, by its uid or by the name of an organisation. */
type RequestedScope = { readonly uid: string } | { readonly name: string };

/** The limit of a request of valid form. `resolveScopes` replaces the names when the bearer is known. */
interface RequestedLimit {
  readonly cap?: CapabilitySet;
  readonly scope?: readonly RequestedScope[];
}

/** A token request of valid form. */
export interface RequestedGrant {
  readonly audience: string | readonly string[];
  readonly limit?: RequestedLimit | undefined;
}

const MAX_CAPABILITIES = 512;
/** The rule for scopes. One text for all causes, so that callers cannot tell them apart. */
const SCOPES_RULE = `must be at most ${MAX_SCOPES} uids of groups or names of verified organisations`;

/**
 * Validates a token request. Of the names of organisations only the form: which of them the bearer may use is for
 * `resolveScopes`.
 *
 * @param audiences of this service; each requested one must be among them
 * @throws ApiError INVALID_ARGUMENT naming each invalid field
 */
export function parseTokenGrant(request: TokenRequest, audiences: readonly string[]): RequestedGrant {
  const violations: FieldViolation[] = [];
  const audience = parseAudience(request.aud, audiences, violations);
  if (audience === undefined && violations.length === 0) {
    violations.push({ field: "aud", subject: "Audience", rule: "must be specified" });
  }
  const limit = parseTokenLimit(request, violations);
  if (violations.length > 0) throw invalidArgument(...violations);
  return { audience: audience ?? "", ...(limit && { limit }) };
}

/**
 * Parses the requested audience: one, or several as a list; undefined where there is none. Adds an invalid one to
 * `violations`.
 *
 * @param aud each entry may be a comma-separated list
 * @param audiences of this service; each requested one must be among them
 */
export function parseAudience(
  aud: readonly string[],
  audiences: readonly string[],
  violations: FieldViolation[],
): string | readonly string[] | undefined {
  const requested = parseAudienceList(aud);
  if (requested.length > MAX_AUDIENCES) {
    violations.push({ field: "aud", rule: `must be at most ${MAX_AUDIENCES} audiences` });
  } else if (!requested.every((one) => isOwnAudience(one, audiences))) {
    violations.push({ field: "aud", rule: "must name audiences of this service" });
  }
  return requested.length > 1 ? requested : requested[0];
}

/** Parses the limit that `cap` and `scopes` set; undefined where they set none. Adds invalid fields to `violations`. */
export function parseTokenLimit(
  { cap, scopes }: Omit<TokenRequest, "aud">,
  violations: FieldViolation[],
): RequestedLimit | undefined {
  const groups = distinct(scopes);
  const names = distinct(cap);
  if (groups.length > MAX_SCOPES || !groups.every((group) => isUidp(group) || isName(group, "scopes") === undefined)) {
    violations.push({ field: "scopes", rule: SCOPES_RULE });
  }
  if (names.length > MAX_CAPABILITIES || !names.every(isCapabilityName)) {
    violations.push({ field: "cap", rule: "must name capabilities that exist, such as groups.list" });
  }
  if (violations.length > 0 || (groups.length === 0 && names.length === 0)) return undefined;
  return {
    ...(names.length > 0 && { cap: buildCapabilitySet(names) }),
    ...(groups.length > 0 && { scope: groups.map((group) => (isUidp(group) ? { uid: group } : { name: group })) }),
  };
}

/** Parses a list of comma-separated lists; audiences that differ in a trailing slash count once. */
function parseAudienceList(aud: readonly string[]): string[] {
  const found = new Map<string, string>();
  for (const one of aud.flatMap((list) => list.split(","))) {
    const audience = one.trim();
    if (audience !== "") found.set(audience.replace(/\/$/, ""), audience);
  }
  return [...found.values()];
}

/** Whether `audience` is one of `audiences`, with or without a trailing slash. */
function isOwnAudience(audience: string, audiences: readonly string[]): boolean {
  return audiences.some((ours) => ours.replace(/\/$/, "") === audience.replace(/\/$/, ""));
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values.filter((value) => value !== ""))];
}

// The groups that the scopes of a token request name, by uid or by the name of their organisation.

/** Who a token is for, and what it is valid for at most. */
interface TokenBearer {
  readonly identityUid: string;
  readonly limit?: TokenLimit | undefined;
  /** The uids of mappings that the bearer's directory groups satisfy. */
  readonly mappings?: readonly string[] | undefined;
}

/**
 * Replaces the names of organisations in the scopes of a request by their uids. A name stands for a verified
 * organisation in which the bearer holds a grant, at its root or below. Unverified names never match, because anybody
 * can give a group any name. All other names are rejected with one text, which does not reveal which organisations
 * exist.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export async function resolveScopes<R extends { readonly limit?: RequestedLimit | undefined }>(
  tx: Tx,
  { limit: requested, ...rest }: R,
  bearer: TokenBearer,
): Promise<Omit<R, "limit"> & { readonly limit?: TokenLimit }> {
  if (requested === undefined) return rest;
  const { scope: scopes, ...limit } = requested;
  if (scopes === undefined) return { ...rest, limit };
  const roots = scopes.some((scope) => "name" in scope) ? await readRoots(tx, bearer) : new Set<string>();
  const scope = new Set<string>();
  let isRejected = false;
  for (const one of scopes) {
    const uid = "uid" in one ? one.uid : (await tx.table(groupKind).findVerifiedRoot(one.name))?.uid;
    if (uid !== undefined && ("uid" in one || roots.has(uid))) scope.add(uid);
    else isRejected = true;
  }
  if (isRejected) throw invalidArgument({ field: "scopes", rule: SCOPES_RULE });
  return { ...rest, limit: { ...limit, scope: [...scope] } };
}

/** Reads the grants that count for a bearer. */
export async function readGrants(tx: Tx, { identityUid, limit, mappings }: TokenBearer): Promise<readonly Grant[]> {
  const principal: Principal = {
    identityUid,
    tokenId: "",
    issuedAt: 0,
    expiresAt: 0,
    ...(limit && { limit }),
    ...(mappings?.length && { mappings }),
  };
  return effectiveGrants(principal, await addMappedGrants(principal, tx.access.findAllGrants(identityUid), tx));
}

// With a limit, only organisations of its groups count. Grants below these groups count as well, although tokens do not
// get them: a login can then be refreshed with the name that it began with.
async function readRoots(tx: Tx, { limit, ...bearer }: TokenBearer): Promise<ReadonlySet<string>> {
  const roots = (await readGrants(tx, bearer)).map(({ groupUid }) => rootOf(groupUid));
  const within = limit?.scope?.map(rootOf);
  return new Set(within === undefined ? roots : roots.filter((root) => within.includes(root)));
}
