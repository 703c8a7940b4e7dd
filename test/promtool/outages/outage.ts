// What a table of outages consists of.
import { join } from "node:path";
import { readMasterKey } from "../../../src/issuer/keys/master-key.js";
import { DATABASE_FILE } from "../../../src/store/sqlite/connection.js";
import { openDatabase, type SqliteDatabase } from "../../../src/store/sqlite/driver.js";
import { restAs } from "../../contract/rest.js";
import { newDataDir } from "../../support/data-dir.js";
import { type Harness, type HarnessOptions, startHarness } from "../../support/harness.js";
import { scrape } from "../../support/metrics.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";
import type { Recording } from "../recording.js";

/** Registers what runs when the outage is over, last first. */
export type Defer = (run: () => unknown) => void;

/** An outage of a running service. */
export interface Outage {
  /** The alerts that it must fire. */
  readonly alerts: readonly string[];
  /** The gap between two scrapes in milliseconds, where the alerts depend on the time of the machine. */
  readonly gapMs?: number;
  /** Starts a service, and records it before the outage and during it. */
  run(recording: Recording, defer: Defer): Promise<void>;
}

/** Outages by what happens. */
export type Outages = Readonly<Record<string, Outage>>;

/** How many scrapes a minute apart come before an outage. */
export const WELL = 3;

export interface Node {
  readonly harness: Harness;
  /** Where its metrics are. */
  readonly metrics: string | undefined;
  readonly data: string;
  readonly token: string;
  readonly group: string;
  /** Makes a call of the API, such as `POST /iam/v2beta1/groups/UID`; resolves to the status. */
  call(method: string, path: string, body?: object): Promise<number>;
  /** Creates a group below that of the organisation. */
  createGroup(): Promise<number>;
  /** The clock of the service. */
  nowMs(): number;
}

let nodes = 0;

/** Starts a node on SQLite, or on the database of `databaseUrl`, with an organisation. */
export async function startNode(
  defer: Defer,
  settings: Readonly<Record<string, string | boolean>> = {},
  options?: HarnessOptions,
): Promise<Node> {
  const data = String(settings.data ?? newDataDir());
  const storage = settings.databaseUrl === undefined ? { data } : {};
  const harness = await startHarness({ metricsListen: "127.0.0.1:0", ...storage, ...settings }, options);
  defer(() => harness.stop());
  const { token, group } = await harness.organisation(`outage${++nodes}.example`);
  const rest = restAs(harness.url, token, "");
  const call = async (method: string, path: string, body?: object) => (await rest(method, path, body)).status;
  let groups = 0;
  return {
    ...{ harness, data, token, group, call },
    metrics: harness.app.metricsUrl,
    createGroup: () => call("POST", `/iam/v2beta1/groups/${group}`, { name: `group ${++groups}` }),
    nowMs: () => Date.now() + harness.skewMs,
  };
}

/** Opens the database of a node, as another program on its machine does. */
export function openBeside({ data }: Pick<Node, "data">, defer: Defer): SqliteDatabase {
  const db = openDatabase(join(data, DATABASE_FILE), { timeout: 30_000 });
  defer(() => db.close());
  return db;
}

/** Waits until the store of a node has so many units of work waiting. */
export function untilWaiting({ harness }: Node, units: number): Promise<boolean> {
  return waitUntil(() => harness.app.installation.store.stats().waiting >= units, 60_000);
}

/** Waits until the sum of a metric is one that is expected; -1 stands for one without series. */
export function untilMetric(
  { metrics }: Pick<Node, "metrics">,
  name: string,
  labels: Readonly<Record<string, string>>,
  holds: (value: number) => boolean,
): Promise<boolean> {
  return waitUntil(async () => holds((await scrape(metrics)).sum(name, labels) ?? -1), 60_000);
}

/** The settings of a node on a database of PostgreSQL. */
export function onPostgres(databaseUrl: string): Record<string, string> {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  return { databaseUrl, masterKeyFile };
}
