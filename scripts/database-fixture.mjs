// Writes databases of a version as fixtures of the upgrade tests (test/upgrade/): runs the service of a built
// checkout, fills it through its commands and its API, and stores the databases with the responses of the API.
//   node scripts/with-pg.mjs node --import tsx scripts/database-fixture.mjs [CHECKOUT]
// Without scripts/with-pg.mjs there is no PostgreSQL, and the tests reject the incomplete fixture.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { emptyDatabase } from "../test/pg/databases.ts";
import { runCommand, startService, untilSealed } from "./checkout.mjs";
import { createContent } from "./fixture-content.mjs";
import { GUEST, readAnswers, readGuestAnswers, readPageTokens } from "./fixture-responses.mjs";
import { findPgBin } from "./pg-bin.mjs";

/** The base URL of the service, which answers may contain. */
const BASE_URL = "http://arbor.example";
const PROJECT = resolve(import.meta.dirname, "..");
const README = `What version VERSION leaves behind, made by scripts/database-fixture.mjs: both databases and what it answered.
\`master.key\` sealed the secrets in them. It was made for these fixtures and protects nothing else.
`;

const checkout = resolve(process.argv[2] ?? PROJECT);
const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8"));
const server = process.env.TEST_ARBOR_DATABASE_URL;
const folder = join(PROJECT, "test", "fixtures", "databases", version);
// A released version does not change, but a checkout keeps its number until the next release.
if (existsSync(folder)) throw new Error(`${folder} exists: delete it to make it anew`);
const directory = mkdtempSync(join(tmpdir(), "arbor-fixture-"));
const masterKey = join(directory, "data", "master.key");
try {
  await writeFixture();
} finally {
  rmSync(directory, { recursive: true, force: true });
}

async function writeFixture() {
  const data = join(directory, "data");
  const expected = { version, sqlite: await fill(["--data", data]) };
  const database = join(data, "arbor.db");
  if (existsSync(`${database}-wal`) && statSync(`${database}-wal`).size > 0) {
    throw new Error("the service left a write-ahead log: it was not closed");
  }
  const files = { "sqlite.db.gz": compress(readFileSync(database)), "master.key": readFileSync(masterKey) };
  if (server === undefined) {
    console.error("TEST_ARBOR_DATABASE_URL is not set: no fixture of PostgreSQL is written");
  } else {
    const url = await emptyDatabase();
    expected.postgres = await fill(["--data", data, "--database-url", url, "--master-key-file", masterKey]);
    files["postgres.sql.gz"] = compress(dump(url));
  }
  files["expected.json"] = format(expected);
  files["README.md"] = README.replace("VERSION", version);
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  console.log(`wrote ${folder}`);
}

function compress(content) {
  return gzipSync(content, { level: 9 });
}

/** Fills a database and returns the responses of the service. `flags` name the database. */
async function fill(flags) {
  const settings = [...flags, "--base-url", BASE_URL];
  const run = (...args) => runCommand(checkout, [...args, ...settings], directory);
  const owner = JSON.parse(await run("bootstrap", "--org", "fixture.example", "--json"));
  const person = ["--owner-issuer", GUEST.issuer, "--owner-subject", GUEST.subject];
  const guest = JSON.parse(await run("bootstrap", "--org", "guest.example", ...person, "--json"));

  await withService(settings, (call) => createContent({ call, run, baseUrl: BASE_URL, directory }, owner, guest));
  // After a restart no write is pending, such as the last use of an identity.
  const answered = await withService(settings, async (call) => {
    const get = (token) => (path) => call(token, "GET", path);
    const answers = await readAnswers(get(owner.token), owner.group, guest.identity);
    const guestAnswers = await readGuestAnswers(get(guest.token));
    const pageTokens = await readPageTokens(get(owner.token), owner.group);
    await untilSealed(run);
    return { owner: owner.identity, group: owner.group, answers, guest: guest.identity, guestAnswers, pageTokens };
  });
  return { ...answered, sealedRows: await verify(run) };
}

async function withService(settings, work) {
  const { url, stop } = await startService(checkout, settings, directory);
  try {
    return await work((token, method, path, body) => call(url, { token, method, path, body }));
  } finally {
    await stop();
  }
}

async function call(url, { token, method, path, body }) {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url + path, { method, headers, ...sent });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
  return answer === "" ? {} : JSON.parse(answer);
}

/** The number of sealed rows of each log, by the uid of its organisation. */
async function verify(run) {
  const report = await run("audit", "verify");
  const lines = report.matchAll(/^(\S+): (\d+) sealed rows, head signed \S+, 0 unsealed$/gm);
  return Object.fromEntries([...lines].map(([, root, rows]) => [root, Number(rows)]));
}

/** The database as statements, without names of this machine and without commands that only psql has. */
function dump(url) {
  const args = ["--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=100", `--dbname=${url}`];
  const { status, stdout, stderr } = spawnSync(join(findPgBin(), "pg_dump"), args, {
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) throw new Error(`pg_dump: ${stderr}`);
  const lines = stdout.split("\n").filter((line) => line !== "" && !/^(?:--|SET |\\(?:un)?restrict )/.test(line));
  return `${lines.join("\n")}\n`;
}

/** JSON with a line for each response, so that fixtures can be compared. */
function format(expected) {
  const indent = (value, depth) => {
    if (depth === 0 || typeof value !== "object") return JSON.stringify(value);
    const space = "  ".repeat(4 - depth);
    const entries = Object.entries(value).map(
      ([key, one]) => `${space}${JSON.stringify(key)}: ${indent(one, depth - 1)}`,
    );
    return `{\n${entries.join(",\n")}\n${space.slice(2)}}`;
  };
  return `${indent(expected, 3)}\n`;
}
