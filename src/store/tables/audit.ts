// The audit log. Its rows are written once and never changed; the hash chain that seals them
// is a table of its own (docs/adr/0006-audit-chain.md).
import type { Columns, RowOf } from "./columns-sqlite.js";

/** Builds the tables of the audit log. */
export function defineAuditTables(c: Columns) {
  const audit = c.table(
    "audit",
    {
      id: c.serial("id"),
      /** The organisation it concerns. */
      rootUid: c.str("root_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
      /** The CloudEvents type, or the full name of the method. */
      type: c.str("type").notNull(),
      /** The RPC path, or the name of the command on the host. */
      method: c.str("method").notNull(),
      subjectUid: c.str("subject_uid").notNull(),
      /** The identity that made the change; empty for a command on the host. */
      actorUid: c.str("actor_uid").notNull(),
      tokenId: c.str("token_id").notNull(),
      requestId: c.str("request_id").notNull(),
      remoteAddress: c.str("remote_address").notNull(),
      /** Which columns the chain covers; see `selectMembers`. */
      version: c.int("version").notNull().default(3),
      /** The trace that the request belongs to; empty where there is none, and in version 1. */
      traceId: c.str("trace_id").notNull().default(""),
      /** The name that the actor had; empty where it had none, and in version 1. */
      actorName: c.str("actor_name").notNull().default(""),
      /** SHA-256 of the body, which the chain covers in its place; empty without one, and before version 3. */
      bodyHash: c.str("body_hash").notNull().default(""),
      /** What was changed, as canonical JSON; empty where the change has nothing to say. The last column, as it is long. */
      body: c.str("body").notNull().default(""),
    },
    // The API filters by one of these columns and orders by time; the id makes the order complete. A subject begins with
    // the uid of its organisation. The id of a request has none: each change would write one more page, at random.
    (t) => [
      c.index("audit_root").on(t.rootUid, t.id),
      c.index("audit_time").on(t.rootUid, t.timeMs, t.id),
      c.index("audit_subject").on(t.subjectUid, t.timeMs, t.id),
      c.index("audit_actor").on(t.rootUid, t.actorUid, t.timeMs, t.id),
      c.index("audit_type").on(t.rootUid, t.type, t.timeMs, t.id),
    ],
  );

  // The unique index finds the rows that are not sealed yet.
  const auditChain = c.table(
    "audit_chain",
    {
      rootUid: c.str("root_uid").notNull(),
      /** 1 for the first entry of an organisation, then without gaps. */
      seq: c.long("seq").notNull(),
      auditId: c.long("audit_id").notNull(),
      hash: c.str("hash").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.rootUid, t.seq] }), c.uniqueIndex("audit_chain_audit").on(t.auditId)],
  );

  const auditHeads = c.table("audit_heads", {
    rootUid: c.str("root_uid").primaryKey(),
    seq: c.long("seq").notNull(),
    hash: c.str("hash").notNull(),
    /** When it was signed. */
    timeMs: c.long("time_ms").notNull(),
    signature: c.str("signature").notNull(),
  });

  const auditSealer = c.table("audit_sealer", {
    name: c.str("name").primaryKey(),
    /** Every row up to this id is sealed, and no further row will get such an id. */
    settledId: c.long("settled_id").notNull(),
    /** How often rows were sealed; shows whether another node did so in between. */
    passes: c.long("passes").notNull(),
  });

  // Where the chain of an organisation begins whose oldest entries were deleted.
  const auditCheckpoints = c.table("audit_checkpoints", {
    rootUid: c.str("root_uid").primaryKey(),
    /** The number of the last deleted entry. */
    seq: c.long("seq").notNull(),
    hash: c.str("hash").notNull(),
    /** The time of the last deleted row. */
    entryTimeMs: c.long("entry_time_ms").notNull(),
    /** When it was signed. */
    timeMs: c.long("time_ms").notNull(),
    signature: c.str("signature").notNull(),
  });

  return { audit, auditChain, auditHeads, auditSealer, auditCheckpoints };
}

type AuditTables = ReturnType<typeof defineAuditTables>;

/**
 * A recorded change with the number that the store assigned, and the size of its body. Bodies are large, and are read
 * on their own.
 */
export type StoredAuditRow = Omit<RowOf<AuditTables["audit"]>, "body"> & {
  /** The length of the body in bytes; 0 where there is none. */
  readonly bodyBytes: number;
};
type Added = "id" | "version" | "traceId" | "actorName" | "bodyHash" | "bodyBytes";
/** A change to be recorded. The store adds the version of the row and the hash of its body, and reads the actor's name. */
export interface AuditRow extends Omit<StoredAuditRow, Added> {
  /** The name of an actor that the same unit of work has deleted. */
  readonly actorName?: string | undefined;
  /** The trace of the request; empty unless set. */
  readonly traceId?: string;
  /** What was changed, as canonical JSON; none unless set. */
  readonly body?: string | undefined;
}
/** The position of an audit row in the chain of its organisation. */
export type ChainEntry = RowOf<AuditTables["auditChain"]>;
/** The signed end of a chain. */
export type AuditHead = RowOf<AuditTables["auditHeads"]>;
/** The signed last entry of those that were deleted from the beginning of a chain. */
export type AuditCheckpoint = RowOf<AuditTables["auditCheckpoints"]>;
/** How far the log is sealed. */
export type SealerRow = Omit<RowOf<AuditTables["auditSealer"]>, "name">;
