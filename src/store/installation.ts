// What an installation has once: settings and background jobs.
import { putRow, selectRows } from "./rows.js";
import { TransactionPart } from "./statement.js";
import type { JobRow } from "./tables/tables.js";
import { isOlder, OLDEST_VERSION, VERSION } from "./version.js";

const findSetting = selectRows("settings", ["name"]);
const putSetting = putRow("settings", "name");
const findJob = selectRows("jobs", ["name"]);
const putJob = putRow("jobs", "name");
const listJobs = selectRows("jobs", [], { orderBy: ["name"] });

/** Values that belong to the installation itself, such as the check value of the master key. */
export class Settings extends TransactionPart {
  async find(name: string): Promise<string | undefined> {
    return (await this.first(findSetting, { name }))?.value;
  }

  put(name: string, value: string): Promise<void> {
    return this.run(putSetting, { name, value });
  }

  /** Whether a server of a version before `version` may still use the database; `arbor migrate --contract` ends that. */
  async admitsOlderThan(version: string): Promise<boolean> {
    const oldest = await this.find(OLDEST_VERSION);
    // What the next release brings has its version before this one has.
    const first = isOlder(VERSION, version) ? VERSION : version;
    return oldest === undefined || isOlder(oldest, first);
  }
}

/**
 * Background jobs. Only src/jobs and commands of the operator use it, so units of work of the API never conflict with it.
 */
export class Jobs extends TransactionPart {
  /**
   * The time of the database in epoch milliseconds. All nodes on PostgreSQL share its clock; on SQLite it is the clock
   * of the process.
   */
  nowMs(): Promise<number> {
    return this.tx.nowMs();
  }

  find(name: string): Promise<JobRow | undefined> {
    return this.first(findJob, { name });
  }

  /** Inserts or replaces a job. */
  put(row: JobRow): Promise<void> {
    return this.run(putJob, row);
  }

  /** All jobs in the order of their names. */
  list(): Promise<JobRow[]> {
    return this.all(listJobs, {});
  }
}
