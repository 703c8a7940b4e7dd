// The groups that the scopes of a token request name, by uid or by the name of their organisation.
import { invalidArgument } from "../../kernel/errors.js";
import type { Principal, TokenLimit } from "../../kernel/principal.js";
import { rootOf } from "../../kernel/uidp.js";
import { addMappedGrants } from "../../pipeline/auth/authorize.js";
import { effectiveGrants, type Grant } from "../../pipeline/auth/caller.js";
import type { Tx } from "../../store/port.js";
import { type RequestedLimit, SCOPES_RULE } from "./token-request.js";

/** Who a token is for, and what it is valid for at most. */
export interface TokenBearer {
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
    const uid = "uid" in one ? one.uid : (await tx.groups.findVerifiedRoot(one.name))?.uid;
    if (uid !== undefined && ("uid" in one || roots.has(uid))) scope.add(uid);
    else isRejected = true;
  }
  if (isRejected) throw invalidArgument({ field: "scopes", description: SCOPES_RULE });
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
