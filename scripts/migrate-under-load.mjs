// Expands a SQLite database by a migration that tests plant (test/store/migrate/group-notes.ts), while a server without it
// serves reads and writes. The command is killed on the way and run again. Prints the longest waits of clients and the sizes,
// and compares what the migration wrote with the rows:
//
//   npm run build && node scripts/migrate-under-load.mjs [--old CHECKOUT] [--groups N] [--kills N]
//
// CHECKOUT is a working tree of an older version since 1.0 that is built, whose server runs in place of that of this one.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({
  options: {
    old: { type: "string", default: "." },
    groups: { type: "string", default: "20000" },
    kills: { type: "string", default: "5" },
  },
});
const [groups, kills] = [Number(values.groups), Number(values.kills)];
if (!Number.isInteger(groups) || !Number.isInteger(kills)) {
  console.error("migrate-under-load: --groups and --kills are whole numbers");
  process.exit(2);
}
register();
const old = resolve(values.old);
const main = resolve("dist/main.js");
const { openDatabase } = await import("../src/store/sqlite/driver.ts");
const { inconsistenciesIn } = await import("../test/support/consistency.ts");
const { startService } = await import(join(old, "bench/service.ts"));
const { buildTree } = await import(join(old, "bench/tree.ts"));

const seed = ["--import", "tsx", "bench/seed.ts", "--rows", String(groups)];
const seeded = execFileSync(process.execPath, seed, { cwd: old, encoding: "utf8" }).trim().split("\n").at(-1);
const directory = mkdtempSync(join(tmpdir(), "arbor-migrate-"));
const file = join(directory, "arbor.db");
for (const name of ["arbor.db", "master.key"]) cpSync(join(seeded, name), join(directory, name));
const tree = buildTree(groups);
withDatabase((db) => {
  // The identities of the benchmarks only read.
  db.exec(`UPDATE role_bindings SET role_uid = (SELECT uid FROM roles WHERE name = 'owner' AND group_uid IS NULL)
    WHERE uid = (SELECT min(uid) FROM role_bindings WHERE group_uid = '${tree.root}')`);
});

const reads = { count: 0, longestMs: 0, failures: [] };
const writes = { count: 0, longestMs: 0, failures: [] };
const created = [];
let problems = [];
const service = await startService({ directory, tree }, join(old, "dist/main.js"));
try {
  let stopped = false;
  const load = [run(reads, 20, read), run(writes, 50, write)];
  await sleep(2_000);
  const before = { reads: reads.longestMs, writes: writes.longestMs };
  const startMs = performance.now();
  let killed = 0;
  for (;;) {
    const script = ["--import", "tsx", "test/store/migrate/migrate-process.ts"];
    const planted = [JSON.stringify({ data: directory }), "group-notes", "--expand"];
    const command = spawn(process.execPath, [...script, ...planted], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let errors = "";
    command.stderr.on("data", (data) => {
      errors += data;
    });
    const exit = once(command, "exit");
    if (killed < kills) {
      const timer = setTimeout(() => command.kill("SIGKILL"), 1_000 + Math.random() * 4_000);
      const [code] = await exit;
      clearTimeout(timer);
      if (code === null) {
        killed++;
        continue;
      }
      if (code !== 0) throw new Error(errors);
      break;
    }
    const [code] = await exit;
    if (code !== 0) throw new Error(errors);
    break;
  }
  console.log(`expanded in ${seconds(startMs)} s, killed ${killed} times, ${megabytes()} MB`);
  console.log(`longest before: read ${before.reads} ms, write ${before.writes} ms`);
  console.log(`longest: read ${reads.longestMs} ms of ${reads.count}, write ${writes.longestMs} ms of ${writes.count}`);
  await sleep(1_000);
  stopped = true;
  await Promise.all(load);
  problems = [...reads.failures, ...writes.failures];

  async function run(result, everyMs, call) {
    const pending = new Set();
    for (let n = 0; !stopped; n++) {
      const one = time(result, call, n).finally(() => pending.delete(one));
      pending.add(one);
      await sleep(everyMs);
    }
    await Promise.all(pending);
  }
} finally {
  await service.server.stop();
}
// The whole comparison is in memory; `arbor check` below reads a database of any size.
const MAX_COMPARED = 100_000;
withDatabase((db) => {
  if (groups <= MAX_COMPARED) problems.push(...inconsistenciesIn(db));
  const different = `SELECT count(*) FROM groups g FULL JOIN group_notes n ON n.uid = g.uid
    WHERE g.uid IS NULL OR n.uid IS NULL OR g.description <> n.note`;
  const count = db.prepare(different).pluck().get();
  if (count > 0) problems.push(`${count} groups differ from what the migration wrote of them`);
  const found = db.prepare("SELECT count(*) FROM groups WHERE uid = ?").pluck();
  problems.push(...created.filter((uid) => found.get(uid) !== 1).map((uid) => `${uid} is lost`));
});
for (const flags of [["--contract"], ["--vacuum"]]) {
  const startMs = performance.now();
  execFileSync(process.execPath, [main, "migrate", ...flags, "--data", directory], { stdio: "ignore" });
  console.log(`${flags[0].slice(2)}: ${seconds(startMs)} s, ${megabytes()} MB`);
}
const check = spawnSync(process.execPath, [main, "check", "--data", directory], { encoding: "utf8" });
console.log(check.stdout.trimEnd());
if (check.status !== 0) problems.push(`arbor check ended with ${check.status}`);
console.log(`${created.length} groups created meanwhile, ${problems.length} problems`);
for (const problem of problems.slice(0, 10)) console.error(`migrate-under-load: ${problem}`);
rmSync(directory, { recursive: true });
process.exit(problems.length === 0 ? 0 : 1);

async function time(result, call, n) {
  const startMs = performance.now();
  try {
    await call(n);
  } catch (error) {
    result.failures.push(String(error));
  }
  result.count++;
  result.longestMs = Math.max(result.longestMs, Math.round(performance.now() - startMs));
}

async function read(n) {
  const order = ["name", "created_at", "updated_at"][n % 3];
  await request("GET", `/iam/v2beta1/groups?page_size=50&order_by=${order}`);
}

async function write(n) {
  if (n % 4 === 3) {
    const uid = created.splice(Math.floor(Math.random() * created.length), 1)[0];
    if (uid !== undefined) return request("DELETE", `/iam/v2beta1/groups/${uid}`);
  }
  const { uid } = await request("POST", `/iam/v2beta1/groups/${tree.root}`, { name: `new ${n}` });
  created.push(uid);
}

async function request(method, path, body) {
  const headers = { authorization: `Bearer ${service.tokens[0]}`, "content-type": "application/json" };
  const response = await fetch(service.url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 200)}`);
  return text === "" ? {} : JSON.parse(text);
}

function withDatabase(use) {
  const db = openDatabase(file);
  try {
    use(db);
  } finally {
    db.close();
  }
}

function seconds(startMs) {
  return ((performance.now() - startMs) / 1000).toFixed(1);
}

function megabytes() {
  return Math.round(statSync(file).size / 1e6);
}
