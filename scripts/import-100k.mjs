// Imports many OSV records by the command on the host, and checks that kill -9 loses none:
//
//   node scripts/import-100k.mjs [--records N]
//
// It writes the same records as a zip archive and as a directory. Three imports of the
// archive are killed, each later than the one before, and a fourth one finishes. Then
// the import of the directory must find every record stored. At the end it times the
// first and the last page of a list.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { register } from "tsx/esm/api";

const { values } = parseArgs({ options: { records: { type: "string", default: "100000" } } });
const records = Number(values.records);
if (!Number.isInteger(records) || records < 50_000) {
  console.error(
    "import-100k: --records must be a whole number, at least 50000: fewer are imported before the process is killed",
  );
  process.exit(2);
}
register();
const { manyRecord } = await import("../test/vulnerabilities/osv-kit.ts");
const { writeZip } = await import("../test/vulnerabilities/zip-writer.ts");
const { advisoryKind } = await import("../src/store/advisories/advisories.ts");
const { openSqlite } = await import("../src/store/sqlite/open.ts");

const scratch = mkdtempSync(join(tmpdir(), "arbor-import-"));
process.once("exit", () => rmSync(scratch, { recursive: true, force: true }));
const data = join(scratch, "data");
const zip = join(scratch, "all.zip");
const directory = join(scratch, "records");
writeZip(zip, generateRecords());
for (const { name, content } of generateRecords()) {
  if (name.endsWith("00.json")) mkdirSync(join(directory, name.slice(0, -7)), { recursive: true });
  writeFileSync(join(directory, name.slice(0, -7), name), content);
}
console.log(`made ${records} records`);

const { group } = JSON.parse(arbor("bootstrap", "--data", data, "--org", "example", "--json"));
const importing = (path) => ["advisories", "import", path, "--data", data, "--group", group];
let before = 0;
for (const share of [0.02, 0.2, 0.3]) {
  await killAfter(before + Math.round(records * share));
  const there = await countStored();
  assert.ok(there > before && there < records, `${there} stored after a kill, ${before} before`);
  console.log(`killed with -9: ${there} advisories are stored`);
  before = there;
}
const startMs = performance.now();
const finished = arbor(...importing(zip));
console.log(`finished from the archive in ${((performance.now() - startMs) / 1_000).toFixed(1)} s:\n${finished}`);
assert.match(finished, new RegExp(`${records - before} created, 0 updated, 0 withdrawn, ${before} unchanged`));
assert.equal(await countStored(), records);
const again = arbor(...importing(directory));
console.log(`once more from the directory:\n${again}`);
assert.match(again, new RegExp(`advisories: 0 created, 0 updated, 0 withdrawn, ${records} unchanged`));
await timePages();

function* generateRecords() {
  for (let n = 0; n < records; n++) {
    const { id, json } = manyRecord(n);
    yield { name: `${id}.json`, content: json };
  }
}

function arbor(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", "src/main.ts", ...args], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`arbor ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

// Kills the process when it reports that many stored records.
async function killAfter(count) {
  const args = ["--import", "tsx", "src/main.ts", ...importing(zip), "--progress"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text) => {
    for (const [, done] of text.matchAll(/^(\d+) records/gm)) if (Number(done) >= count) child.kill("SIGKILL");
  });
  const signal = await new Promise((resolve) => child.once("exit", (_, by) => resolve(by)));
  assert.equal(signal, "SIGKILL", "it ended before it was killed");
}

function queryFor(field, descending, values = {}) {
  return { visible: [group], filter: {}, order: { field, descending }, skip: 0, limit: 50, ...values };
}

async function countStored() {
  const store = openSqlite({ directory: data });
  const { total } = await store.read((tx) => tx.table(advisoryKind).list(queryFor("uid", false)));
  await store.close();
  return total;
}

async function timePages() {
  const store = openSqlite({ directory: data });
  const measurePages = async (query) => {
    const times = [];
    let page;
    for (let i = 0; i < 200; i++) {
      const startMs = performance.now();
      page = await store.read((tx) => tx.table(advisoryKind).list(query));
      times.push(performance.now() - startMs);
    }
    return { page, us: Math.round(times.sort((a, b) => a - b)[100] * 1_000) };
  };
  const seen = new Set();
  const ids = new Set();
  for (const field of ["uid", "created_at", "updated_at"]) {
    const first = await measurePages(queryFor(field, false));
    // The list in descending order gives the position at which the last page begins.
    const end = await store.read((tx) => tx.table(advisoryKind).list(queryFor(field, true, { limit: 51 })));
    const last = end.rows.at(-1);
    const key = { uid: last.uid, created_at: last.createTimeMs, updated_at: last.updateTimeMs }[field];
    const tail = await measurePages(queryFor(field, false, { after: { key, uid: last.uid } }));
    assert.equal(tail.page.rows.length, 50);
    assert.equal(tail.page.next, undefined);
    console.log(`by ${field}: first page ${first.us} µs, last page ${tail.us} µs`);
  }
  let after;
  do {
    const page = await store.read((tx) => tx.table(advisoryKind).list(queryFor("uid", false, { limit: 200, after })));
    for (const row of page.rows) seen.add(row.legacyAdvisoryId) && ids.add(row.advisoryId);
    after = page.next;
  } while (after);
  assert.equal(seen.size, records, "records are missing or stored twice");
  assert.equal(ids.size, records, "two advisories share an id");
  for (const [name, equals] of Object.entries(filters())) {
    const { us, page } = await measurePages(queryFor("uid", false, { filter: { equals } }));
    console.log(`${name}: ${page.total} found, ${us} µs`);
  }
  await store.close();
}

function filters() {
  return {
    "of one alias": { aliases: '["CVE-2024-777"]' },
    "of one artifact": { artifactNames: '["package-77"]' },
    "of one id before": { legacyAdvisoryIds: JSON.stringify([manyRecord(99).id]) },
  };
}
