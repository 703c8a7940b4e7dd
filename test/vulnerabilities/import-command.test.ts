// `arbor advisories import` as a process of its own, killed and begun again.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { arbor, type Finished, type Host, startHost } from "../e2e/process.js";
import { spawn } from "../support/child-process.js";
import { environmentWithoutSettings, scriptArguments } from "../support/project.js";
import { chooseScale } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";
import { manyRecord, osvRecord } from "./osv-kit.js";
import { writeZip } from "./zip-writer.js";

const RECORDS = chooseScale(3_000, 1_500);
const data = tempDir();
let host: Host;
let group: string;
before(async () => {
  host = await startHost();
  group = (await host.bootstrap(data, "example")).group;
});
after(() => host.close());

const run = (...paths: readonly string[]): Promise<Finished> =>
  host.run(["advisories", "import", ...paths, "--data", data, "--group", group]);
const linesOf = (text: string) => text.split("\n").slice(0, -1);
const entry = (name: string, record: object) => ({ name, content: JSON.stringify(record) });

async function countStored(): Promise<number> {
  const store = openSqlite({ directory: data });
  const order = { field: "uid", descending: false };
  const { total } = await store.read((tx) =>
    tx.table(advisoryKind).list({ visible: [group], filter: {}, order, skip: 0, limit: 1 }),
  );
  await store.close();
  return total;
}

describe("an import", () => {
  it("that is killed with -9 goes on where it was, and stores nothing twice", async () => {
    const zip = join(tempDir(), "all.zip");
    const records = Array.from({ length: RECORDS }, (_, n) => manyRecord(n));
    writeZip(
      zip,
      records.map(({ id, json }) => ({ name: `${id}.json`, content: json })),
    );
    const args = ["advisories", "import", zip, "--data", data, "--group", group, "--progress"];
    const child = spawn(process.execPath, [...scriptArguments("src/main.ts"), ...args], {
      env: environmentWithoutSettings(),
      stdio: ["ignore", "ignore", "pipe"],
    });
    // It reports progress after the first transaction.
    child.stderr.once("data", () => child.kill("SIGKILL"));
    const [, signal] = await once(child, "exit");
    assert.equal(signal, "SIGKILL");
    const before = await countStored();
    assert.ok(before > 0 && before < RECORDS, `${before} of ${RECORDS} were stored`);
    const second = await run(zip);
    assert.equal(second.code, 0, second.stderr);
    assert.match(second.stdout, new RegExp(`^records: ${RECORDS} read, 0 malformed, 0 without a package$`, "m"));
    const unchanged = `${RECORDS - before} created, 0 updated, 0 withdrawn, ${before} unchanged, 0 newer here`;
    assert.match(second.stdout, new RegExp(`^advisories: ${unchanged}$`, "m"));
    assert.match(second.stdout, /^took [\d.]+ s, \d+ records\/s, peak memory \d+ MB$/m);
    assert.equal(second.stderr, "");
    assert.equal(await countStored(), RECORDS);
  });

  it("reads directories in depth, archives and files, and names what it cannot read", async () => {
    const path = tempDir();
    const deep = join(path, "records", "a", "b");
    mkdirSync(deep, { recursive: true });
    const write = (path: string, text: string) => writeFileSync(path, text);
    write(join(deep, "one.json"), JSON.stringify(osvRecord("DIR-1")));
    write(join(path, "records", "notes.txt"), "not read");
    write(join(path, "records", "bad\u001b.json"), "{");
    symlinkSync(path, join(deep, "up"));
    const single = join(path, "single.osv");
    write(single, JSON.stringify(osvRecord("FILE-1")));
    const zip = join(path, "some.zip");
    writeZip(zip, [
      entry("x/ok.json", osvRecord("ZIP-1")),
      entry("readme.md", {}),
      entry("x/bad.json", osvRecord("ZIP-2", { modified: "yesterday" })),
      entry("x/last.json", osvRecord("ZIP-3")),
    ]);
    const cut = join(path, "cut.zip");
    write(cut, "PK and nothing more");
    const before = await countStored();
    const { code, stdout, stderr } = await run(join(path, "records"), cut, single, zip);
    assert.equal(code, 1);
    assert.match(stdout, /^records: 7 read, 3 malformed, 0 without a package$/m);
    const [inDirectory = "", inCut = "", inZip = "", summary, ...more] = linesOf(stderr);
    assert.ok(inDirectory.includes("bad\\u001b.json: ") && inDirectory.endsWith("record must be JSON"), inDirectory);
    assert.ok(inCut.startsWith(`arbor: ${cut}: `) && inCut.includes("cannot be read"), inCut);
    assert.ok(inZip.startsWith(`arbor: ${zip}:x/bad.json: `) && inZip.includes("modified must be a time"), inZip);
    assert.equal(summary, "arbor: 3 of 7 records are malformed");
    assert.deepEqual(more, []);
    assert.equal((await countStored()) - before, 4);
  });

  it("finds a damaged entry by its checksum", async () => {
    const zip = join(tempDir(), "damaged.zip");
    writeZip(zip, [entry("a.json", osvRecord("SUM-1")), entry("b.json", osvRecord("SUM-2"))]);
    const bytes = readFileSync(zip);
    // The checksum of the first entry in the directory at the end.
    const at = bytes.indexOf(Buffer.from([0x50, 0x4b, 1, 2])) + 16;
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(zip, bytes);
    const { code, stderr, stdout } = await run(zip);
    assert.equal(code, 1);
    assert.match(stderr, /a\.json: .*cannot be read \(its checksum does not match\)/);
    assert.match(stdout, /^advisories: 1 created/m);
  });

  const wrong: readonly { name: string; args: readonly string[]; code: number; says: RegExp }[] = [
    {
      name: "of a file that is not there",
      args: ["/nowhere/x.json"],
      code: 2,
      says: /x\.json cannot be read \(ENOENT\)/,
    },
    { name: "without a group", args: ["x.json"], code: 2, says: /required option '--group <uid-or-name>'/ },
  ];
  for (const { name, args, code, says } of wrong) {
    it(`${name} ends with ${code}`, async () => {
      const more = code === 2 && name.includes("without") ? [] : ["--group", group];
      const done = await host.run(["advisories", "import", ...args, "--data", data, ...more]);
      assert.equal(done.code, code);
      assert.match(done.stderr, says);
    });
  }

  it("into a group that does not exist ends with 5", async () => {
    const file = join(tempDir(), "one.json");
    writeFileSync(file, JSON.stringify(osvRecord("NOWHERE-1")));
    const done = await host.run(["advisories", "import", file, "--data", data, "--group", "f".repeat(40)]);
    assert.deepEqual([done.code, done.stderr.includes("Not found: group")], [5, true], done.stderr);
  });

  it("leaves one row in the audit log when it changed something, else none", async () => {
    const file = join(tempDir(), "one.json");
    writeFileSync(file, JSON.stringify(osvRecord("AUDIT-1")));
    const rows = async () => {
      const { stdout } = await arbor("audit", "list", "--json", "--data", data);
      return linesOf(stdout).filter((line) => line.includes("arbor.advisories.imported.v1")).length;
    };
    const before = await rows();
    await run(file);
    await run(file);
    assert.equal((await rows()) - before, 1);
  });
});
