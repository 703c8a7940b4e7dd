// An audit log in a data directory, with what writes, seals, verifies and attacks it.
import { join } from "node:path";
import { createRetention, type RetentionDeps } from "../../src/audit/retention.js";
import { createSealer, type SealerDeps } from "../../src/audit/sealer.js";
import { type LogReport, verifyLog } from "../../src/audit/verify.js";
import { type KeyRing, openKeyRing } from "../../src/issuer/keys/key-ring.js";
import { type MasterKey, readMasterKey } from "../../src/issuer/keys/master-key.js";
import { createJobs, type Job } from "../../src/jobs/jobs.js";
import { LEASE_MS } from "../../src/jobs/lease.js";
import { formatBody } from "../../src/kernel/audit-body.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import type { AuditRow, StoredAuditRow } from "../../src/store/tables/audit.js";
import { tempDir } from "../support/temp-dir.js";

export function auditRow(rootUid: string, values: Partial<AuditRow> = {}): AuditRow {
  return {
    rootUid,
    timeMs: 1_763_675_334_123,
    type: "test.thing.made.v1",
    method: "/test.Things/Make",
    subjectUid: rootUid,
    actorUid: "actor",
    tokenId: "token",
    requestId: "request",
    remoteAddress: "192.0.2.7",
    ...values,
  };
}

/** A row as stored, of version 3 and without a body unless set otherwise. */
export function buildStoredRow(id: number, rootUid: string, values: Partial<StoredAuditRow> = {}): StoredAuditRow {
  const { body: _, ...row } = auditRow(rootUid);
  return { ...row, id, version: 3, traceId: "", actorName: "", bodyHash: "", bodyBytes: 0, ...values };
}

/** The body of a row: a binding whose role changed. */
export const BODY = formatBody(
  {
    type: "chainguard.platform.iam.v2.RoleBinding",
    before: { role: { name: "builder" } },
    after: { role: { name: "viewer" } },
  },
  "test.thing.made.v1",
);

/** Makes all rows that are not sealed rows of an older version, as Arbor before 1.0 wrote them; statements of SQL. */
export function makeOlder(version: 1 | 2): string {
  const columns = version === 1 ? ", trace_id = '', actor_name = ''" : "";
  const unsealed = "id NOT IN (SELECT audit_id FROM audit_chain)";
  return `UPDATE audit SET version = ${version}, body = '', body_hash = ''${columns} WHERE ${unsealed}`;
}

/** The job that seals, or the one that deletes old rows, alone on its node. */
export interface TestSealer {
  start(): void;
  /** Seals or deletes all that are due, unless another node has the lease; resolves to their number. */
  pass(): Promise<number>;
  stop(): Promise<void>;
}

/** An open log. */
export interface Log {
  readonly directory: string;
  readonly store: Store;
  readonly keys: KeyRing;
  readonly masterKey: MasterKey;
  /** What sealers of this log complained of. */
  readonly problems: string[];
  /** Writes rows one after another, each in a transaction of its own. */
  append(...rows: readonly AuditRow[]): Promise<void>;
  /** A sealer on a node with the name `holder`; the default is that of the log. */
  sealer(values?: Partial<SealerDeps> & { readonly holder?: string; readonly leaseMs?: number }): TestSealer;
  /** What deletes the rows that are older than `retentionMs`. */
  retention(retentionMs: number, values?: Partial<RetentionDeps> & { readonly holder?: string }): TestSealer;
  verify(rootUid: string): Promise<LogReport>;
  close(): Promise<void>;
}

/** Opens the log of a directory, or a new one; of another store, with the key of the directory. */
export async function openLog(
  directory = tempDir(),
  clock: () => number = Date.now,
  store: Store = openSqlite({ directory, clock }),
): Promise<Log> {
  const masterKey = readMasterKey(join(directory, "master.key"), true);
  const keys = await openKeyRing({ store, masterKey, clock, tokenAlgorithm: "ES256" });
  const problems: string[] = [];
  const onProblem = (what: string) => void problems.push(what);
  const runner = (job: Job, holder: string, used = store, leaseMs = LEASE_MS): TestSealer => {
    const jobs = createJobs({ store: used, holder, onProblem, random: () => 0, leaseMs });
    jobs.add(job);
    return { start: jobs.start, pass: () => jobs.runNow(job.name), stop: jobs.stop };
  };
  return {
    directory,
    store,
    keys,
    masterKey,
    problems,
    async append(...rows) {
      for (const row of rows) await store.write((tx) => tx.audit.append(row));
    },
    sealer({ holder = "test", leaseMs, ...values } = {}) {
      return runner(createSealer({ store, keys, clock, onProblem, ...values }), holder, values.store, leaseMs);
    },
    retention(retentionMs, { holder = "test", ...values } = {}) {
      const job = createRetention({ store, keys, clock, onProblem, retentionMs, ...values });
      return runner(job, holder, values.store);
    },
    verify: (rootUid) => verifyLog(store, rootUid, keys),
    close: () => store.close(),
  };
}

/** Changes a database directly, as an attacker with write access does. */
export function attack(directory: string, ...statements: readonly string[]): void {
  const db = openDatabase(join(directory, "arbor.db"));
  try {
    for (const statement of statements) db.exec(statement);
  } finally {
    db.close();
  }
}
