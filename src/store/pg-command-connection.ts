import pg from "pg";
import { awaitConnection, type PgTls } from "./pg-connection.js";

/** How long to wait for a connection, in milliseconds. */
const CONNECT_MS = 5_000;

/** Where a database is, and who connects to it. */
export interface CommandConnection {
  /** `postgres://user:password@host:port/database` */
  readonly url: string;
  /** TLS, where the URL does not say it. */
  readonly tls: PgTls;
  /** The name that the server shows for the connection. */
  readonly name: string;
}

/**
 * Connects for a command whose statements read or write whole tables: no limit of the server ends them.
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
  await awaitConnection(client.connect());
  // Without a listener a lost connection would end the process; the next query fails in any case.
  client.on("error", () => {});
  // By statements, because the driver does not send limits of 0.
  await client.query("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0");
  return client;
}
