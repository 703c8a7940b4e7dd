// The authorization decision: one indexed query in the transaction of the operation, without a cache. Whatever is
// missing or malformed denies.
import type { Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { bit, Capability, CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { readOption } from "../../codec/fields.js";
import { ApiError, invalidArgument, permissionDenied, unauthenticated } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import { isUidp, lineageOf, parentOf } from "../../kernel/uidp.js";
import type { AccessRow } from "../../store/iam/access.js";
import type { Tx } from "../../store/transaction.js";
import { Caller, type CapabilityBit } from "./caller.js";

/** What a guarded method demands of its caller. */
export interface Guard {
  readonly capabilities: readonly (CapabilityBit & { readonly name: string })[];
  /** Reads from the request where the capabilities are needed; absent on unscoped methods. */
  readonly scope?: { readonly field: string; readonly of: (request: Message) => string };
  /** Whether people may call it without the capabilities about their own identity. */
  readonly ownIdentity?: boolean;
}

const readGroups = [{ bit: bitOf(Capability.CAP_IAM_GROUPS_LIST) }];

/** The bit that stands for `capability` in sets. */
export function bitOf(capability: Capability): number {
  const value = CapabilitySchema.value[capability];
  if (value === undefined) throw new TypeError(`unknown capability ${capability}`);
  const number = readOption(value, bit);
  if (number === undefined) throw new TypeError(`capability ${capability} has no bit`);
  return number;
}

/**
 * Authorizes a request.
 *
 * For an unscoped read, all grants that are not pending are read: its list shows the descendants of their groups. For
 * an unscoped write no grants are read, because there may be thousands; the handler checks its group by
 * `UnaryCall.callerAt`.
 *
 * @param access whether the method reads or writes
 * @throws ApiError UNAUTHENTICATED when the identity is gone or deactivated, or its tokens or the key of this one were revoked,
 * INVALID_ARGUMENT when the scope is not a uid at all, PERMISSION_DENIED when a capability is missing.
 */
export async function authorize(
  guard: Guard,
  principal: Principal | undefined,
  request: Message,
  tx: Tx,
  access: "read" | "write" = "read",
): Promise<Caller> {
  if (principal === undefined) throw unauthenticated(undefined, "token_missing");
  const { scope, capabilities } = guard;
  if (scope === undefined) {
    const { identityUid } = principal;
    const granted =
      access === "read"
        ? tx.access.findAllGrants(identityUid, principal)
        : tx.access.findIdentity(identityUid, principal);
    return readCaller(principal, capabilities, addMappedGrants(principal, granted, tx), tx);
  }
  const uid = scope.of(request);
  if (!isUidp(uid)) {
    const rule = uid === "" ? "is required" : "must be a uid, such as the service assigns";
    throw invalidArgument({ field: scope.field, rule });
  }
  const { identityUid } = principal;
  const rows = addMappedGrants(principal, tx.access.findGrantsAt(identityUid, lineageOf(uid), principal), tx);
  const caller = await readCaller(principal, capabilities, rows, tx);
  if (!mayCallAt(guard, caller, uid)) throw permissionDenied(`${formatCapabilities(capabilities)} at ${uid}`);
  return caller;
}

/**
 * Whether a caller may call a method about the resource `uid`.
 *
 * @param caller with its grants at the resource and above it
 */
export function mayCallAt(
  { capabilities, ownIdentity }: Pick<Guard, "capabilities" | "ownIdentity">,
  caller: Caller,
  uid: string,
): boolean {
  // A limited token grants no more than its limit, which is about groups.
  const isOwn = ownIdentity === true && uid === caller.uid && parentOf(uid) === undefined && caller.unlimited;
  return isOwn || caller.holds(capabilities, uid);
}

/** Adds to the rows of a caller what the groups of its directory grant. */
export function addMappedGrants(
  { mappings }: Principal,
  rows: Promise<readonly AccessRow[]>,
  tx: Tx,
): Promise<readonly AccessRow[]> {
  return mappings === undefined ? rows : appendMappedGrants(mappings, rows, tx);
}

async function appendMappedGrants(mappings: readonly string[], pending: Promise<readonly AccessRow[]>, tx: Tx) {
  const rows = await pending;
  const [identity] = rows;
  if (identity === undefined || identity.providerUid === null) return rows;
  const grants = await tx.access.findMappedGrants(identity.providerUid, mappings);
  return [...rows, ...grants.map((grant) => ({ ...identity, endTimeMs: null, ...grant }))];
}

/**
 * Reads the caller from a token and the rows of its identity.
 *
 * @param needed the capabilities that the method declares
 * @param pending what `tx.access` finds of the identity, with {@link addMappedGrants}; empty where there is no such identity,
 * or it is deactivated
 * @throws ApiError UNAUTHENTICATED when the identity is gone or deactivated, or its tokens or the key of this one were revoked.
 */
export async function readCaller(
  principal: Principal,
  needed: readonly CapabilityBit[],
  pending: Promise<readonly AccessRow[]>,
  tx: Tx,
): Promise<Caller> {
  const rows = await pending;
  const [identity] = rows;
  // Read on every call, so that deleting or deactivating an identity or revoking its tokens or their key works at once.
  if (identity === undefined) {
    const isDeactivated = await tx.access.isDeactivated(principal.identityUid);
    throw unauthenticated(undefined, isDeactivated ? "person_deactivated" : "identity_deleted");
  }
  if (isRevoked(principal, identity)) throw unauthenticated(undefined, "token_revoked");
  if (principal.keyId !== undefined && identity.keyId !== principal.keyId)
    throw unauthenticated(undefined, "token_unknown_key");
  return new Caller(principal, needed, rows);
}

// Whether the token was revoked: by itself, with all tokens of its identity, or, by its time, because it is from before the
// identity was registered again. A caller without an API token has what its issuer has just verified.
function isRevoked({ issuedAt, keyId, revokeTimeMs = 0 }: Principal, identity: AccessRow): boolean {
  if (issuedAt < identity.notBefore) return true;
  return keyId !== undefined && (revokeTimeMs !== identity.revokeTimeMs || identity.revokedTokenId !== null);
}

/**
 * Selects the error for a resource that does not exist: `error` for callers who may list the group it would be in; for
 * all others PERMISSION_DENIED, as for a resource that they may not read (AIP-211).
 *
 * @param needed the capabilities that the method needs, as the error names them
 */
export function notFoundOrDenied(caller: Caller, uid: string, error: ApiError, needed: string): ApiError {
  const parent = parentOf(uid);
  return parent !== undefined && caller.holds(readGroups, parent) ? error : permissionDenied(`${needed} at ${uid}`);
}

/** Converts the NOT_FOUND of a handler to what its caller may see; see {@link notFoundOrDenied}. */
export function maskNotFound(
  caller: Caller,
  error: unknown,
  { scope, capabilities }: Guard,
  request: Message,
): unknown {
  if (!(error instanceof ApiError) || error.code !== Code.NotFound || scope === undefined) return error;
  return notFoundOrDenied(caller, scope.of(request), error, formatCapabilities(capabilities));
}

export function formatCapabilities(capabilities: Guard["capabilities"]): string {
  return capabilities.map(({ name }) => name).join(" and ");
}
