// A drill: back up a service that is written to, destroy its data, restore, and compare what it answers.
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { copyFile, open } from "node:fs/promises";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { bootstrap } from "../../src/iam/operator/bootstrap.js";
import { issueToken } from "../../src/issuer/tokens.js";
import { randomIds } from "../../src/kernel/ids.js";
import { syncPath } from "../../src/store/backup/files.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { waitUntil } from "../support/wait-until.js";
import { arbor, type Service, startService } from "./process.js";

/** What the drill does. */
export interface Drill {
  /** An empty directory, which has room for three databases of this size. */
  readonly directory: string;
  /** How large the database is; most of it is free pages. */
  readonly gigabytes: number;
  /** How many more backups are made and restored under the same load. */
  readonly restores: number;
  readonly print: (line: string) => void;
}

const BASE_URL = "http://arbor.test";
const WRITES_PER_S = 200;
const GIB = 2 ** 30;
/** Rows of this size fill the database; all but one of {@link KEPT_OF} are deleted again. */
const FILLER_BYTES = 8 * 2 ** 20;
const KEPT_OF = 8;
/** How many responses are compared. */
const COMPARED = 200;

/** Runs a drill, and returns everything that was wrong. */
export async function runDrill({ directory, gigabytes, restores, print }: Drill): Promise<string[]> {
  const problems: string[] = [];
  const require = (holds: boolean, what: string) => {
    if (!holds) problems.push(what);
    print(`${holds ? "ok" : "FAILED"}: ${what}`);
  };
  const data = join(directory, "data");
  mkdirSync(data);
  const organisation = await createOrganisation(data);
  const fillMs = await measureMs(() => fill(join(data, "arbor.db"), gigabytes * GIB));
  print(`database of ${mib(join(data, "arbor.db"))} MiB made in ${seconds(fillMs)} s`);

  let service = await start(data);
  const load = startLoad(service.url, organisation);
  try {
    await load.waitFor(2 * WRITES_PER_S);
    const copied = join(directory, "copied.db");
    const beforeCopy = [...load.acknowledged];
    await copyFile(join(data, "arbor.db"), copied);
    // The times of the backup must not have those of this copy.
    const written = await open(copied, "r");
    await written.sync();
    await written.close();
    await load.waitFor(load.acknowledged.length + 2 * WRITES_PER_S);
    require(findLost(copied, beforeCopy) > 0, "the control: a plain copy of the file lacks acknowledged writes");

    load.longestMs = 0;
    const before = [...load.acknowledged];
    const responses = await readResponses(service.url, organisation.token, before.slice(-COMPARED));
    const backup = join(directory, "backup");
    const wal = watchSize(join(data, "arbor.db-wal"));
    let failed = "";
    const backupMs = await measureMs(async () => {
      const { code, stderr } = await arbor("backup", backup, "--data", data, "--with-master-key");
      if (code !== 0) failed = stderr;
    });
    const during = load.acknowledged.length - before.length;
    require(failed === "", `the backup finishes while ${during} writes are acknowledged ${failed}`);
    print(`backup in ${seconds(backupMs)} s, ${Math.round((during / backupMs) * 1000)} writes/s meanwhile`);
    print(`longest write ${Math.round(load.longestMs)} ms, write-ahead log up to ${wal.stop()} MiB`);
    require(during > (backupMs / 1000) * WRITES_PER_S * 0.5, "at least half of the writes were acknowledged in time");
    if (restores > 0) await repeat({ directory, data, restores, load, require, print });

    load.stop();
    service.signal("SIGKILL");
    await service.ended;
    rmSync(data, { recursive: true });
    const swapped = await restoreSwapped(directory, backup, copied);
    require(/SHA-256 differs|bytes, and the manifest says/.test(swapped), "the plain copy in a backup is refused");

    const restoreMs = await measureMs(() => restore(backup, data));
    print(`restored in ${seconds(restoreMs)} s`);
    const lost = findLost(join(data, "arbor.db"), before);
    require(lost === 0, `of ${before.length} writes acknowledged before the backup ${lost} are lost`);
    const checkMs = await measureMs(async () => {
      const { code, stdout } = await arbor("check", "--data", data);
      require(code === 0, `arbor check finds nothing${code === 0 ? "" : `: ${stdout}`}`);
    });
    print(`checked in ${seconds(checkMs)} s`);

    service = await start(data);
    const { token, identity } = organisation;
    const status = (bearer: string) => getRetried(service.url, "/iam/v2beta1/groups?page_size=1", bearer);
    require((await status(token)).status === 401, "a token of before is refused");
    const issued = await arbor("admin", "token", "--identity", identity, "--data", data, "--base-url", BASE_URL);
    const restored = await readResponses(service.url, issued.stdout.trim(), before.slice(-COMPARED));
    const isSame = JSON.stringify(restored) === JSON.stringify(responses);
    require(isSame && responses.length > COMPARED, `${responses.length} answers are the same as before the backup`);
    await service.stop();

    rmSync(data, { recursive: true });
    await restore(backup, data, "--keep-sessions");
    service = await start(data);
    require((await status(token)).status === 200, "the control: with --keep-sessions a token of before is accepted");
  } finally {
    load.stop();
    if (service.alive()) await service.stop();
  }
  return problems;
}

interface Organisation {
  readonly group: string;
  readonly identity: string;
  readonly token: string;
}

async function createOrganisation(data: string): Promise<Organisation> {
  const settings = resolveSettings({ flags: { data, baseUrl: BASE_URL }, env: {} });
  const { store, keys, close } = await openInstallation({ settings, mode: "create" });
  const nowMs = Date.now();
  const { group, identity } = await store.write((tx) => bootstrap(tx, { org: "drill" }, randomIds, nowMs));
  const request = { issuer: BASE_URL, audience: BASE_URL, identity, lifeS: 3_600, atMs: nowMs };
  const token = await issueToken(request, keys, randomIds);
  await close();
  return { group, identity, token };
}

// Settings with names that nothing reads. What is deleted leaves free pages, which the file keeps.
function fill(file: string, bytes: number): void {
  const db = openDatabase(file);
  try {
    db.pragma("journal_mode = MEMORY");
    db.pragma("synchronous = OFF");
    const insert = db.prepare("INSERT INTO settings (name, value) VALUES (?, hex(zeroblob(?)))");
    for (let i = 0; i < bytes / FILLER_BYTES; i++) insert.run(`filler ${i}`, FILLER_BYTES / 2);
    const keep = db.prepare("DELETE FROM settings WHERE name = ?");
    for (let i = 0; i < bytes / FILLER_BYTES; i++) if (i % KEPT_OF !== 0) keep.run(`filler ${i}`);
    db.pragma("journal_mode = WAL");
  } finally {
    db.close();
  }
  syncPath(file);
}

function start(data: string): Promise<Service> {
  return startService(data, "--base-url", BASE_URL, "--no-access-log", "--quotas", "groups=1000000");
}

interface Load {
  /** The uids of the groups that were created, in the order of the responses. */
  readonly acknowledged: readonly string[];
  longestMs: number;
  waitFor(count: number): Promise<void>;
  stop(): void;
}

// Each write begins at its time, whether or not those before it are answered.
function startLoad(url: string, { group, token }: Organisation): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const acknowledged: string[] = [];
  const load = { acknowledged, longestMs: 0, waitFor, stop };
  const startMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    while (sent < ((performance.now() - startMs) / 1000) * WRITES_PER_S) create(++sent);
  }, 5);

  function create(number: number): void {
    const sentMs = performance.now();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sending = request(`${url}/iam/v2beta1/groups/${group}`, { method: "POST", agent, headers }, (response) => {
      let body = "";
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("error", () => {});
      response.on("end", () => {
        if (response.statusCode !== 200) return;
        acknowledged.push((JSON.parse(body) as { uid: string }).uid);
        load.longestMs = Math.max(load.longestMs, performance.now() - sentMs);
      });
    });
    sending.on("error", () => {});
    sending.end(JSON.stringify({ name: `write ${number}` }));
  }
  async function waitFor(count: number): Promise<void> {
    await waitUntil(() => acknowledged.length >= count, 30_000);
  }
  function stop(): void {
    clearInterval(timer);
    agent.destroy();
  }
  return load;
}

interface Repetition {
  readonly directory: string;
  readonly data: string;
  readonly restores: number;
  readonly load: Load;
  readonly require: (holds: boolean, what: string) => void;
  readonly print: (line: string) => void;
}

// Every change of a group is one transaction with its audit row, its entries in lists and the totals: a copy that is not
// at the boundary of a commit has some of them alone.
async function repeat({ directory, data, restores, load, require, print }: Repetition): Promise<void> {
  const [backup, copy] = [join(directory, "repeated"), join(directory, "repeated-data")];
  let [lost, inconsistent, longestMs] = [0, 0, 0];
  for (let i = 0; i < restores; i++) {
    const before = [...load.acknowledged];
    longestMs = Math.max(
      longestMs,
      await measureMs(async () => {
        const { code, stderr } = await arbor("backup", backup, "--data", data, "--with-master-key");
        if (code !== 0) throw new Error(stderr);
      }),
    );
    await restore(backup, copy);
    lost += findLost(join(copy, "arbor.db"), before);
    inconsistent += findInconsistencies(join(copy, "arbor.db")).length;
    for (const path of [backup, copy]) rmSync(path, { recursive: true });
    if ((i + 1) % 10 === 0) print(`${i + 1} backups in a row: ${lost} writes lost, ${inconsistent} faults`);
  }
  require(lost === 0 &&
    inconsistent === 0, `${restores} backups in a row: ${lost} writes lost, ${inconsistent} faults`);
  print(`the longest of them took ${seconds(longestMs)} s, which is how far back a restore goes`);
}

function findInconsistencies(file: string): string[] {
  const db = openDatabase(file, { readonly: true });
  try {
    const found = inconsistenciesIn(db);
    const unaudited = db
      .prepare("SELECT uid FROM groups WHERE uid NOT IN (SELECT subject_uid FROM audit)")
      .pluck()
      .all();
    return [...found, ...unaudited.map((uid) => `no audit row of ${uid}`)];
  } finally {
    db.close();
  }
}

// How many of these groups the file lacks; all of them where it cannot be read.
function findLost(file: string, uids: readonly string[]): number {
  let db: ReturnType<typeof openDatabase> | undefined;
  try {
    db = openDatabase(file, { readonly: true });
    const known = new Set(db.prepare("SELECT uid FROM groups").pluck().all());
    return uids.filter((uid) => !known.has(uid)).length;
  } catch {
    return uids.length;
  } finally {
    db?.close();
  }
}

async function restore(backup: string, data: string, ...flags: readonly string[]): Promise<void> {
  const { code, stderr } = await arbor("restore", backup, "--data", data, ...flags);
  if (code !== 0) throw new Error(stderr);
}

// The error of a restore of a backup with another database file.
async function restoreSwapped(directory: string, backup: string, copied: string): Promise<string> {
  const swapped = join(directory, "swapped");
  mkdirSync(swapped, { mode: 0o700 });
  for (const name of ["manifest.json", "backup.key"]) copyFileSync(join(backup, name), join(swapped, name));
  renameSync(copied, join(swapped, "backup.db"));
  const { stderr } = await arbor("restore", swapped, "--data", join(directory, "none"));
  const wrote = existsSync(join(directory, "none"));
  rmSync(swapped, { recursive: true });
  return wrote ? "it wrote something" : stderr;
}

async function readResponses(url: string, token: string, uids: readonly string[]): Promise<string[]> {
  const paths = ["/iam/v2beta1/roles?page_size=200", ...uids.map((uid) => `/iam/v2beta1/groups/${uid}`)];
  const responses: string[] = [];
  for (const path of paths) {
    const { status, body } = await getRetried(url, path, token);
    responses.push(`${path} ${status} ${body}`);
    if (status !== 200) throw new Error(responses.at(-1));
  }
  return responses;
}

// A busy machine makes the service reject calls, and says so.
async function getRetried(url: string, path: string, token: string): ReturnType<typeof get> {
  for (let attempt = 1; ; attempt++) {
    const answer = await get(url, path, token);
    if (answer.status !== 503 || attempt === 20) return answer;
    await sleep(500);
  }
}

async function get(url: string, path: string, token: string): Promise<{ status: number; body: string }> {
  const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.text() };
}

function watchSize(file: string) {
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, mib(file));
  }, 100);
  return {
    stop(): number {
      clearInterval(timer);
      return most;
    },
  };
}

async function measureMs(work: () => unknown): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

const mib = (file: string) => Math.ceil((statSync(file, { throwIfNoEntry: false })?.size ?? 0) / 2 ** 20);
const seconds = (ms: number) => (ms / 1000).toFixed(1);
