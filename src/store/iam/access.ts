// The store from which calls are authorized.
import { and, asc, between, eq, gt, inArray, isNotNull, isNull, not, sql } from "drizzle-orm";
import type { CapabilitySet } from "../../kernel/capability-set.js";
import type { Principal } from "../../kernel/principal.js";
import { padParams, rowLimit, statement, statementFamily, TransactionPart } from "../statement.js";
import type { Tables } from "../tables/tables.js";
import { hasSent } from "./directories.js";
import { isLive } from "./role-bindings.js";

/** An identity with one of its grants, or with none; the rows from which a call is authorized. */
export interface AccessRow {
  readonly identityUid: string;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
  /** When all of its tokens were revoked last, in epoch milliseconds; 0: never. */
  readonly revokeTimeMs: number;
  /** The token that the read names, where it was revoked by itself; else null. */
  readonly revokedTokenId: string | null;
  /** The key that the read names, where the installation has it; null where it was revoked. */
  readonly keyId: string | null;
  /** The organisation's own provider that the person logs in through; grants outside its organisation do not count. */
  readonly providerUid: string | null;
  readonly groupUid: string | null;
  /** The role that grants the capabilities; null where there is no grant. */
  readonly roleUid: string | null;
  readonly capabilities: CapabilitySet | null;
  /** Whether the binding that grants this is pending; null where there is no grant. */
  readonly pending: boolean | null;
  /** When the grant ends, in epoch milliseconds; null: never. Grants that have ended are not read. */
  readonly endTimeMs: number | null;
}

/** The token that a read names: whether it was revoked, and whether the installation has its key. */
export type TokenRef = Pick<Principal, "keyId" | "tokenId">;

/** What a mapping of a directory's group grants to the members of that group. */
export interface MappedGrant {
  readonly groupUid: string;
  readonly roleUid: string;
  readonly capabilities: CapabilitySet;
}

const columns = (t: Tables) => ({
  identityUid: t.identities.uid,
  notBefore: t.identities.notBefore,
  revokeTimeMs: t.identities.revokeTimeMs,
  revokedTokenId: t.revokedTokens.tokenId,
  keyId: t.keys.kid,
  providerUid: t.identities.providerUid,
  groupUid: t.roleBindings.groupUid,
  roleUid: t.roleBindings.roleUid,
  capabilities: t.roles.capabilities,
  pending: t.roleBindings.pending,
  endTimeMs: t.roleBindings.endTimeMs,
});

// That of the caller's token: a token is valid only while its key is, on whichever node or by whichever command it was revoked.
const isKey = (t: Tables) => eq(t.keys.kid, sql.placeholder("key"));

// Read with the identity, so that a call needs no statement more.
const isToken = (t: Tables) =>
  and(
    eq(t.revokedTokens.identityUid, sql.placeholder("identity")),
    eq(t.revokedTokens.tokenId, sql.placeholder("token")),
  );

// One that is being deleted or that its directory has deactivated has no rights and no valid tokens.
const isIdentity = (t: Tables) =>
  and(
    eq(t.identities.uid, sql.placeholder("identity")),
    isNull(t.identities.deleteTimeMs),
    isNull(t.identities.deactivateTimeMs),
  );

interface IdentityQuery {
  readonly identity: string;
  readonly key: string;
  readonly token: string;
}

/** Of the bindings; see {@link isLive}. */
interface GrantQuery extends IdentityQuery {
  readonly now: number;
}

interface PageQuery extends GrantQuery {
  readonly after: string;
  readonly limit: number;
}

/** No token has these. */
const NO_TOKEN: TokenRef = { keyId: "", tokenId: "" };

/** Up to this many grants are read by range and filtered here; beyond that they are read by group. */
const MAX_IN_RANGE = 32;
/** How many grants are read in one statement. */
const PAGE_SIZE = 256;

type GrantPage = (AccessRow & { readonly uid: string | null })[];

// One query finds whether the identity exists and what it is granted at a group and its ancestors. The
// ancestors of a group sort between its root and the group itself, so the few grants of an identity in
// that range are read at once.
const grantsInRange = statement<GrantQuery & { root: string; uid: string }, AccessRow>((q, t) =>
  q
    .select(columns(t))
    .from(t.identities)
    .leftJoin(t.keys, isKey(t))
    .leftJoin(t.revokedTokens, isToken(t))
    .leftJoin(
      t.roleBindings,
      and(
        eq(t.roleBindings.identityUid, t.identities.uid),
        between(t.roleBindings.groupUid, sql.placeholder("root"), sql.placeholder("uid")),
        isLive(t),
      ),
    )
    .leftJoin(t.roles, eq(t.roles.uid, t.roleBindings.roleUid))
    .where(isIdentity(t))
    .limit(rowLimit(MAX_IN_RANGE + 1)),
);

// The same for identities with many grants, at a cost that does not grow with their number. Sizes are
// rounded up so that a few shapes serve every depth.
const grantsAt = statementFamily<number, Record<string, string | number>, AccessRow>(String, (size) => (q, t) => {
  const groupUids = Array.from({ length: size }, (_, i) => sql.placeholder(`group${i}`));
  return q
    .select(columns(t))
    .from(t.identities)
    .leftJoin(t.keys, isKey(t))
    .leftJoin(t.revokedTokens, isToken(t))
    .leftJoin(
      t.roleBindings,
      and(eq(t.roleBindings.identityUid, t.identities.uid), inArray(t.roleBindings.groupUid, groupUids), isLive(t)),
    )
    .leftJoin(t.roles, eq(t.roles.uid, t.roleBindings.roleUid))
    .where(isIdentity(t));
});

// The grants that count for lists over all groups, in pages: an identity may have thousands. The page is read before it is
// joined, so that no database reads all of them to sort them.
const acceptedGrants = statement<PageQuery, AccessRow & { uid: string | null }>((q, t) => {
  const { uid, identityUid, groupUid, roleUid, pending, endTimeMs } = t.roleBindings;
  const page = q
    .select({ uid, identityUid, groupUid, roleUid, pending, endTimeMs })
    .from(t.roleBindings)
    .where(
      and(
        eq(identityUid, sql.placeholder("identity")),
        eq(pending, false),
        gt(uid, sql.placeholder("after")),
        isLive(t),
      ),
    )
    .orderBy(asc(uid))
    .limit(rowLimit("limit"))
    .as("page");
  return q
    .select({
      ...columns(t),
      ...{ groupUid: page.groupUid, roleUid: page.roleUid, pending: page.pending, uid: page.uid },
      endTimeMs: page.endTimeMs,
    })
    .from(t.identities)
    .leftJoin(t.keys, isKey(t))
    .leftJoin(t.revokedTokens, isToken(t))
    .leftJoin(page, eq(page.identityUid, t.identities.uid))
    .leftJoin(t.roles, eq(t.roles.uid, page.roleUid))
    .where(isIdentity(t))
    .orderBy(asc(page.uid));
});

const identityAlone = statement<IdentityQuery, AccessRow>((q, t) =>
  q
    .select({
      ...columns(t),
      groupUid: sql<null>`null`.as("group_uid"),
      roleUid: sql<null>`null`.as("role_uid"),
      capabilities: sql<null>`null`.as("capabilities"),
      pending: sql<null>`null`.as("pending"),
      endTimeMs: sql<null>`null`.as("end_time_ms"),
    })
    .from(t.identities)
    .leftJoin(t.keys, isKey(t))
    .leftJoin(t.revokedTokens, isToken(t))
    .where(isIdentity(t)),
);

// For the log of a call that is rejected.
const deactivated = statement<Pick<IdentityQuery, "identity">, object>((q, t) =>
  q
    .select({ uid: t.identities.uid })
    .from(t.identities)
    .where(
      and(
        eq(t.identities.uid, sql.placeholder("identity")),
        isNull(t.identities.deleteTimeMs),
        isNotNull(t.identities.deactivateTimeMs),
      ),
    ),
);

// A token names few mappings; sizes are rounded up so that a few shapes serve all. Once a directory sends people by SCIM, it
// says who is in its groups, and tokens count no more.
const mappedGrants = statementFamily<number, Record<string, string>, MappedGrant>(String, (size) => (q, t) => {
  const uids = Array.from({ length: size }, (_, i) => sql.placeholder(`mapping${i}`));
  return q
    .select({ groupUid: t.groupMappings.scope, roleUid: t.groupMappings.roleUid, capabilities: t.roles.capabilities })
    .from(t.groupMappings)
    .innerJoin(t.roles, eq(t.roles.uid, t.groupMappings.roleUid))
    .where(
      and(
        eq(t.groupMappings.providerUid, sql.placeholder("provider")),
        inArray(t.groupMappings.uid, uids),
        not(hasSent(t, sql.placeholder("provider"))),
      ),
    );
});

export class GrantReader extends TransactionPart {
  /**
   * The identity and its grants at a group and its ancestors; empty where there is no such identity.
   *
   * @param lineage the uids of the ancestors and of the group, root first
   * @param token the caller's; see {@link AccessRow.keyId} and {@link AccessRow.revokedTokenId}
   */
  findGrantsAt(identityUid: string, lineage: readonly string[], token = NO_TOKEN): Promise<AccessRow[]> {
    const query = {
      identity: identityUid,
      key: token.keyId ?? "",
      token: token.tokenId,
      root: lineage[0] ?? "",
      uid: lineage.at(-1) ?? "",
      now: this.tx.clockMs(),
    };
    return this.all(grantsInRange, query, (rows) =>
      rows.length > MAX_IN_RANGE ? this.#readByGroup(query, lineage) : filterByLineage(rows, lineage),
    );
  }

  /**
   * The identity and its grants at any of `groupUids`, in a number of statements that grows with them, not with the
   * grants of the identity. There may be other grants of the organisation among them.
   *
   * @param root the root group that the groups belong to
   */
  async findGrantsIn(identityUid: string, root: string, groupUids: readonly string[]): Promise<AccessRow[]> {
    // Every uid below the root is less than the root with a "0" after it.
    const query = { identity: identityUid, key: "", token: "", root, uid: `${root}0`, now: this.tx.clockMs() };
    const found = await this.all(grantsInRange, query);
    if (found.length <= MAX_IN_RANGE) return found;
    const rows: AccessRow[] = [];
    for (let i = 0; i < groupUids.length; i += PAGE_SIZE) {
      for (const row of await this.#readByGroup(query, groupUids.slice(i, i + PAGE_SIZE))) rows.push(row);
    }
    return rows;
  }

  #readByGroup({ identity, key, token }: IdentityQuery, groupUids: readonly string[]): Promise<AccessRow[]> {
    const { size, params } = padParams("group", groupUids);
    return this.all(grantsAt(size), { ...params, identity, key, token, now: this.tx.clockMs() });
  }

  /** The identity in one row without a grant; empty where there is no such identity. */
  findIdentity(identityUid: string, token = NO_TOKEN): Promise<AccessRow[]> {
    return this.all(identityAlone, { identity: identityUid, key: token.keyId ?? "", token: token.tokenId });
  }

  /** Whether an identity that no other method finds is one that its directory has deactivated. */
  isDeactivated(identityUid: string): Promise<boolean> {
    return this.has(deactivated, { identity: identityUid });
  }

  /** The identity and all of its grants that are not pending; empty where there is no such identity. */
  findAllGrants(identityUid: string, token = NO_TOKEN): Promise<AccessRow[]> {
    const query = {
      identity: identityUid,
      key: token.keyId ?? "",
      token: token.tokenId,
      after: "",
      limit: PAGE_SIZE,
      now: this.tx.clockMs(),
    };
    return this.all(acceptedGrants, query, (rows) => (rows.length < PAGE_SIZE ? rows : this.#readRest(query, rows)));
  }

  async #readRest(query: PageQuery, first: GrantPage): Promise<AccessRow[]> {
    const all: AccessRow[] = [...first];
    for (let page = first; page.length === PAGE_SIZE; ) {
      await this.tx.pause?.();
      const now = this.tx.clockMs();
      page = await this.all(acceptedGrants, { ...query, after: page.at(-1)?.uid ?? "", now });
      for (const row of page) if (row.groupUid !== null) all.push(row);
    }
    await this.tx.pause?.();
    return all;
  }

  /**
   * The grants of those of `mappingUids`, which are few, that exist and belong to the provider; none where its directory sends
   * people by SCIM.
   */
  findMappedGrants(providerUid: string, mappingUids: readonly string[]): Promise<MappedGrant[]> {
    const { size, params } = padParams("mapping", mappingUids);
    return this.all(mappedGrants(size), { ...params, provider: providerUid });
  }
}

function filterByLineage(rows: AccessRow[], lineage: readonly string[]): AccessRow[] {
  const grants = rows.filter(({ groupUid }) => groupUid !== null && lineage.includes(groupUid));
  const [identity] = rows;
  if (grants.length > 0 || identity === undefined) return grants;
  return [{ ...identity, groupUid: null, roleUid: null, capabilities: null, pending: null, endTimeMs: null }];
}
