// What all connections to PostgreSQL share: statements, and the meaning of errors.
import type { ConnectionOptions } from "node:tls";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { failedPrecondition } from "../../kernel/errors.js";
import { type Clock, systemClock } from "../../kernel/time.js";
import { type AnyStatement, type Executor, prepareQuery, type Sql, type Statement, type Take } from "../statement.js";
import { schema as tables } from "../tables/schema-pg.js";

/** Concurrent writers that change the same counter use different rows of it, so that they rarely conflict. */
const COUNTER_SLOTS = 32;

/** TLS to PostgreSQL: options of `tls.connect`, or false for none. Undefined where the URL says it. */
export type PgTls = ConnectionOptions | false | undefined;

/** What is wrong where {@link isPoolerError}. */
export const POOLER =
  "the database is reached through a pooler such as pgbouncer, which gives a session to several clients: prepared " +
  "statements and limits of a session get lost. Connect to PostgreSQL itself, or say --database-pooler transaction, or " +
  "let the pooler work by sessions and pass on statement_timeout and idle_in_transaction_session_timeout";

/** Whether a pooler lost what belongs to a session. */
export function isPoolerError(error: unknown): boolean {
  // `prepared statement … does not exist` and `already exists`: another client has had the session meanwhile.
  if (["26000", "42P05"].includes(findErrorCode(error))) return true;
  return error instanceof Error && /unsupported startup parameter/.test(error.message);
}

/**
 * Waits for a connection.
 *
 * @throws Error that says so when TLS or a pooler is why there is none: their own errors name neither the database nor a
 * setting
 * @throws ApiError FAILED_PRECONDITION when the texts of the database are not what Arbor writes
 */
export async function awaitConnection<T>(connecting: Promise<T>): Promise<T> {
  try {
    return await connecting;
  } catch (error) {
    if (isPoolerError(error)) throw failedPrecondition("DATABASE_POOLER", POOLER);
    if (findErrorCode(error) === pgCodes.wrongTexts)
      throw failedPrecondition("DATABASE_TEXTS", (error as Error).message);
    const { message = "", code = "" } = error as { readonly message?: string; readonly code?: string };
    if (!isTlsError(code) && !/SSL connection/.test(message)) throw error;
    const settings = "--database-tls-mode and --database-tls-ca say what is accepted";
    throw new Error(`no TLS connection to the database: ${message}; ${settings}`, { cause: error });
  }
}

/** Whether a code is that of an error of TLS. */
export function isTlsError(code: string): boolean {
  return /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET|VERIFY))/.test(code);
}

/** As {@link awaitConnection}, through a pooler that gives a session for a transaction. */
export async function awaitPooledConnection<T>(connecting: Promise<T>): Promise<T> {
  try {
    return await connecting;
  } catch (error) {
    if (!isPoolerError(error)) return awaitConnection(Promise.reject(error));
    const remedy = "take `options` and limits out of the URL of the database, and PGOPTIONS out of the environment";
    throw failedPrecondition("DATABASE_POOLER", `the pooler rejects ${(error as Error).message}: ${remedy}`);
  }
}

const NOW = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) AS ms";

/**
 * An arbitrary number for the advisory lock that no other program should use. A process holds it while it changes the
 * tables.
 */
export const MIGRATION_LOCK = 0x4172626f;

/** Runs the statements of a connection. */
export interface PgExecutor extends Executor {
  /** Whether a statement only reads. */
  isReading(statement: AnyStatement): boolean;
}

/**
 * Creates the executor of a connection. Statements are prepared once per connection; PostgreSQL keeps a statement that
 * has a name.
 *
 * @param options.named whether they have names: not behind a pooler, which gives each transaction another session
 */
export function createExecutor(
  client: pg.ClientBase,
  { named = true, clock = systemClock }: { readonly named?: boolean; readonly clock?: Clock } = {},
): PgExecutor {
  const now = named ? { name: "arbor_now", text: NOW } : NOW;
  const sql = drizzle(client as pg.Client) as unknown as Sql;
  const prepared: (Prepared | undefined)[] = [];
  let changedRows = 0;
  const prepare = (statement: AnyStatement) => {
    let ready = prepared[statement.id];
    if (ready === undefined) {
      ready = prepareQuery(statement.build(sql, tables), named ? `arbor_${statement.id}` : undefined) as Prepared;
      prepared[statement.id] = ready;
    }
    return ready;
  };
  return {
    counterSlots: COUNTER_SLOTS,
    get changedRows() {
      return changedRows;
    },
    isReading: (statement) => isReading(prepare(statement)),
    clockMs: () => clock(),
    async nowMs() {
      const { rows } = await client.query(now);
      return Number(rows[0]?.ms);
    },
    async rows<Params extends object, Row, T>(
      statement: Statement<Params, Row>,
      params: Params,
      take?: Take<Row, T>,
    ): Promise<T> {
      const ready = prepare(statement);
      const result = await ready.execute(params);
      const isRows = Array.isArray(result);
      if (!isReading(ready)) changedRows += isRows ? result.length : (result.rowCount ?? 0);
      const rows = isRows ? (result as Row[]) : [];
      return take === undefined ? (rows as T) : take(rows);
    },
  };
}

interface Prepared {
  execute(params: object): Promise<pg.QueryResult | unknown[]>;
  getQuery(): { readonly sql: string };
}

function isReading(query: Prepared): boolean {
  return query.getQuery().sql.startsWith("select");
}

/** The SQLSTATE of an error or of its cause; the empty string where there is none. */
export function findErrorCode(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string") return code;
  return cause === undefined ? "" : findErrorCode(cause);
}

/**
 * Whether a transaction conflicted with another and is to run again. PostgreSQL reports a serialization failure or a
 * deadlock, and sometimes a violated constraint, because of a row that the other transaction inserted. When the unit
 * runs again it sees that row.
 */
export function isConflict(error: unknown): boolean {
  return ["40001", "40P01", "23503", "23505"].includes(findErrorCode(error));
}

/**
 * Settings of a session that decide its plans. PostgreSQL chooses by statistics, which are missing or old when much was
 * written, and a plan that passes over a whole table also conflicts with all that others write to it meanwhile. So each
 * statement has one plan that is good at any size: it reads a range of an index, in its order, and joins rows by their
 * keys. Other plans are avoided; where rows are sorted on purpose, every plan sorts. A plan costs as many rows and entries
 * as it reads, so that also a small table is not read whole. It is made once for a connection, without values.
 *
 * Columns have no statistics for the same reason (docs/adr/0018-plain-indexes.md).
 */
const PLANS: Readonly<Record<string, string>> = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_sort: "off",
  enable_incremental_sort: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  seq_page_cost: "0",
  random_page_cost: "0",
  cpu_tuple_cost: "1",
  cpu_index_tuple_cost: "1",
  max_parallel_workers_per_gather: "0",
  jit: "off",
  plan_cache_mode: "force_generic_plan",
};

/** Reads the state of the server, and fixes settings: for the session, or for the transaction alone. */
function buildVerification(settings: Readonly<Record<string, string>>, isLocal: boolean): string {
  return `SELECT pg_is_in_recovery() AS standby, current_database() AS name,
  current_setting('server_encoding') AS encoding, current_setting('standard_conforming_strings') AS strings,
  set_config('synchronous_commit', current_setting('synchronous_commit'), ${isLocal}) AS "synchronousCommit",
  ${Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', ${isLocal})`)}`;
}

const VERIFY = buildVerification(PLANS, false);

/**
 * Builds what a transaction begins with behind a pooler: as {@link verifyServer}, since each transaction may be in the
 * session of another server, and with settings that hold for the transaction alone.
 */
export function buildLocalVerification(limits: Readonly<Record<string, string>>): string {
  return buildVerification({ ...PLANS, ...limits }, true);
}

/**
 * Waits for the result of {@link buildLocalVerification} after a BEGIN.
 *
 * @throws Error for which the server may not be used
 */
export async function verifyTransaction(sent: Promise<unknown>): Promise<void> {
  const results = await sent.catch((error) => {
    // A standby rejects serializable transactions.
    throw findErrorCode(error) === pgCodes.featureNotSupported ? describeStandby() : error;
  });
  const row = (results as readonly pg.QueryResult<ServerState>[]).at(-1)?.rows[0];
  const fault = findServerFault(row) ?? findTextFault(row);
  if (fault !== undefined) throw fault;
}

/**
 * Verifies the server of a new connection, before anything else is done with it. A standby answers with an older state
 * and cannot write; with `synchronous_commit = off` a crash loses commits that were acknowledged. The setting is fixed
 * for the session, so that a later change of the server's configuration does not turn it off. So are the settings of
 * plans.
 *
 * @param callback receives the error for which the connection may not be used
 */
export function verifyServer(client: pg.ClientBase, callback: (error?: Error) => void): void {
  client
    .query<ServerState>(VERIFY)
    .then(({ rows: [row] }) => callback(findServerFault(row) ?? findTextFault(row)), callback);
}

interface TextState {
  readonly name: string;
  readonly encoding: string;
  readonly strings: string;
}

interface ServerState extends TextState {
  readonly standby: boolean;
  readonly synchronousCommit: string;
}

// In another encoding names that people may choose cannot be stored, or are stored as other bytes than are sorted.
function findTextFault(state: TextState | undefined): Error | undefined {
  const { name, encoding, strings } = state ?? {};
  if (encoding !== "UTF8") {
    const remedy = "create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and restore a dump into it";
    return buildPgError(
      pgCodes.wrongTexts,
      `the database ${name} has the encoding ${encoding}, and UTF8 is needed: ${remedy}`,
    );
  }
  if (strings !== "on") {
    const remedy = "set it to on, or remove the setting of the role or the database";
    return buildPgError(
      pgCodes.wrongTexts,
      `the database ${name} has standard_conforming_strings = ${strings}: ${remedy}`,
    );
  }
  return undefined;
}

function findServerFault({ standby, synchronousCommit }: Partial<ServerState> = {}): Error | undefined {
  if (standby !== false) return describeStandby();
  if (synchronousCommit === "off")
    return buildPgError(
      pgCodes.notDurable,
      "PostgreSQL runs with synchronous_commit = off and would lose acknowledged writes",
    );
  return undefined;
}

function describeStandby(): Error {
  const rule = "the URL of the database must lead to the primary";
  return buildPgError(pgCodes.readOnly, `the database server is a standby: ${rule}`);
}

const unreplicated = new WeakSet<pg.ClientBase>();

/**
 * Notices when PostgreSQL stops waiting for its synchronous standby. A statement timeout or a cancelled statement makes
 * it report the commit as done, with a warning that the standby may not have it.
 */
export function watchReplication(client: pg.ClientBase): void {
  client.on("notice", ({ routine }) => {
    if (routine === "SyncRepWaitForLSN") unreplicated.add(client);
  });
}

/** @throws Error with an unknown outcome when the last commit may be lost with the primary */
export function assertReplicated(client: pg.ClientBase): void {
  if (unreplicated.has(client))
    throw buildPgError(pgCodes.outcomeUnknown, "the synchronous standby did not confirm the commit");
}

/** SQLSTATEs of errors that this module creates, or converts. */
export const pgCodes = {
  readOnly: "25006",
  featureNotSupported: "0A000",
  outcomeUnknown: "08007",
  // Of the class of system errors. PostgreSQL has none for a setting that Arbor rejects, and does not use these.
  wrongTexts: "58A01",
  notDurable: "58A02",
} as const;

function buildPgError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Whether the connection cannot be used any more. */
export function isConnectionLost(error: unknown): boolean {
  const code = findErrorCode(error);
  return (
    code === pgCodes.readOnly ||
    /^(08|57P0)|^ECONN|^EPIPE|^ENOTFOUND|^ETIMEDOUT|^EHOST|^ENET|^EAI_AGAIN/.test(code) ||
    isTerminated(error)
  );
}

// The first cause alone: the messages of others contain parameters of the statement.
function isTerminated(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.cause !== undefined) return isTerminated(error.cause);
  return /Connection terminated|is not queryable|timeout exceeded when|^timeout expired$|^Query read timeout$/.test(
    error.message,
  );
}

/** How long to wait for a connection, in milliseconds. */
const CONNECT_MS = 5_000;

export interface CommandConnection {
  /** `postgres://user:password@host:port/database` */
  readonly url: string;
  /** TLS, where the URL does not say it. */
  readonly tls: PgTls;
  /** The name that the server shows for the connection. */
  readonly name: string;
}

// Fixes the setting for the session, as `verifyServer` does. Nothing needs to be rejected: a command can turn it on.
const DURABLE = `SELECT current_database() AS name, current_setting('server_encoding') AS encoding,
  current_setting('standard_conforming_strings') AS strings, set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`;

/**
 * Connects for a command whose statements read or write whole tables: no limit of the server ends them, and no
 * `synchronous_commit = off` of the server makes a crash lose their commits.
 *
 * @throws Error when the server cannot be reached
 */
export async function connectForCommand({ url, tls, name }: CommandConnection): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    ...(tls !== undefined && { ssl: tls }),
    connectionTimeoutMillis: CONNECT_MS,
    application_name: name,
    keepAlive: true,
  });
  await awaitConnection(connect(client));
  // Without a listener a lost connection would end the process; the next query fails in any case.
  client.on("error", () => {});
  return client;
}

async function connect(client: pg.Client): Promise<void> {
  await client.connect();
  try {
    // By statements, because the driver does not send limits of 0.
    await client.query("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0");
    const { rows } = await client.query<TextState>(DURABLE);
    const fault = findTextFault(rows[0]);
    if (fault !== undefined) throw fault;
  } catch (error) {
    await client.end();
    throw error;
  }
}
