// Faults of a PostgreSQL server and of the way to it: which error begins which fault, and which error callers get.
import { ApiError, unavailable } from "../../kernel/errors.js";
import { type DatabaseFaultEvent, type FaultKind, FaultLog } from "../faults.js";
import { findErrorCode, isConnectionLost, isPoolerError, isTlsError, POOLER, pgCodes } from "./connection.js";

const RETRY_MS = 1_000;

const kinds = {
  full: { message: "the disk of the database server is full: writes fail until there is space", stopsOnlyWrites: true },
  read_only: {
    message: "the database server is read-only, such as a standby: writes fail until it is not",
    stopsOnlyWrites: true,
  },
  denied: {
    message: "the database server denies the login or a right that the service needs: calls fail until it is granted",
    stopsOnlyWrites: true,
  },
  io_error: {
    message: "the disk of the database server does not read or write: calls fail until it does",
    stopsOnlyWrites: true,
  },
  no_memory: { message: "the database server has too little memory: calls fail", stopsOnlyWrites: true },
  no_connections: { message: "the database server accepts no more connections: calls fail until others end" },
  limit: { message: "the database server has reached a limit of its configuration: calls fail" },
  timeout: { message: "the database server ended statements that took too long: these calls fail" },
  unreachable: { message: "the database server cannot be reached: calls fail until it can" },
  unconfirmed: {
    message: "the synchronous standby of the database server does not confirm commits: writes fail until it does",
    stopsOnlyWrites: true,
  },
  unsuitable: { message: "the database cannot be used as it is configured: calls fail until that is changed" },
  corrupt: { message: "the database server reports damaged data: calls that need it fail" },
} as const satisfies Partial<Record<DatabaseFaultEvent["fault"], FaultKind>>;
type PgFault = keyof typeof kinds;

/** By SQLSTATE, or by how it begins; the first that matches. */
const faultsByCode: readonly (readonly [start: string, fault: PgFault])[] = [
  ["53100", "full"],
  ["53200", "no_memory"],
  ["53300", "no_connections"],
  ["53", "limit"],
  [pgCodes.readOnly, "read_only"],
  // insufficient_privilege; the class of failed logins; a database that is not there any more.
  ["42501", "denied"],
  ["28", "denied"],
  ["3D000", "denied"],
  // The database does not accept connections.
  ["55000", "denied"],
  [pgCodes.notDurable, "unsuitable"],
  [pgCodes.wrongTexts, "unsuitable"],
  ["58", "io_error"],
  // query_canceled, which is also a limit of time; idle_in_transaction_session_timeout; lock_not_available.
  ["57014", "timeout"],
  ["25P03", "timeout"],
  ["55P03", "timeout"],
  [pgCodes.outcomeUnknown, "unconfirmed"],
  // data_corrupted and index_corrupted.
  ["XX001", "corrupt"],
  ["XX002", "corrupt"],
];

function findFault(error: unknown): PgFault | undefined {
  const code = findErrorCode(error);
  const known = code === "" ? undefined : faultsByCode.find(([start]) => code.startsWith(start));
  if (known !== undefined) return known[1];
  if (isPoolerError(error)) return "unsuitable";
  return isConnectionLost(error) || isTlsError(code) ? "unreachable" : undefined;
}

/** The faults of one database. */
export type PgFaults = ReturnType<typeof createPgFaults>;

/**
 * Creates the monitor.
 *
 * @param onChange called once when a fault begins and once when it ends, and each minute between while statements fail
 */
export function createPgFaults(onChange?: (event: DatabaseFaultEvent) => void) {
  const log = new FaultLog<PgFault>({ kinds, onChange });
  return {
    counts: log,

    /**
     * Notes an error of a unit of work, and returns that for callers. Those of units themselves and defects are returned
     * unchanged.
     */
    toCallError(error: unknown): unknown {
      if (error instanceof ApiError) return error;
      const fault = findFault(error);
      if (fault === undefined) return error;
      const code = findErrorCode(error);
      log.note(fault, { ...(code !== "" && { code }), err: findRoot(error) });
      return toApiError(error);
    },
  };
}

/** Temporary failures are UNAVAILABLE. All others are defects and are returned unchanged. */
export function toApiError(error: unknown): unknown {
  if (isPoolerError(error)) return new Error(POOLER, { cause: error });
  if (findFault(error) === undefined) return error;
  return unavailable("the database cannot be used at the moment", RETRY_MS, error);
}

// The first cause alone: the messages of others contain parameters of the statement.
function findRoot(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? findRoot(error.cause) : error;
}
