// The authorization decision: one indexed query in the operation's own
// transaction, no cache, and denial whenever anything is missing or odd.
import { getOption, type Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { bit, Capability, CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { ApiError, invalidArgument, permissionDenied, unauthenticated } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import { isUidp, lineageOf, parentOf } from "../../kernel/uidp.js";
import type { AccessRow, Awaitable, Tx } from "../../store/port.js";
import { Caller, type CapabilityBit } from "./caller.js";

/** What a guarded method demands of its caller. */
export interface Guard {
  readonly capabilities: readonly (CapabilityBit & { readonly name: string })[];
  /** Reads from the request where the capabilities are needed; absent on unscoped methods. */
  readonly scope?: { readonly field: string; readonly of: (request: Message) => string };
}

const readGroups = [{ bit: bitOf(Capability.CAP_IAM_GROUPS_LIST) }];

/** The bit that stands for `capability` in sets. */
export function bitOf(capability: Capability): number {
  const value = CapabilitySchema.value[capability];
  if (value === undefined) throw new TypeError(`unknown capability ${capability}`);
  return getOption(value, bit);
}

/**
 * Establishes that the bearer of a token may make this request.
 *
 * What an unscoped method may do depends on where; its lists show the descendants of the groups that the
 * caller has grants at, but for pending ones. Unscoped writes check their group in the handler, by `Call.callerAt`; no
 * grants are read in advance, because there may be thousands.
 *
 * @throws ApiError UNAUTHENTICATED when the identity is gone or its tokens were revoked,
 * INVALID_ARGUMENT when the scope is not a uid at all, PERMISSION_DENIED when a capability is missing.
 */
export function authorize(
  guard: Guard,
  principal: Principal | undefined,
  request: Message,
  tx: Tx,
  access: "read" | "write" = "read",
): Awaitable<Caller> {
  if (principal === undefined) throw unauthenticated(undefined, "token_missing");
  const { scope, capabilities } = guard;
  if (scope === undefined) {
    const { identityUid } = principal;
    const granted = access === "read" ? tx.access.findAllGrants(identityUid) : tx.access.findIdentity(identityUid);
    const rows = withMapped(principal, granted, tx);
    const caller = (found: readonly AccessRow[]) => callerOf(principal, capabilities, found);
    return rows instanceof Promise ? rows.then(caller) : caller(rows);
  }
  const uid = scope.of(request);
  if (!isUidp(uid)) {
    const rule = uid === "" ? "is required" : "must be a uid, such as the service assigns";
    throw invalidArgument({ field: scope.field, description: `${scope.field} ${rule}` });
  }
  const rows = withMapped(principal, tx.access.findGrantsAt(principal.identityUid, lineageOf(uid)), tx);
  const admit = (found: readonly AccessRow[]) =>
    requireCapabilities(uid, capabilities, callerOf(principal, capabilities, found));
  return rows instanceof Promise ? rows.then(admit) : admit(rows);
}

/** What the store says of a caller, with what the groups of its directory grant it. */
export function withMapped(
  { mappings }: Principal,
  rows: Awaitable<readonly AccessRow[]>,
  tx: Tx,
): Awaitable<readonly AccessRow[]> {
  return mappings === undefined ? rows : addMapped(mappings, rows, tx);
}

async function addMapped(mappings: readonly string[], pending: Awaitable<readonly AccessRow[]>, tx: Tx) {
  const rows = await pending;
  const [identity] = rows;
  if (identity === undefined || identity.providerUid === null) return rows;
  const grants = await tx.access.findMappedGrants(identity.providerUid, mappings);
  return [...rows, ...grants.map((grant) => ({ ...identity, ...grant }))];
}

function requireCapabilities(uid: string, capabilities: Guard["capabilities"], caller: Caller): Caller {
  if (!caller.holds(capabilities, uid)) throw permissionDenied(`${namesOf(capabilities)} at ${uid}`);
  return caller;
}

/**
 * The caller that a token makes of what the store says of its identity.
 *
 * @param rows see {@link withMapped}
 * @throws ApiError UNAUTHENTICATED when the identity is gone or its tokens were revoked.
 */
export function callerOf(principal: Principal, needed: readonly CapabilityBit[], rows: readonly AccessRow[]): Caller {
  const [identity] = rows;
  // Read on every call, so that deleting an identity or revoking its tokens works at once.
  if (identity === undefined) throw unauthenticated(undefined, "identity_deleted");
  if (principal.issuedAt < identity.notBefore) throw unauthenticated(undefined, "token_revoked");
  return new Caller(principal, needed, rows);
}

/**
 * The error for something that is not there: that it is missing is only for callers who may read the
 * group it would be in; to all others it looks forbidden (AIP-211).
 */
export function notFoundOrDenied(caller: Caller, uid: string, error: ApiError, needed: string): ApiError {
  const parent = parentOf(uid);
  return parent !== undefined && caller.holds(readGroups, parent) ? error : permissionDenied(`${needed} at ${uid}`);
}

/** What a handler threw, as its caller may see it; see {@link notFoundOrDenied}. */
export function maskNotFound(
  caller: Caller,
  error: unknown,
  { scope, capabilities }: Guard,
  request: Message,
): unknown {
  if (!(error instanceof ApiError) || error.code !== Code.NotFound || scope === undefined) return error;
  return notFoundOrDenied(caller, scope.of(request), error, namesOf(capabilities));
}

/** The capabilities that a method needs, as errors name them. */
export function namesOf(capabilities: Guard["capabilities"]): string {
  return capabilities.map(({ name }) => name).join(" and ");
}
