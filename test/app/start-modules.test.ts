// What a start loads costs time and memory on every start, so what few installations need is loaded when it is needed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { spawn } from "../support/child-process.js";
import { freePort } from "../support/free-port.js";
import { argumentsWithoutBundle, environmentWithoutSettings, PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

/** Packages that a start on SQLite does not load. */
const LATER = [
  "@opentelemetry",
  "@peculiar",
  "oidc-provider",
  "open",
  "pg",
  "prom-client",
  "fast-string-width",
  "swagger-ui-dist",
  "yauzl",
];
/** Modules of the service that it does not load either; better-sqlite3 is the driver of newer versions of Node. */
const LATER_MODULES =
  /\/src\/(?:cli\/(?:remote\/(?!audit\/commands|flags|methods)|host\/(?!commands|serve))|store\/(?:backup|check|copy|pg)\/|telemetry\/(?:spans|trace-exporter))/;

const register = fileURLToPath(new URL("./module-trace/register.mjs", import.meta.url));
const START_MS = 60_000;

test("a start on SQLite loads nothing that only some installations need", async () => {
  const { line, loaded, found } = await trace([], (url) => fetch(`${url}/readyz`));
  assert.match(line, /^arbor listening on /);
  assert.ok(loaded.length > 200, `the modules were not recorded: ${loaded.length}`);
  assert.deepEqual(found, []);
});

test("control: a start with a URL of PostgreSQL loads its driver", async () => {
  // Nothing listens there.
  const key = join(tempDir(), "master.key");
  readMasterKey(key, true);
  const database = ["--database-url", "postgres://arbor@127.0.0.1:1/arbor"];
  const { line, found } = await trace([...database, "--master-key-file", key]);
  assert.equal(line, "");
  assert.ok(found.includes("pg"), found.join());
});

test("control: a scrape loads prom-client", async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  const { found } = await trace(["--metrics-listen", listen], async () => {
    assert.equal((await fetch(`http://${listen}/metrics`)).status, 200);
  });
  assert.deepEqual(found, ["prom-client"]);
});

/** Runs `arbor serve`, then `work` when it is ready; answers with the modules that it loaded, and those of the lists. */
async function trace(settings: readonly string[], work: (url: string) => Promise<unknown> = async () => {}) {
  const directory = tempDir();
  const file = join(directory, "modules.txt");
  const serve = ["serve", "--data", join(directory, "data"), "--listen", "127.0.0.1:0", "--no-access-log", ...settings];
  const child = spawn(process.execPath, ["--import", register, ...argumentsWithoutBundle(), ...serve], {
    cwd: PROJECT,
    env: { ...environmentWithoutSettings(), MODULE_TRACE: file },
    stdio: ["ignore", "pipe", "ignore"],
    timeout: START_MS,
  });
  const closed = once(child, "close");
  const [first] = await Promise.race([once(child.stdout, "data"), closed.then(() => [""])]);
  const line = String(first);
  try {
    if (line !== "") await work(line.slice(line.indexOf("http://")).trim());
  } finally {
    child.kill("SIGTERM");
    await closed;
  }
  const loaded = readFileSync(file, "utf8").trim().split("\n");
  return { line, loaded, found: [...new Set(loaded.flatMap(nameOfLater))].sort() };
}

function nameOfLater(url: string): string[] {
  const name = /^.*\/node_modules\/(@[^/]+|[^/]+)/.exec(url)?.[1];
  if (name !== undefined) return LATER.includes(name) ? [name] : [];
  return LATER_MODULES.test(url) ? [url] : [];
}
