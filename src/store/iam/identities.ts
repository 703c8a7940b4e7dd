import { and, asc, isNotNull, lt } from "drizzle-orm";
import { ListedTable } from "../lists/listed-table.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, type PatchOf, usualSorts } from "../lists/resource.js";
import { selectAny } from "../rows.js";
import { buildEquals, buildUpdateValues, type Executor, rowLimit, statement, value } from "../statement.js";
import type { IdentityRow } from "../tables/identities.js";
import type { Tables } from "../tables/schema.js";

export const identityKind = defineListedKind(2, {
  table: "identities",
  parent: "groupUid",
  fixed: ["issuer", "subject", "providerUid", "lastSeenTimeMs", "deleteTimeMs"],
  quota: "identities",
  sorts: usualSorts,
});

const child = selectAny("identities", "groupUid");
const updateLastSeen = statement<{ uid: string; lastSeenTimeMs: number }>((q, t) =>
  q
    .update(t.identities)
    .set(buildUpdateValues(t.identities, "lastSeenTimeMs"))
    .where(and(buildEquals(t.identities, "uid"), lt(t.identities.lastSeenTimeMs, value("lastSeenTimeMs")))),
);

// The provider may be deleted before the identity.
const marks = (t: Tables) => ({ ...buildUpdateValues(t.identities, "deleteTimeMs"), providerUid: null });
const mark = statement<{ uid: string; deleteTimeMs: number }>((q, t) =>
  q.update(t.identities).set(marks(t)).where(buildEquals(t.identities, "uid")),
);
const markByProvider = statement<{ providerUid: string; deleteTimeMs: number }>((q, t) =>
  q.update(t.identities).set(marks(t)).where(buildEquals(t.identities, "providerUid")),
);
const marked = statement<{ limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.identities.uid })
    .from(t.identities)
    .where(isNotNull(t.identities.deleteTimeMs))
    .orderBy(asc(t.identities.deleteTimeMs))
    .limit(rowLimit("limit")),
);

/** Identities. Those that are being deleted are neither found nor listed, but their rows are there. */
export class Identities extends ListedTable<IdentityRow, PatchOf<typeof identityKind>> {
  constructor(tx: Executor) {
    super(tx, identityKind);
  }

  override find(uid: string): Promise<IdentityRow | undefined> {
    return mapRow(this.findStored(uid), (row) => (row?.deleteTimeMs === null ? row : undefined));
  }

  override async list(query: ListQuery): Promise<Page<IdentityRow>> {
    const page = await super.list(query);
    return { ...page, rows: page.rows.filter(({ deleteTimeMs }) => deleteTimeMs === null) };
  }

  /**
   * Takes all rights and tokens of an identity away, before its bindings and its row are deleted in several units of
   * work.
   */
  markDeleted(uid: string, deleteTimeMs: number): Promise<void> {
    return this.run(mark, { uid, deleteTimeMs });
  }

  /** Does the same to all people of a provider. */
  markDeletedOf(providerUid: string, deleteTimeMs: number): Promise<void> {
    return this.run(markByProvider, { providerUid, deleteTimeMs });
  }

  /** The uids of identities that are being deleted, at most `limit`. */
  async findMarked(limit: number): Promise<string[]> {
    return (await this.all(marked, { limit })).map(({ uid }) => uid);
  }

  /** Whether the identity is being deleted. */
  isMarked(uid: string): Promise<boolean> {
    return mapRow(this.findStored(uid), (row) => row !== undefined && row.deleteTimeMs !== null);
  }

  /** Whether any identity is a child of the group. */
  hasChildren(groupUid: string): Promise<boolean> {
    return this.has(child, { groupUid });
  }

  /** Sets the last seen time unless the stored one is later. */
  updateLastSeen(uid: string, lastSeenTimeMs: number): Promise<void> {
    return this.run(updateLastSeen, { uid, lastSeenTimeMs });
  }
}

async function mapRow<T>(row: Promise<IdentityRow | undefined>, map: (row: IdentityRow | undefined) => T): Promise<T> {
  return map(await row);
}
