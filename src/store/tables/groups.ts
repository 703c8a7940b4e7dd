// What belongs to one group besides kinds of resources: accepted terms and access requests.
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";

export function defineGroupTables(c: Columns, { groups }: KindTables) {
  const groupUid = () =>
    c
      .str("group_uid")
      .notNull()
      .references(() => groups.uid);

  const termsAcceptances = c.table(
    "terms_acceptances",
    {
      groupUid: groupUid(),
      docId: c.str("doc_id").notNull(),
      acceptedBy: c.str("accepted_by").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.groupUid, t.docId] })],
  );

  const accessRequests = c.table(
    "access_requests",
    {
      groupUid: groupUid(),
      identityUid: c.str("identity_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.groupUid, t.identityUid] })],
  );

  return { termsAcceptances, accessRequests };
}

/** The acceptance of a document by a group, as stored. */
export type TermsAcceptanceRow = RowOf<ReturnType<typeof defineGroupTables>["termsAcceptances"]>;
