// Installs scim2-tester, a suite of others for SCIM, into a directory of its own, and runs it against the endpoint of directories on
// SQLite and on PostgreSQL.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const REQUIREMENTS = join("test", "scim-tester", "requirements.txt");
const key = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex").slice(0, 12);
const directory = join(tmpdir(), `arbor-scim-tester-${key}`);
const python = join(directory, "bin", "python");

install();
const env = { ...process.env, TEST_ARBOR_SCIM_PYTHON: python };
const tests = ["scripts/test.mjs", "test/scim-tester/tester.test.ts"];
run(process.execPath, tests, { env });
run(process.execPath, ["scripts/with-pg.mjs", process.execPath, ...tests], { env });

function install() {
  const mark = join(directory, "installed");
  if (existsSync(mark)) return;
  // Debian's packages belong to its own interpreter.
  run(existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3", ["-m", "venv", "--clear", directory]);
  run(python, ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS]);
  run("touch", [mark]);
}

function run(program, args, options = {}) {
  const { status } = spawnSync(program, args, { stdio: "inherit", ...options });
  if (status === 0) return;
  console.error(`test-scim: ${[program, ...args].join(" ")} ended with ${status}`);
  process.exit(1);
}
