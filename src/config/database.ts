// Where the database is, for what needs more than units of work.
import type { Settings } from "./settings.js";

/**
 * The URL of a database in PostgreSQL for what needs a session of its own: a pooler gives one for a transaction.
 *
 * @returns undefined with SQLite
 */
export function findSessionUrl({ databaseUrl, databaseDirectUrl }: Settings): string | undefined {
  return databaseDirectUrl ?? databaseUrl;
}
