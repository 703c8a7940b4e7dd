import { cpus } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../src/store/sqlite/driver.js";
import { describeLimits } from "../src/transport/http/limits/limits.js";

/** The conditions of one benchmark. */
export interface Conditions {
  readonly directory: string;
  readonly rows: number;
  readonly tokens: number;
}

/** Prints the conditions of the run. */
export function printConditions({ directory, rows, tokens }: Conditions): void {
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  const journal = db.pragma("journal_mode", { simple: true });
  const version = db.prepare("SELECT sqlite_version()").pluck().get();
  db.close();
  const limits = describeLimits().map(({ name, value }) => `${name} ${value}`);
  console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0]?.model.trim()}, cleartext on loopback`);
  console.log(`${rows} groups, ${tokens} tokens, access log off`);
  // The service refuses to start with anything less than FULL; of the two only the journal is in the file.
  console.log(`SQLite ${version}: journal_mode = ${journal}, synchronous = FULL (asserted by the service at start)`);
  console.log(`limits in force: ${limits.join(", ")}`);
}
