// Starts a PostgreSQL server on a free port of 127.0.0.1 and runs a command with
// TEST_ARBOR_DATABASE_URL, the address of an empty database on it.
//
//   node scripts/with-pg.mjs [--durable] COMMAND
//
// With --durable the server writes to the disk and syncs, as one for real data does.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPgBin } from "./pg-bin.mjs";

// Linux has it. A run of the tests makes some hundred databases, and a new one has 9 MB.
const MEMORY = "/dev/shm";
const ROOM_BYTES = 6 * 2 ** 30;

const isDurable = process.argv[2] === "--durable";
const bin = findPgBin();
const directory = mkdtempSync(join(!isDurable && hasMemory() ? MEMORY : tmpdir(), "arbor-pg-"));
const port = await freePort();
// PostgreSQL does not run as root.
const asUser = process.getuid?.() === 0 ? ["runuser", "-u", "postgres", "--"] : [];
if (asUser.length > 0) {
  chmodSync(directory, 0o755);
  must("chown", ["postgres", directory]);
}
const data = join(directory, "data");
must(...command("initdb", "-D", data, "-U", "arbor", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8"));
const [program, args] = command(
  "postgres",
  "-D",
  data,
  "-p",
  String(port),
  "-c",
  "listen_addresses=127.0.0.1",
  // The data of tests is temporary, so it needs no sync.
  "-c",
  `fsync=${isDurable ? "on" : "off"}`,
  // Many test files write beside each other, and each transaction keeps what it has read until the others have ended.
  "-c",
  "max_pred_locks_per_transaction=256",
  "-k",
  directory,
);
spawn(program, args, { stdio: "ignore", cwd: tmpdir() }).unref();
let code = 1;
try {
  await untilReady();
  const [run, ...rest] = process.argv.slice(isDurable ? 3 : 2);
  const url = `postgres://arbor@127.0.0.1:${port}/postgres`;
  // Tests run programs of the same version, such as pg_dump.
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, TEST_ARBOR_DATABASE_URL: url };
  code = spawnSync(run, rest, { stdio: "inherit", env }).status ?? 1;
} finally {
  must(...command("pg_ctl", "-D", data, "-m", "immediate", "stop"));
  rmSync(directory, { recursive: true, force: true });
}
process.exit(code);

function command(name, ...args) {
  const all = [...asUser, join(bin, name), ...args];
  return [all[0], all.slice(1)];
}

function must(program, args) {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8", cwd: tmpdir() });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
}

async function untilReady() {
  for (let tries = 0; tries < 200; tries++) {
    const [program, args] = command("pg_isready", "-h", "127.0.0.1", "-p", String(port));
    if (spawnSync(program, args, { cwd: tmpdir() }).status === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("PostgreSQL did not start");
}

// In memory a database is created in half the time.
function hasMemory() {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
