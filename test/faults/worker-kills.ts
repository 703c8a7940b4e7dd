// Kills workers of one service at random moments, one at a time, while clients that retry write through it, and compares
// what was acknowledged with what is stored.
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { newDatabase, withClient } from "../pg/databases.js";
import { freePort } from "../support/free-port.js";
import { scrape } from "../support/metrics.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { workersOf } from "../support/workers.js";
import { grpcApi, restApi } from "./api.js";
import { Recorder } from "./recorder.js";
import { type RetryCounts, retrying } from "./retries.js";
import { createOwner, findViewer, startService, verifyDatabase } from "./service.js";
import { startWriters } from "./writers.js";

export interface WorkerKills {
  readonly kills: number;
  readonly workers: number;
  /** On PostgreSQL and not on SQLite. */
  readonly isPg: boolean;
  /** The database undoes some updates, on SQLite, and clients do not retry. */
  readonly control: boolean;
}

export interface WorkerKillsResult extends RetryCounts {
  readonly acknowledged: number;
  /** Calls that failed, after the retries of their client. */
  readonly failed: readonly string[];
  readonly lost: readonly string[];
  /** Everything else: duplicates, stale reads, changes without an audit row, what `arbor check` finds. */
  readonly problems: readonly string[];
  /** From a kill until the next worker is started, in milliseconds, the shortest first. */
  readonly startedMs: readonly number[];
  /** The same until it serves. */
  readonly readyMs: readonly number[];
}

const WRITERS = 12;
const PAUSE_MS = 5;
/** A worker is killed this long after all serve, at random. */
const [SHORTEST_MS, LONGEST_MS] = [100, 1_000];
const POLL_MS = 5;
/** Other programs may use the machine: how long it took is a figure, not a failure. */
const READY_LIMIT_MS = 60_000;

/** Undoes one in ten updates of groups. */
const LOSE_UPDATES = `
  CREATE TRIGGER lose_update AFTER UPDATE ON groups WHEN NEW.description = '2' AND random() % 10 = 0
  BEGIN UPDATE groups SET description = OLD.description WHERE uid = NEW.uid; END`;

/** Runs a campaign. */
export async function runWorkerKills(options: WorkerKills): Promise<WorkerKillsResult> {
  const { kills, workers: count, control } = options;
  const { flags, query } = await (options.isPg ? preparePg() : prepareSqlite());
  const { group, token } = await createOwner(flags, "worker-kills.example");
  if (control) await query(LOSE_UPDATES);
  const metrics = `127.0.0.1:${await freePort()}`;
  const service = await startService([...flags, "--workers", String(count), "--metrics-listen", metrics]);
  const exited = once(service.child, "exit");
  try {
    const pid = service.child.pid ?? 0;
    const role = await findViewer(service, token);
    const counts = { retries: 0, found: 0 };
    const apis = Array.from({ length: WRITERS }, (_, n) => {
      const api = (n % 2 === 0 ? restApi : grpcApi)(service.url, token);
      return control ? api : retrying([api], counts);
    });
    const recorder = new Recorder();
    const writers = startWriters({ recorder, apis, group, role, pauseMs: PAUSE_MS });
    const [startedMs, readyMs]: [number[], number[]] = [[], []];
    for (let kill = 0; kill < kills; kill++) {
      await sleep(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS));
      const before = workersOf(pid);
      const beginMs = performance.now();
      process.kill(before[Math.floor(Math.random() * before.length)] ?? 0, "SIGKILL");
      while (!workersOf(pid).some((worker) => !before.includes(worker))) await sleep(POLL_MS);
      startedMs.push(performance.now() - beginMs);
      const isComplete = async () => (await scrape(`http://${metrics}/metrics`)).sum("arbor_workers") === count;
      await waitUntil(isComplete, READY_LIMIT_MS);
      readyMs.push(performance.now() - beginMs);
    }
    await sleep(LONGEST_MS);
    await writers.stop();
    for (const api of apis) api.close();
    const { lost, problems } = await recorder.compare(query);
    const wrong = writers.wrong.map((text) => `wrong answer: ${text}`);
    const all = [...problems, ...wrong, ...(await verifyDatabase(flags))];
    for (const times of [startedMs, readyMs]) times.sort((a, b) => a - b);
    const { acknowledged } = recorder;
    return { ...counts, acknowledged, failed: writers.failed, lost, problems: all, startedMs, readyMs };
  } finally {
    service.child.kill("SIGKILL");
    await exited;
  }
}

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

async function prepareSqlite(): Promise<{ flags: string[]; query: Query }> {
  const data = tempDir();
  const query: Query = async (sql) => {
    const db = openDatabase(join(data, "arbor.db"));
    try {
      const statement = db.prepare(sql);
      if (statement.reader) return statement.all() as Record<string, unknown>[];
      statement.run();
      return [];
    } finally {
      db.close();
    }
  };
  return { flags: ["--data", data], query };
}

async function preparePg(): Promise<{ flags: string[]; query: Query }> {
  const url = await newDatabase();
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  return {
    flags: ["--database-url", url, "--master-key-file", masterKeyFile],
    query: (sql) => withClient(url, async (client) => (await client.query(sql)).rows),
  };
}
