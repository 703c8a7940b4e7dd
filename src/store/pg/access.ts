// How units of work reach PostgreSQL: by sessions of their own, or through a pooler that gives a session for a transaction.
import type pg from "pg";
import { buildLocalVerification, verifyServer, verifyTransaction } from "./connection.js";

/** How long a statement may run, and a transaction wait for this process, in milliseconds. */
export interface UnitLimits {
  readonly statementMs: number;
  readonly idleMs: number;
}

/** What a transaction begins with. */
export interface Begin {
  readonly text: string;
  /** Waits for its result, and rejects a server that may not be used; it only waits unless set. */
  readonly verify?: (sent: Promise<unknown>) => Promise<void>;
}

export interface PgAccess {
  /** What the connections of the pool are opened with. */
  readonly connection: pg.PoolConfig;
  /** Whether PostgreSQL keeps statements under a name. */
  readonly named: boolean;
  /** @param maxIdleMs how long this transaction may wait for this process, where it is not as long as any other */
  begin(isWrite: boolean, maxIdleMs?: number): Begin;
}

const READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const WRITE = "BEGIN ISOLATION LEVEL SERIALIZABLE";

/** The session keeps limits, plans and prepared statements, and its server is verified once. */
export function createDirectAccess({ statementMs, idleMs }: UnitLimits): PgAccess {
  return {
    connection: {
      statement_timeout: statementMs,
      idle_in_transaction_session_timeout: idleMs,
      verify: verifyServer,
    },
    named: true,
    begin(isWrite, maxIdleMs) {
      const begin = isWrite ? WRITE : READ;
      if (maxIdleMs === undefined) return { text: begin };
      return { text: `${begin}; SET LOCAL idle_in_transaction_session_timeout = ${Math.ceil(maxIdleMs)}` };
    },
  };
}

/** Each transaction sets its limits and plans, verifies its server, and leaves nothing in the session. */
export function createPooledAccess({ statementMs, idleMs }: UnitLimits): PgAccess {
  const build = (begin: string, maxIdleMs: number): Begin => {
    const limits = {
      statement_timeout: String(statementMs),
      idle_in_transaction_session_timeout: String(Math.ceil(maxIdleMs)),
    };
    return { text: `${begin}; ${buildLocalVerification(limits)}`, verify: verifyTransaction };
  };
  const usual = { read: build(READ, idleMs), write: build(WRITE, idleMs) };
  return {
    connection: {},
    named: false,
    begin(isWrite, maxIdleMs) {
      if (maxIdleMs === undefined) return isWrite ? usual.write : usual.read;
      return build(isWrite ? WRITE : READ, maxIdleMs);
    },
  };
}
