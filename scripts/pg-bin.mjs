// Finds the programs of PostgreSQL.
import { readdirSync } from "node:fs";
import { join } from "node:path";

const DEBIAN = "/usr/lib/postgresql";

/**
 * Finds the folder of the newest installed PostgreSQL.
 *
 * @throws Error when there is none.
 */
export function findPgBin() {
  const versions = () => readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  try {
    return join(DEBIAN, versions()[0], "bin");
  } catch {
    throw new Error("PostgreSQL is not installed: apt-get install postgresql");
  }
}
