// Brings databases of version 0.11.0 to this version with `arbor migrate`, killed with SIGKILL at random moments, and compares
// lists, totals, page tokens, tokens and the audit log with those of the version before:
//
//   node scripts/with-pg.mjs node scripts/convert-kills.mjs [--rows N] [--kills N] [--seed N] [--control]
//
// With --control a row of the converted SQLite database is changed, which must be found. N groups, bindings, tags and advisories each. The version before is taken from the history of git; where that is missing,
// the small database of test/fixtures is converted. Without PostgreSQL only SQLite is tested.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";
import { register } from "tsx/esm/api";
import { extractCommit } from "./checkout.mjs";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "100000" },
    kills: { type: "string", default: "10" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    control: { type: "boolean", default: false },
  },
});
const [rows, kills, seedNumber] = [values.rows, values.kills, values.seed].map(Number);
if (![rows, kills, seedNumber].every((n) => Number.isInteger(n) && n > 0)) {
  console.error("convert-kills: --rows, --kills and --seed must be whole numbers above 0");
  process.exit(2);
}
register();
const { findDifferences, fixtures } = await import("../test/upgrade/fixtures.ts");
const { createRandom } = await import("../test/support/openapi/random.ts");

/** The last commit of version 0.11.0. */
const OLD_COMMIT = "8ba699b9be34e8ddf3b378e05ba5b63bd65690ba";
const PROJECT = resolve(import.meta.dirname, "..");
const BASE_URL = "http://arbor.example";
const BATCH = 500;
/** What a dry run says of a database that is converted. */
const CONVERTED = "contract: done";
const draw = createRandom(seedNumber).int;
const random = () => draw(10_000) / 10_000;
console.log(`convert-kills: seed ${seedNumber}`);

const scratch = mkdtempSync(join(tmpdir(), "arbor-convert-"));
const server = values.control ? undefined : process.env.TEST_ARBOR_DATABASE_URL;
if (!values.control && server === undefined)
  console.log("convert-kills: TEST_ARBOR_DATABASE_URL is not set: PostgreSQL is left out");
let problems = 0;
try {
  const old = extractOld();
  if (old === undefined) {
    console.log(
      `convert-kills: git has no commit ${OLD_COMMIT.slice(0, 8)}: the fixture of version 0.11.0 is converted`,
    );
  }
  const { sqlite, pg } = old === undefined ? await restoreFixture() : await createOld(old);
  await convertKilled("SQLite", sqlite);
  if (pg !== undefined) await convertKilled("PostgreSQL", pg);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit((problems === 0) === values.control ? 1 : 0);

/** Extracts the version before; undefined where git lacks it. */
function extractOld() {
  const old = join(scratch, "old");
  mkdirSync(old);
  if (!extractCommit(OLD_COMMIT, old)) return undefined;
  symlinkSync(join(PROJECT, "node_modules"), join(old, "node_modules"));
  return old;
}

/** Fills databases of the version before, and records what it answers. */
async function createOld(old) {
  const data = join(scratch, "data");
  const run = (...args) => runArbor(old, args);
  const flags = ["--data", data, "--base-url", BASE_URL];
  const owner = JSON.parse(await run("bootstrap", "--org", "scale.example", "--json", ...flags));
  const startMs = performance.now();
  await fill(old, data, owner);
  console.log(`convert-kills: ${rows} rows of each kind in ${seconds(performance.now() - startMs)} s`);
  let pg;
  if (server !== undefined) {
    const { emptyDatabase } = await import("../test/pg/databases.ts");
    const url = await emptyDatabase();
    await run("copy", "--to", url, "--data", data);
    const location = ["--database-url", url, "--master-key-file", join(data, "master.key"), "--data", data];
    pg = { location, ...(await record(old, [...location, "--base-url", BASE_URL], owner)) };
  }
  return {
    sqlite: { location: ["--data", data], file: join(data, "arbor.db"), ...(await record(old, flags, owner)) },
    pg,
  };
}

// Through the stores of the version before, which also write what its lists are read from.
async function fill(old, directory, { group: root }) {
  const { openSqlite } = await import(join(old, "src/store/open-sqlite.ts"));
  const { bindingRow, childUid, groupRow, identityRow } = await import(join(old, "test/support/rows.ts"));
  const { repoRow } = await import(join(old, "test/store/registry-suite.ts"));
  const { builtinRoleUid } = await import(join(old, "src/kernel/ids.ts"));
  const store = openSqlite({ directory });
  const inBatches = async (count, insert) => {
    for (let n = 0; n < count; n += BATCH) {
      await store.write(async (tx) => {
        for (let i = n; i < Math.min(n + BATCH, count); i++) await insert(tx, i);
      });
    }
  };
  // A hundred groups at each level above the last.
  const parents = Array.from({ length: 100 }, (_, n) => childUid(root, 0x1000 + n));
  const groupOf = (n) => (n < parents.length ? parents[n] : childUid(parents[n % parents.length], n));
  await inBatches(rows, (tx, n) =>
    tx.groups.insert(
      groupRow(groupOf(n), {
        name: `group ${(n * 7919) % 5003}`,
        createTimeMs: 1e12 + n * 7,
        updateTimeMs: 1e12 + n * 3,
      }),
    ),
  );
  const identities = Array.from({ length: 1_000 }, (_, n) => childUid(root, 0x200000 + n));
  await inBatches(identities.length, (tx, n) =>
    tx.identities.insert(identityRow(identities[n], { name: `robot ${n}` })),
  );
  const roles = ["viewer", "editor"].map(builtinRoleUid);
  await inBatches(rows, (tx, n) => {
    const groupUid = groupOf(n);
    const uid = childUid(groupUid, 0x40000000 + n);
    const identity = identities[(n * 31) % identities.length];
    return tx.roleBindings.insert(bindingRow(uid, identity, roles[n % 2], { groupUid, createTimeMs: 1e12 + n }));
  });
  const repos = Array.from({ length: 100 }, (_, n) => childUid(parents[n], 0x50000000));
  await inBatches(repos.length, (tx, n) => tx.repos.insert(repoRow(repos[n], { name: `repo-${n}` })));
  await inBatches(rows, (tx, n) => {
    const repoUid = repos[n % repos.length];
    const times = { createTimeMs: 1e12 + n, updateTimeMs: 1e12 + ((n * 17) % rows) };
    const row = {
      uid: childUid(repoUid, n),
      repoUid,
      name: nameOfFamily(n % 4, n),
      digest: `sha256:${n % 1000}`,
      family: n % 4,
      ...times,
    };
    return tx.tags.insert({ ...row, deprecated: n % 2 === 0, bundles: [] });
  });
  await inBatches(rows, (tx, n) => insertAdvisory(tx, parents[n % parents.length], n, childUid));
  while ((await store.write((tx) => tx.advisories.indexChanges(BATCH))) > 0);
  await store.close();
}

// The family follows from the name; the conversion decides it again.
function nameOfFamily(family, n) {
  return [`v${n}`, `sha256-${n}`, `v${n}-20260131`, `v${n}-r1`][family];
}

async function insertAdvisory(tx, groupUid, n, childUid) {
  const uid = childUid(groupUid, 0x60000000 + n);
  const text = [`artifact-${n % 500}`, `part-${n % 300}`, `CVE-2024-${n}`];
  const times = { createTimeMs: 1e12 + n * 5, updateTimeMs: 1e12 + ((n * 13) % rows) };
  await tx.advisories.insert({
    uid,
    groupUid,
    advisoryId: `CGA-${String(n).padStart(12, "0")}`,
    legacyAdvisoryId: `OLD-${n}`,
    author: "scale",
    artifactName: text[0],
    artifactType: "apk",
    artifactArchitecture: "x86_64",
    componentName: text[1],
    componentType: "go",
    componentLocation: `/usr/${n % 7}`,
    aliases: [text[2]],
    severities: [],
    searched: text.join("\n").toLowerCase(),
    latestEventType: 1 + (n % 4),
    sourceKey: "",
    sourceHash: "",
    deleteTimeMs: null,
    ...times,
  });
}

/** Starts a server on a database of the version before, changes it, and records what it answers; then kills it. */
async function record(old, flags, owner) {
  const group = owner.group;
  const service = await serve(old, flags);
  const token = (await runArbor(old, ["admin", "token", "--identity", owner.identity, ...flags])).trim();
  const call = (method, path, body) => request(service.url, token, method, path, body);
  for (let n = 0; n < 20; n++) {
    const { uid } = await call("POST", `/iam/v2beta1/groups/${group}`, { name: `new ${n}`, description: "by a call" });
    if (n % 2 === 0) await call("DELETE", `/iam/v2beta1/groups/${uid}`);
  }
  const answers = {};
  for (const path of listPaths(group)) answers[path] = await call("GET", path);
  const tokens = [];
  for (const [path, { nextPageToken }] of Object.entries(answers)) {
    if (nextPageToken === undefined || nextPageToken === "") continue;
    const next = `${path}&page_token=${nextPageToken}`;
    tokens.push({ next, uids: uidsOf(await call("GET", next)) });
  }
  const log = await untilSealed((...args) => runArbor(old, [...args, ...flags]));
  // As a server that was killed leaves it: on SQLite the newest rows are in the write-ahead log alone.
  service.child.kill("SIGKILL");
  await once(service.child, "exit");
  return { token, answers, tokens, log };
}

function listPaths(root) {
  const below = `uidp.descendants_of=${root}`;
  const skip = Math.floor(rows / 3);
  return [
    ...["name", "created_at%20desc", "updated_at"].flatMap((order) => [
      `/iam/v2beta1/groups?page_size=100&order_by=${order}`,
      `/iam/v2beta1/groups?page_size=100&${below}&order_by=${order}&skip=${skip}`,
    ]),
    `/iam/v2beta1/groups?page_size=50&uidp.children_of=${root}&order_by=name`,
    `/iam/v2beta1/groups?page_size=50&name=group%207`,
    `/iam/v2beta1/identities?page_size=50&order_by=name%20desc`,
    `/iam/v2beta1/roleBindings?page_size=100`,
    `/iam/v2beta1/roleBindings?page_size=100&order_by=created_at%20desc&skip=${skip}`,
    ...["name", "updated_at%20desc"].map((order) => `/registry/v2beta1/tags?page_size=100&order_by=${order}`),
    `/registry/v2beta1/tags?page_size=100&include_referrers=true&include_dates=true&skip=${skip}`,
    `/vulnerabilities/v2beta1/advisories?page_size=100`,
    `/vulnerabilities/v2beta1/advisories?page_size=100&order_by=updated_at%20desc&skip=${skip}`,
    `/vulnerabilities/v2beta1/advisories?page_size=50&artifact_names=artifact-7`,
    `/vulnerabilities/v2beta1/advisories?page_size=50&query=cve-2024-1`,
  ];
}

/** The fixture, with what is recorded of it. */
async function restoreFixture() {
  const fixture = fixtures.find(({ version }) => version === "0.11.0");
  const data = join(scratch, "data");
  must("mkdir", ["-m", "700", data]);
  const key = join(data, "master.key");
  cpSync(join(fixture.folder, "master.key"), key);
  must("chmod", ["600", key]);
  writeFileSync(join(data, "arbor.db"), gunzipSync(readFileSync(join(fixture.folder, "sqlite.db.gz"))), {
    mode: 0o600,
  });
  const toOld = ({ owner, answers, pageTokens, sealedRows }, location, file) => ({
    location,
    file,
    owner,
    answers,
    tokens: pageTokens.lists.map(({ path, pageToken, uids }) => ({ next: `${path}&page_token=${pageToken}`, uids })),
    // Page tokens of a fixture have expired, unless it is new.
    tokensAt: pageTokens.createTime,
    log: Object.entries(sealedRows)
      .map(([root, n]) => `${root}: ${n} sealed rows, head signed`)
      .join("\n"),
  });
  let pg;
  if (server !== undefined) {
    const { emptyDatabase, withClient } = await import("../test/pg/databases.ts");
    const url = await emptyDatabase();
    const sql = gunzipSync(readFileSync(join(fixture.folder, "postgres.sql.gz"))).toString();
    await withClient(url, (client) => client.query(sql));
    pg = toOld(fixture.postgres, ["--database-url", url, "--master-key-file", key, "--data", data]);
  }
  return { sqlite: toOld(fixture.sqlite, ["--data", data], join(data, "arbor.db")), pg };
}

/** Converts a database to see how long it takes, then again, killed on the way, and compares the answers. */
async function convertKilled(name, old) {
  await keepOld(old);
  let { workMs } = await convertOnce(old.location);
  console.log(`${name}: ${seconds(workMs)} s without start and kills${describeSize(old)}`);
  await restoreOld(old);
  const before = await dryRun(old.location);
  for (let killed = 0, ended = 0; killed < kills; ) {
    // Spread over the whole of it.
    const run = await convertOnce(old.location, 0.9 * workMs * ((killed + random()) / kills));
    const now = await dryRun(old.location).catch((error) => String(error));
    // The machine had more time for it than before: it has ended, or was killed between its end and that of its process.
    if (!run.isKilled || now.includes(CONVERTED)) {
      if (++ended > 10 * kills) throw new Error(`${name}: ${ended} conversions ended before they were killed`);
      // The time of a run contains the end of its process, after the conversion's own.
      workMs = 0.8 * Math.min(workMs, run.workMs);
      await restoreOld(old);
      continue;
    }
    killed++;
    if (now !== before) fail(name, `after kill ${killed} the old database has changed: ${now}`);
  }
  await convertOnce(old.location);
  console.log(`${name}: killed ${kills} times, and converted after that`);
  if (values.control) await changeRow(old.file);
  await compare(name, old);
}

/** Keeps a copy of a PostgreSQL database. On SQLite the conversion keeps the old file. */
async function keepOld({ location: [, url], file }) {
  if (file === undefined) await copyDatabase(nameOf(url), `${nameOf(url)}_old`);
}

/** Puts the database of the version before back. */
async function restoreOld({ location: [, url], file }) {
  if (file === undefined) return copyDatabase(`${nameOf(url)}_old`, nameOf(url));
  for (const suffix of ["-wal", "-shm"]) rmSync(file + suffix, { force: true });
  renameSync(`${file}.before-1.0`, file);
}

async function copyDatabase(from, to) {
  const { withClient } = await import("../test/pg/databases.ts");
  await withClient(server, async (client) => {
    await client.query(`DROP DATABASE IF EXISTS ${to} WITH (FORCE)`);
    // The server ends sessions of processes that were killed only when it notices.
    await client.query("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1", [from]);
    await client.query(`CREATE DATABASE ${to} TEMPLATE ${from}`);
  });
}

function nameOf(url) {
  return new URL(url).pathname.slice(1);
}

function describeSize({ file }) {
  return file === undefined ? "" : `, ${mb(`${file}.before-1.0`)} MB became ${mb(file)} MB`;
}

async function changeRow(file) {
  const { openDatabase } = await import("../src/store/sqlite/driver.ts");
  const db = openDatabase(file);
  db.exec("DELETE FROM tags WHERE uid = (SELECT max(uid) FROM tags WHERE family = 0)");
  db.close();
}

async function dryRun(location) {
  return (await runArbor(PROJECT, ["migrate", "--dry-run", ...location])).split(";")[0];
}

// Runs the command, and kills it so many milliseconds after it began to copy.
async function convertOnce(location, killAfterMs) {
  const child = spawnArbor(PROJECT, ["migrate", ...location]);
  const closed = once(child, "close");
  const stdout = text(child.stdout);
  let errors = "";
  let startMs;
  let timer;
  createInterface({ input: child.stderr }).on("line", (line) => {
    errors += `${line}\n`;
    if (startMs !== undefined || !line.startsWith("rows [")) return;
    startMs = performance.now();
    if (killAfterMs !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  });
  const [code, signal] = await closed;
  clearTimeout(timer);
  if (signal === null && code !== 0) throw new Error(errors);
  await stdout;
  return { isKilled: signal !== null, workMs: performance.now() - startMs };
}

async function compare(name, { location, token, owner, answers, tokens, tokensAt, log }) {
  const flags = [...location, "--base-url", BASE_URL];
  const checked = await runArbor(PROJECT, ["check", ...location]).catch((error) => error.message);
  if (!/^counters: sound$/m.test(checked)) fail(name, `arbor check: ${checked}`);
  const verified = await runArbor(PROJECT, ["audit", "verify", ...location]);
  for (const line of log.trim().split("\n")) {
    const [, root, n] = /^(\S+): (\d+) sealed rows/.exec(line) ?? [];
    const now = Number(new RegExp(`^${root}: (\\d+) sealed rows`, "m").exec(verified)?.[1]);
    if (now !== Number(n)) fail(name, `the log of ${root} has ${now} sealed rows, and had ${n}`);
  }
  const service = await serve(PROJECT, flags);
  try {
    const bearer = token ?? (await runArbor(PROJECT, ["admin", "token", "--identity", owner, ...flags])).trim();
    let compared = 0;
    for (const [path, expected] of Object.entries(answers)) {
      const found = await request(service.url, bearer, "GET", path).catch((error) => ({ error: String(error) }));
      // The tokens themselves differ: they have a time.
      const { nextPageToken, ...rest } = expected;
      const differences = findDifferences(rest, found);
      if (nextPageToken !== undefined && (nextPageToken === "") !== ((found.nextPageToken ?? "") === "")) {
        differences.push("nextPageToken");
      }
      for (const one of differences.slice(0, 3)) fail(name, `GET ${path} ${one}`);
      compared++;
    }
    const areValid = tokensAt === undefined || Date.now() - Date.parse(tokensAt) < 2 * 86_400_000;
    for (const { next, uids } of areValid ? tokens : []) {
      const found = await request(service.url, bearer, "GET", next).catch((error) => ({ error: String(error) }));
      if (JSON.stringify(uidsOf(found)) !== JSON.stringify(uids))
        fail(name, `GET ${next.slice(0, 120)} has another page`);
      compared++;
    }
    console.log(`${name}: ${compared} lists compared, ${problems} problems; arbor check and audit verify hold`);
  } finally {
    service.child.kill("SIGTERM");
    await once(service.child, "exit");
  }
}

function fail(name, problem) {
  problems++;
  console.error(`convert-kills: ${name}: ${problem}`);
}

function uidsOf(answer) {
  return Object.values(answer)
    .find(Array.isArray)
    ?.map(({ uid }) => uid);
}

async function request(url, token, method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer.slice(0, 300)}`);
  return answer === "" ? {} : JSON.parse(answer);
}

function spawnArbor(checkout, args) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ARBOR_")));
  const main = ["--import", "tsx", join(checkout, "src/main.ts")];
  return spawn(process.execPath, [...main, ...args], { cwd: checkout, env, stdio: ["ignore", "pipe", "pipe"] });
}

async function runArbor(checkout, args) {
  const child = spawnArbor(checkout, args);
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code, signal] = await closed;
  if (code !== 0)
    throw new Error(`arbor ${args.slice(0, 2).join(" ")} ended with ${code ?? signal}: ${stderr}${stdout}`);
  return stdout;
}

async function serve(checkout, flags) {
  const child = spawnArbor(checkout, [
    "serve",
    ...["--quotas", "groups=1000000000"],
    // Versions before 1.1 reject calls that would wait longer.
    ...(checkout === PROJECT ? [] : ["--overload-delay", "off"]),
    ...flags,
    "--listen",
    "127.0.0.1:0",
    "--no-access-log",
    "--metrics-listen",
    "off",
  ]);
  child.stderr.resume();
  process.once("exit", () => child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise((done, failed) => {
    lines.on("line", (line) => {
      const found = /^arbor listening on (http:\S+)$/.exec(line)?.[1];
      if (found !== undefined) done(found);
    });
    child.once("exit", (code) => failed(new Error(`the service ended with ${code}`)));
  });
  return { child, url };
}

async function untilSealed(run) {
  for (let tries = 0; tries < 100; tries++) {
    const report = await run("audit", "verify");
    if (report.split("\n").every((line) => line === "" || line.endsWith(", 0 unsealed"))) return report;
    await sleep(500);
  }
  throw new Error("the audit log was not sealed in time");
}

function must(program, args) {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
}

function seconds(ms) {
  return (ms / 1000).toFixed(1);
}

function mb(file) {
  return Math.round(statSync(file).size / 1e6);
}
